"""What a supervised run will read, counted before it starts (loads the tokenizer only).

Rows that are longer than the limit, rows that would lose all their answers to it, rows that the chat template cannot
render rightly, and how many tokens the loss will count: the figures a person wants beside a plan, and the same encoding
that the run then uses.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.canonical import loads
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from runners.train.order import micro_batches
from runners.train.tokens import ChatRow, EncodedRow, Tokenizer, encode_row, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runners.train.config import SftSettings

NO_LABELS = "no_label_left"
LABELS_CUT = "labels_cut"
TRUNCATED = "truncated"
CUT = (LABELS_CUT, TRUNCATED)
"""Reasons for which a row is listed and yet read: it loses labels to the limit, or tokens that are no labels."""

MAX_DEPTH = 64
UNTRAINABLE = {
    f"TEMPLATE_{word}": f"template_{word.lower()}"
    for word in ("NOT_PREFIX", "DROPS", "MASK", "FAILED")
}
"""The reason for which a row is dropped, by the code of what the template makes of it."""


@dataclass(frozen=True)
class Listed:
    """A row that is not read as it stands.

    `tokens` and `labels` are what the whole row has, `lost` the labels that the run does not see; all None where the
    template gives no tokens to count.
    """

    row: str
    name: str | None
    reason: str
    detail: str
    tokens: int | None = None
    labels: int | None = None
    lost: int | None = None

    def as_json(self) -> dict[str, Any]:
        """One line of a plan's list."""
        return {
            "row": self.row,
            "id": self.name,
            "reason": self.reason,
            "detail": self.detail,
            "tokens": self.tokens,
            "labels": self.labels,
            "lost": self.lost,
        }


@dataclass(frozen=True)
class Encoded:
    """The rows of a run: those it can train on, and those it must drop, by digest with a reason.

    `listed` holds every row that is dropped or cut, in the order of the rows.
    """

    rows: tuple[EncodedRow, ...]
    dropped: tuple[tuple[str, str], ...]
    input: int
    listed: tuple[Listed, ...] = ()

    @property
    def truncated(self) -> int:
        """How many of the kept rows lost tokens to the length limit."""
        return sum(row.truncated for row in self.rows)

    @property
    def digest(self) -> str:
        """A digest over the kept rows' tokens and labels, in order."""
        whole = hashlib.sha256()
        for row in self.rows:
            whole.update(json.dumps([row.digest, row.ids, row.labels]).encode() + b"\n")
        return f"sha256:{whole.hexdigest()}"

    def account(self) -> dict[str, int]:
        """The rows by what became of them, as `run.ended` records it."""
        return {
            "input": self.input,
            "effective": len(self.rows),
            "truncated": self.truncated,
            "dropped": len(self.dropped),
        }


def read_rows(path: Path) -> list[ChatRow]:
    """The rows of a JSON Lines file.

    A row's digest is its field `row` where it has one, else that of its line's bytes.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a line is no JSON object with a list of messages.
    """
    return [
        _row(line, number) for number, line in enumerate(path.read_bytes().splitlines(), 1) if line
    ]


def encode_rows(
    tokenizer: Tokenizer,
    rows: Iterable[tuple[Any, ...]],
    max_length: int,
    begin: Callable[[int], None] = lambda _number: None,
) -> Encoded:
    """Every row encoded, those without a token to learn from set apart.

    Args:
        tokenizer: of the model, with the chat template in effect.
        rows: chat rows, or pairs of digest and turns.
        max_length: in tokens.
        begin: called before each row with its number from 0.

    Raises:
        UsageError: `ROW_UNTRAINABLE`, no row is left.
    """
    kept: list[EncodedRow] = []
    dropped: list[Listed] = []
    listed: list[Listed] = []
    for number, item in enumerate(rows):
        begin(number)
        found = _encoded(tokenizer, ChatRow(*item), max_length)
        note = found if isinstance(found, Listed) else _cut(found, ChatRow(*item), max_length)
        if note is not None:
            listed.append(note)
        if note is not None and note.reason not in CUT:
            dropped.append(note)
        elif isinstance(found, EncodedRow):
            kept.append(found)
    if not kept:
        raise _nothing_left(dropped, max_length)
    reasons = tuple((item.row, item.reason) for item in dropped)
    return Encoded(tuple(kept), reasons, len(kept) + len(dropped), tuple(listed))


def check_encoding(encoded: Encoded, planned: str | None) -> None:
    """Refuse rows that became other tokens or labels than when the run was planned.

    Args:
        encoded: the rows.
        planned: the digest in the plan, None where it has none.

    Raises:
        EvidenceError: `ENCODING_DIFFERS`.
    """
    if planned is not None and encoded.digest != planned:
        raise EvidenceError(
            "ENCODING_DIFFERS",
            "the rows give other tokens or labels than when they were planned on",
            expected=planned,
            actual=encoded.digest,
        )


