"""What a row is: its bytes, its digest, and the texts by which two rows are the same.

Three levels, each coarser than the one before: *exact*, *normalised* (NFKC, case folded, white space
collapsed, quotes and dashes in one form) and *masked* (words with digits, addresses and links removed, and
punctuation). System and developer turns are no part of a row's text: instructions are shared by design,
and rows that differ in nothing else are the same question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ledger.digests import sha256

Row = Mapping[str, Any]
MIN_MASKED_WORDS = 3

_INSTRUCTIONS = ("system", "developer")
_VARIANTS = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
        "\u200b": None, "\u200c": None, "\u200d": None, "\u2060": None, "\ufeff": None, "\u00ad": None,
    }
)  # fmt: skip
# where an identifier, an address or a link shows itself, and the rest of its word
_RARE = re.compile(r"(?:[\d@]|://|www\.)\S*")
_WORD = re.compile(r"[^\W_]+")
# the bytes of an ASCII text, with a space for whatever stands between words
_WORDS_ONLY = bytes(code if chr(code).isalnum() else 32 for code in range(128)) + b" " * 128


@dataclass(frozen=True)
class RowText:
    """A row as text: what was put in, and what is to come out (empty where the row has no answer)."""

    input: str
    answer: str


def row_bytes(row: Row) -> bytes:
    """A row's deterministic JSON, without a line feed: one line of a rows blob."""
    return orjson.dumps(row, option=orjson.OPT_SORT_KEYS)


def rows_bytes(rows: Iterable[Any]) -> bytes:
    """Rows as the bytes of a JSON-lines blob: one line each, every line ended."""
    return b"".join(row_bytes(row) + b"\n" for row in rows)


def row_digest(row: Row) -> str:
    """The digest of a row's deterministic JSON; what a split's assignment names it by."""
    return sha256(row_bytes(row))


def content_digest(row: Row) -> str:
    """The digest of a row without its id: equal for two rows that differ in their id only."""
    return row_digest({name: value for name, value in row.items() if name != "id"})


def dataset_identity(digests: Iterable[str]) -> str:
    """A dataset's identity from its rows' digests, whatever order the rows stand in."""
    return sha256("\n".join(sorted(digests)).encode())


def row_text(row: Row) -> RowText:
    """The input and the answer of a row; of a preference the chosen answer counts, a text is all input.

    A desk case's answer is its expected call in the form a model writes it, so it compares with a chat row.
    """
    kind = row.get("kind", "chat")
    if kind == "scenario":
        said = "\n".join(f"user: {text}" for text in (row["opening"], *row["turns"]))
        return RowText(said, orjson.dumps(row["expected"], option=orjson.OPT_SORT_KEYS).decode())
    if kind == "text":
        return RowText(row["text"], "")
    turns = [turn for turn in conversation(row) if turn["role"] not in _INSTRUCTIONS]
    if kind == "desk":
        expected = row["expected"]
        answer = orjson.dumps({"tool": expected["tool"], **expected["arguments"]}).decode()
    elif kind == "dialogue":
        answer = row["reference"]
    else:
        answer = _said(turns[-1])
        turns = turns[:-1]
    return RowText("\n".join(f"{turn['role']}: {_said(turn)}" for turn in turns), answer)


def values(row: Row, name: str) -> tuple[str, ...]:
    """A row's values in a field: none, one, or several of a list. `metadata.x` looks inside `metadata`."""
    value: Any = row.get(name) if "." not in name else _inside(row, name)
    if type(value) is str:
        return (value,)
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _inside(row: Row, name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def first_request(row: Row) -> str:
    """What the customer says first; empty where no turn is a user's."""
    if row.get("kind") == "scenario":
        return str(row["opening"])
    return next((_said(turn) for turn in conversation(row) if turn["role"] == "user"), "")


def conversation(row: Row) -> list[Mapping[str, Any]]:
    """A row's turns; those of a preference end with the chosen answer, a text has none."""
    answer = {"feedback": "completion", "preference": "chosen"}.get(row.get("kind", "chat"))
    if answer is not None:
        return [*row["prompt"], *row[answer]]
    return list(row.get("messages", ()))


def normalised(text: str) -> str:
    """A text without differences of case, width, white space, quotes and dashes."""
    if text.isascii():  # most texts; what is left out below has no effect on them
        return " ".join(text.lower().split())
    return " ".join(unicodedata.normalize("NFKC", text).translate(_VARIANTS).casefold().split())


def masked(normal: str) -> str:
    """A normalised text's words, without any word that holds a digit, an address or a link."""
    return " ".join(words(_without_identifiers(normal)))


def words(normal: str) -> list[str]:
    """A normalised text's words, numbers included."""
    if normal.isascii():
        return normal.encode("ascii").translate(_WORDS_ONLY).decode("ascii").split()
    return _WORD.findall(normal)


def _without_identifiers(normal: str) -> str:
    """The text without the words, as white space parts them, that hold an identifier's letters.

    Each word is cut out from where the last one ended, so that the whole stays linear whatever its length.
    """
    kept: list[str] = []
    begin = 0
    for found in _RARE.finditer(normal):
        start, end = found.span()
        kept.append(normal[begin : normal.rfind(" ", begin, start) + 1 or begin])
        begin = end
    return "".join((*kept, normal[begin:])) if begin else normal


def _said(turn: Mapping[str, Any]) -> str:
    calls = turn.get("tool_calls")
    content = turn.get("content") or ""
    return content + orjson.dumps(calls, option=orjson.OPT_SORT_KEYS).decode() if calls else content
