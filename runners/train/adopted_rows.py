"""The rows of a trainer's data set as a ledger keeps them: what the user gave, where it is still beside the tokens.

TRL tokenises a data set when a trainer is made and leaves the columns it read where they are. Those columns are the row.
A data set that holds nothing but tokens is decoded into texts, and what is claimed is then less. Loads no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from ledger.canonical import loads
from ledger.errors import UsageError
from verifiers.data.arrow_child import present
from verifiers.data.chat import Refused
from verifiers.data.identity import row_digest
from verifiers.data.row_rules import Rules, read_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

POSITION = "ledger_row"
"""The hidden column: a row's position in the data set."""

MADE = frozenset(
    {
        POSITION, "input_ids", "labels", "attention_mask", "completion_mask", "assistant_masks", "seq_lengths",
        "prompt_ids", "chosen_ids", "rejected_ids", "completion_ids", "KL_completion_ids", "ref_chosen_logps",
        "ref_rejected_logps", "ref_logps", "ref_KL_logps",
    }
)  # fmt: skip
"""Columns that the library makes."""

ASKING = ("desk", "scenario")
"""Kinds of rows that ask and do not answer: tasks of a run of groups, taken as they are."""

_SHAPES: tuple[frozenset[str], ...] = (
    frozenset({"messages", "tools"}),
    frozenset({"chosen", "rejected", "prompt", "tools"}),
    frozenset({"prompt", "completion", "label", "tools"}),
    frozenset({"text"}),
)
_NEEDED = ({"messages"}, {"chosen", "rejected"}, {"prompt", "completion"}, {"text"})
_ENDED = ("chosen", "rejected", "completion", "text")
_SHARED = {"id": str, "family": str, "review": dict, "split": str, "role": str}


@dataclass(frozen=True)
class AdoptedRows:
    """A data set's rows in its order.

    Attributes:
        lines: each row as it is ingested, one line of JSON.
        digests: what names each row; equal rows share one.
        decoded: the rows are texts decoded from tokens, since nothing else was there.
    """

    lines: tuple[bytes, ...]
    digests: tuple[str, ...]
    decoded: bool

    def jsonl(self) -> bytes:
        """The rows as the bytes of a source."""
        return b"".join(line + b"\n" for line in self.lines)


def adopted_rows(
    dataset: Iterable[Mapping[str, Any]],
    tokenizer: Any,
    *,
    keep_held_out: bool = False,
    joined: bool = False,
    asking: bool = False,
) -> AdoptedRows:
    """Every row of a data set, or a refusal that names the first that cannot go on record.

    Args:
        dataset: yields each row by column, as a `datasets.Dataset` does.
        tokenizer: the trainer's, with `eos_token` and `decode`.
        keep_held_out: rows that declare themselves held out are taken all the same: these are not for training.
        asking: rows of a kind that asks are taken as they are.
        joined: the library has put the prompt before both answers, as its reward trainer does.

    Raises:
        UsageError: `HELD_OUT_ROW`, a row declares itself held out; `ADOPTION_REFUSED`, it is no row of a kind that is known.
    """
    rules = Rules(keep_held_out=keep_held_out)
    lines: list[bytes] = []
    digests: list[str] = []
    decoded = False
    for position, example in enumerate(dataset):
        given = {name: value for name, value in example.items() if name not in MADE}
        value = present(given)
        if not (asking and value.get("kind") in ASKING):
            value = _in_shape(value, str(tokenizer.eos_token or ""))
        if value is not None and joined and "prompt" in value:
            value = _parted(value)
        if value is None:
            value, decoded = {"text": _decoded(example, position, tokenizer)}, True
        line = _line(value, position)
        lines.append(line)
        digests.append(_digest(line, rules, position))
    return AdoptedRows(tuple(lines), tuple(digests), decoded)


def _in_shape(given: dict[str, Any], end: str) -> dict[str, Any] | None:
    """A row without what the library added to it; columns that no row has go to its metadata. None: there is no row."""
    shape = next(
        (known for known, needed in zip(_SHAPES, _NEEDED, strict=True) if needed <= given.keys()),
        None,
    )
    if shape is None:
        return None
    if isinstance(given.get("tools"), str):
        given["tools"] = loads(given["tools"].encode())
    metadata = given.pop("metadata", {})
    row: dict[str, Any] = {}
    extra: dict[str, Any] = dict(metadata) if isinstance(metadata, dict) else {"metadata": metadata}
    for name, value in given.items():
        fits = name in shape or _is_shared(name, value)
        (row if fits else extra)[name] = value
    for name in _ENDED:
        if isinstance(row.get(name), str) and end:
            row[name] = row[name].removesuffix(end)
    return {**row, "metadata": extra} if extra else row


def _parted(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the prompt before each of its answers, where it stands before both."""
    prompt, names = row["prompt"], ("chosen", "rejected")
    if not all(row[name][: len(prompt)] == prompt for name in names):
        return row
    return {**row, **{name: row[name][len(prompt) :] for name in names}}


def _is_shared(name: str, value: Any) -> bool:
    if name.endswith("_id"):
        values = value if isinstance(value, list) and value else [value]
        return all(isinstance(item, str) for item in values)
    return name in _SHARED and isinstance(value, _SHARED[name])


def _decoded(example: Mapping[str, Any], position: int, tokenizer: Any) -> str:
    tokens = example.get("input_ids")
    if tokens is None:
        names = ", ".join(sorted(example))[:200]
        raise _refused(position, f"its columns {names} are no row of a kind that is known")
    return str(tokenizer.decode(list(tokens), skip_special_tokens=True))


def _line(value: dict[str, Any], position: int) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise _refused(position, f"it holds what is no JSON: {error}") from None


def _digest(line: bytes, rules: Rules, position: int) -> str:
    try:
        return row_digest(read_row(line, rules))
    except Refused as refused:
        if refused.reason == "held_out":
            raise UsageError(
                "HELD_OUT_ROW",
                f"row {position} of the trainer's data set declares itself held out",
                field=f"train_dataset[{position}]",
            ) from None
        raise _refused(position, f"{refused.reason}: {refused.message}") from None


def _refused(position: int, why: str) -> UsageError:
    return UsageError(
        "ADOPTION_REFUSED",
        f"row {position} of the trainer's data set cannot go on record: {why}"[:600],
        field=f"train_dataset[{position}]",
        hint="what a row may be: docs/spec/data.md; change or leave out that row",
    )