def given_template(job: dict[str, Any]) -> Path | None:
    """The template's file of a child's job, None where the model's own is used."""
    return None if job.get("template") is None else Path(job["template"])


def preflight(
    model: Path,
    rows: Path,
    settings: SftSettings,
    template: Path | None = None,
    begin: Callable[[int, int], None] = lambda _number, _total: None,
) -> dict[str, Any]:
    """The figures of a planned run, without training.

    Args:
        model: its folder.
        rows: JSON Lines of chat rows.
        settings: of the run.
        template: a file with the chat template in effect, the model's own where it is None.
        begin: called before each row with its number from 0 and how many there are.

    Returns:
        `rows` (input, effective, truncated, dropped), `reasons` and `listed` (rows that are dropped or cut), `unended` (rows
        whose end the template's markers leave out), `tokens` (trainable, total, longest), `epochs` as text with two
        decimals, `datums`, the rows that all steps together read, and `encoding`, see `Encoded.digest`.

    Raises:
        EvidenceError: see `read_rows`.
        UsageError: `ROW_UNTRAINABLE`, no row is left.
    """
    given = read_rows(rows)
    tokenizer = load_tokenizer(model, template)
    encoded = encode_rows(
        tokenizer, given, settings.max_length, lambda number: begin(number, len(given))
    )
    read = [
        encoded.rows[position]
        for batch in micro_batches(encoded.rows, settings)
        for position in batch
    ]
    return {
        "rows": encoded.account(),
        "reasons": dict(sorted(Counter(item.reason for item in encoded.listed).items())),
        "listed": [item.as_json() for item in encoded.listed],
        "unended": sum(row.unended for row in encoded.rows),
        "tokens": {
            "trainable": sum(row.trainable for row in read),
            "total": sum(len(row.ids) for row in read),
            "longest": max(len(row.ids) for row in encoded.rows),
        },
        "datums": len(read),
        "epochs": f"{len(read) / len(encoded.rows):.2f}",
        "encoding": encoded.digest,
    }


def _encoded(tokenizer: Tokenizer, row: ChatRow, max_length: int) -> EncodedRow | Listed:
    """The row's tokens, or why the template cannot render it."""
    try:
        return encode_row(tokenizer, row.digest, row.messages, max_length, row.tools)
    except EvidenceError as error:
        if error.code not in UNTRAINABLE:
            raise
        return Listed(row.digest, row.name, UNTRAINABLE[error.code], error.message)


def _cut(found: EncodedRow, row: ChatRow, max_length: int) -> Listed | None:
    """What the length limit takes from a row; None where it takes nothing."""
    left = found.trainable
    if left and not found.truncated:
        return None
    lost = found.cut_labels
    reason = TRUNCATED if left and not lost else LABELS_CUT if left else NO_LABELS
    return Listed(
        row.digest,
        row.name,
        reason,
        f"{found.length} tokens, {found.length - len(found.ids)} beyond {max_length}",
        found.length,
        left + lost,
        lost,
    )


def _nothing_left(dropped: list[Listed], max_length: int) -> UsageError:
    if not dropped:
        return UsageError("ROW_UNTRAINABLE", "there is no row")
    counted = Counter(item.reason for item in dropped)
    reasons = ", ".join(f"{reason} {count}" for reason, count in counted.most_common())
    first = dropped[0]
    named = first.name or first.row[7:19]
    code = next(
        (code for code, reason in UNTRAINABLE.items() if reason == counted.most_common(1)[0][0]),
        None,
    )
    return UsageError(
        "ROW_UNTRAINABLE",
        f"none of {len(dropped)} rows keeps a label within {max_length} tokens: {reasons}; "
        f"the first, {named}: {first.detail}",
        hint=None if code is None else _hint(code),
    )


def _hint(code: str) -> str:
    from ledger.codes import CODES

    return CODES[code].hint


def _row(line: bytes, number: int) -> ChatRow:
    value = loads(line, MAX_DEPTH)
    match value:
        case {"messages": [*messages]} if (
            all(_is_turn(message) for message in messages) and messages
        ):
            tools, name = value.get("tools"), value.get("id")
            digest = str(value.get("row") or sha256(line))
            offered = tools if isinstance(tools, list) else None
            return ChatRow(digest, messages, offered, name if isinstance(name, str) else None)
    raise EvidenceError("NOT_CANONICAL", f"line {number} has no list of messages", field="messages")


def _is_turn(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    return isinstance(content, str) or (content is None and bool(message.get("tool_calls")))
