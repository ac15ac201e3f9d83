"""What a supervised run will read, counted before it starts (loads the tokenizer only).

Rows that are longer than the limit, rows that would lose all their answers to it, and how many tokens the loss will
count: the figures a person wants beside a plan, and the same encoding that the run then uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.canonical import loads
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from runners.train.order import micro_batches
from runners.train.tokens import EncodedRow, Tokenizer, encode_row, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from runners.train.config import SftSettings

NO_LABELS = "no_label_left"


@dataclass(frozen=True)
class Encoded:
    """The rows of a run: those it can train on, and those it must drop, by digest with a reason."""

    rows: tuple[EncodedRow, ...]
    dropped: tuple[tuple[str, str], ...]
    input: int

    @property
    def truncated(self) -> int:
        """How many of the kept rows lost tokens to the length limit."""
        return sum(row.truncated for row in self.rows)

    def account(self) -> dict[str, int]:
        """The rows by what became of them, as `run.ended` records it."""
        return {
            "input": self.input,
            "effective": len(self.rows),
            "truncated": self.truncated,
            "dropped": len(self.dropped),
        }


def read_rows(path: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of a JSON Lines file as (digest, messages).

    A row's digest is its field `row` where it has one, else that of its line's bytes.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a line is no JSON object with a list of messages.
    """
    return [
        _row(line, number) for number, line in enumerate(path.read_bytes().splitlines(), 1) if line
    ]


def encode_rows(
    tokenizer: Tokenizer, rows: Iterable[tuple[str, Sequence[dict[str, Any]]]], max_length: int
) -> Encoded:
    """Every row encoded, those without a token to learn from set apart.

    Raises:
        EvidenceError: `TEMPLATE_NOT_PREFIX`, a row's turns cannot be located.
        UsageError: `ROW_UNTRAINABLE`, no row is left.
    """
    encoded = [encode_row(tokenizer, digest, messages, max_length) for digest, messages in rows]
    kept = tuple(row for row in encoded if row.trainable)
    if not kept:
        raise UsageError(
            "ROW_UNTRAINABLE",
            f"none of {len(encoded)} rows keeps a label within {max_length} tokens",
        )
    dropped = tuple((row.digest, NO_LABELS) for row in encoded if not row.trainable)
    return Encoded(kept, dropped, len(encoded))


def preflight(model: Path, rows: Path, settings: SftSettings) -> dict[str, Any]:
    """The figures of a planned run, without training.

    Returns:
        `rows` (input, effective, truncated, dropped), `dropped` (row and reason), `tokens` (trainable, total, longest),
        `epochs` as text with two decimals, and `datums`, the rows that all steps together read.

    Raises:
        EvidenceError: see `read_rows` and `encode_rows`.
        UsageError: `ROW_UNTRAINABLE`, no row is left.
    """
    encoded = encode_rows(load_tokenizer(model), read_rows(rows), settings.max_length)
    read = [
        encoded.rows[position]
        for batch in micro_batches(encoded.rows, settings)
        for position in batch
    ]
    return {
        "rows": encoded.account(),
        "dropped": [{"row": row, "reason": reason} for row, reason in encoded.dropped],
        "tokens": {
            "trainable": sum(row.trainable for row in read),
            "total": sum(len(row.ids) for row in read),
            "longest": max(len(row.ids) for row in encoded.rows),
        },
        "datums": len(read),
        "epochs": f"{len(read) / len(encoded.rows):.2f}",
    }


def _row(line: bytes, number: int) -> tuple[str, list[dict[str, Any]]]:
    value = loads(line)
    match value:
        case {"messages": [*messages]} if (
            all(_is_turn(message) for message in messages) and messages
        ):
            return str(value.get("row") or sha256(line)), messages
    raise EvidenceError("NOT_CANONICAL", f"line {number} has no list of messages", field="messages")


def _is_turn(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str)
    )
