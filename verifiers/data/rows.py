"""Rows of a data set from JSON lines: each physical line is accepted, or rejected with a reason.

Three kinds of row: a *chat* row (for training; `kind` may be left out), a *desk* case and a *dialogue* case
(for evaluation). Nothing is repaired and nothing is skipped in silence.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.data.chat import Refused, check_messages
from verifiers.data.identity import content_digest, dataset_identity, row_digest
from verifiers.data.json_text import loads_unique
from verifiers.rewards.desk import read_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PARSER = "rows/1"
MAX_LINE_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_ID_CHARS = 200
MAX_REJECTS = 200_000

REASONS: dict[str, str] = {
    "too_large": f"the line is longer than {MAX_LINE_BYTES} bytes",
    "too_deep": f"the line nests deeper than {MAX_DEPTH} levels",
    "not_json": "the line is not JSON in UTF-8, or holds NaN or an infinity",
    "duplicate_key": "an object names one key twice",
    "not_an_object": "the line is JSON but not an object",
    "unknown_kind": "the kind is none of chat, desk, dialogue",
    "unknown_field": "the row or a turn has a field that is not known",
    "missing_field": "a field that the kind needs is not there",
    "wrong_type": "a field or turn is of another type than it should be",
    "empty": "the line, the list of turns or a turn is empty",
    "invalid_role": "a turn has no role, or one that is not known",
    "two_roles": "a turn names two roles, or its text begins a turn of another role",
    "turn_order": "a role speaks when it is not its turn",
    "wrong_end": "the last turn is not the one the kind ends with",
    "call_id_twice": "a tool call has an id that an earlier one has",
    "call_unanswered": "somebody speaks before a tool's result is there",
    "result_without_call": "a tool's result names no open call",
    "held_out": "a training row declares itself held out",
    "case_broken": "a desk case's record or call is not what it should be",
    "case_disagrees": "a desk case's expected call is not the one the rules give",
    "duplicate_id": "an earlier row has this id",
    "duplicate_row": "an earlier row is the same, byte for byte",
}

_MARK = b"\xef\xbb\xbf"
_TRAINING_ROLES = ("train", "training")
_SHARED = {"id", "kind", "messages", "family", "metadata", "review", "split", "role"}
_NEEDED: dict[str, dict[str, type]] = {
    "chat": {},
    "desk": {
        "id": str, "family": str, "rules": list, "order": dict, "request": str, "wanted": dict,
        "expected": dict,
    },
    "dialogue": {"id": str, "family": str, "policy_facts": list, "reference": str, "must_avoid": list},
}  # fmt: skip
_OPTIONAL = {"chat": {"tools"}, "desk": {"twin"}, "dialogue": set[str]()}
_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,), "family": (str,), "metadata": (dict,), "review": (dict,), "tools": (list,),
    "split": (str,), "role": (str,), "twin": (str, type(None)),
}  # fmt: skip


@dataclass(frozen=True)
class Accepted:
    """A row that was accepted: its physical line (from 1), its value and its digest."""

    line: int
    row: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Rejected:
    """A line that was rejected: its number (from 1), a key of `REASONS`, and what exactly is wrong.

    `source` is the place of its file among the data set's sources, from 0; None where there is only one.
    """

    line: int
    code: str
    message: str
    source: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The reject as one line of a rejects blob."""
        place = {} if self.source is None else {"source": self.source}
        return {**place, "line": self.line, "code": self.code, "message": self.message}


@dataclass
class ParsedRows:
    """All of a file: rows in file order, rejects, and the counts that a dataset record states."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    rejects: list[Rejected] = field(default_factory=list)
    duplicates: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """How many lines were rejected for each reason, by name."""
        return dict(sorted(Counter(reject.code for reject in self.rejects).items()))

    @property
    def identity(self) -> str:
        """The dataset's identity: the same for the same rows in any order."""
        return dataset_identity(self.digests)


def parse_rows(chunks: Iterable[bytes]) -> ParsedRows:
    """All rows and rejects of JSON lines, handed over in chunks of any size.

    `duplicates` counts accepted rows that an earlier one equals in everything but its id.

    Raises:
        EvidenceError: `TOO_LARGE`, more lines are rejected than anybody would look at: it is another sort of file.
    """
    return _collected(iterate_rows(chunks))


def parse_sources(contents: Iterable[bytes], *, several: bool) -> ParsedRows:
    """All rows and rejects of a data set's files, each counting its own lines; ids and rows are unique over all of them.

    Args:
        contents: the bytes of each file; a mark of UTF-8 before its first line is no part of that line.
        several: whether there is more than one, so that a reject has to say which file it is in.

    Raises:
        EvidenceError: `TOO_LARGE`, see `parse_rows`.
    """
    return _collected(_iterate_sources(contents, several=several))


def iterate_rows(
    chunks: Iterable[bytes],
    ids: set[str] | None = None,
    digests: set[str] | None = None,
    source: int | None = None,
) -> Iterator[Accepted | Rejected]:
    """One verdict a physical line, in file order; memory holds ids and digests only.

    Args:
        chunks: the file, in chunks of any size.
        ids: ids that are taken; grows.
        digests: digests of rows that are there; grows.
        source: which file it is, for rejects.
    """
    ids = set() if ids is None else ids
    digests = set() if digests is None else digests
    for number, line in _lines(chunks):
        try:
            row = _row(line)
            digest = _new_digest(row, ids, digests)
        except Refused as refused:
            yield Rejected(number, refused.reason, refused.message, source)
        else:
            yield Accepted(number, row, digest)


def _iterate_sources(contents: Iterable[bytes], *, several: bool) -> Iterator[Accepted | Rejected]:
    ids: set[str] = set()
    digests: set[str] = set()
    for place, content in enumerate(contents):
        plain = content.removeprefix(_MARK)
        yield from iterate_rows([plain], ids, digests, place if several else None)


def _collected(verdicts: Iterable[Accepted | Rejected]) -> ParsedRows:
    parsed = ParsedRows()
    contents: set[str] = set()
    for found in verdicts:
        if isinstance(found, Rejected):
            parsed.rejects.append(found)
            if len(parsed.rejects) > MAX_REJECTS:
                raise EvidenceError("TOO_LARGE", f"more than {MAX_REJECTS} lines were rejected")
            continue
        content = content_digest(found.row)
        parsed.duplicates += content in contents
        contents.add(content)
        parsed.rows.append(found.row)
        parsed.digests.append(found.digest)
    return parsed


def declares_held_out(row: dict[str, Any]) -> bool:
    """Whether a row itself says that it is not for training, in `split`, `role` or its metadata."""
    metadata = row.get("metadata")
    places = (row, metadata if isinstance(metadata, dict) else {})
    said = [place[name] for place in places for name in ("split", "role") if name in place]
    return any(str(value).strip().casefold() not in _TRAINING_ROLES for value in said)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Physical lines by number; None stands for a line beyond the limit, whose bytes are dropped."""
    number, rest, overlong = 1, b"", False
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield number, None if overlong or len(line) > MAX_LINE_BYTES else line
            number, overlong = number + 1, False
        if len(rest) > MAX_LINE_BYTES:
            rest, overlong = b"", True
    if rest or overlong:
        yield number, None if overlong else rest


def _row(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise Refused("too_large", REASONS["too_large"])
    if not line.strip():
        raise Refused("empty", "the line is empty")
    row = _json(line)
    if not isinstance(row, dict):
        raise Refused("not_an_object", f"the line is a JSON {type(row).__name__}")
    kind = row.get("kind", "chat")
    if not isinstance(kind, str) or kind not in _NEEDED:
        raise Refused(
            "unknown_kind", f"the kind {str(kind)[:40]!r} is none of {', '.join(_NEEDED)}"
        )
    _check_fields(row, kind)
    check_messages(row["messages"], ends_with="assistant" if kind == "chat" else "user")
    if kind == "chat" and declares_held_out(row):
        raise Refused("held_out", "the row declares another role than train")
    if kind == "desk":
        _check_case(row)
    return row


def _json(line: bytes) -> Any:
    try:
        return loads_unique(line, MAX_DEPTH)
    except EvidenceError as error:
        if error.code == "DUPLICATE_KEY":
            raise Refused("duplicate_key", error.message) from None
        reason = "too_deep" if error.message.startswith("nested deeper") else "not_json"
        raise Refused(reason, error.message) from None


def _check_fields(row: dict[str, Any], kind: str) -> None:
    known = _SHARED | set(_NEEDED[kind]) | _OPTIONAL[kind]
    unknown = sorted(name for name in row if name not in known and not name.endswith("_id"))
    if unknown:
        raise Refused("unknown_field", f"the row has the unknown field {unknown[0][:40]!r}")
    missing = [name for name in ("messages", *_NEEDED[kind]) if name not in row]
    if missing:
        raise Refused("missing_field", f"the row has no {missing[0]}")
    for name, value in row.items():
        expected = (_NEEDED[kind][name],) if name in _NEEDED[kind] else _TYPES.get(name, ())
        expected = (str,) if name.endswith("_id") else expected
        if expected and type(value) not in expected:
            raise Refused("wrong_type", f"{name} is not of type {expected[0].__name__}")
    for name in ("rules", "policy_facts", "must_avoid"):
        if not all(isinstance(text, str) for text in row.get(name, ())):
            raise Refused("wrong_type", f"{name} is not a list of texts")
    if not 0 < len(row.get("id", "-")) <= MAX_ID_CHARS:
        raise Refused("wrong_type", f"the id is empty or longer than {MAX_ID_CHARS} characters")


def _check_case(row: dict[str, Any]) -> None:
    try:
        read_case(row)
    except EvidenceError as error:
        raise Refused(error.code.lower(), error.message) from None


def _new_digest(row: dict[str, Any], ids: set[str], digests: set[str]) -> str:
    if row.get("id") in ids:
        raise Refused("duplicate_id", f"an earlier row has the id {row['id'][:40]!r}")
    digest = row_digest(row)
    if digest in digests:
        raise Refused("duplicate_row", REASONS["duplicate_row"])
    if "id" in row:
        ids.add(row["id"])
    digests.add(digest)
    return digest
