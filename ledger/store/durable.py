"""What the ledger asks of a durable store, whichever it is (spec: ledger.md, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ledger.errors import EvidenceError
from ledger.records.base import MAX_RECORD_BYTES

FORMAT_VERSION = 1
BUSY_TIMEOUT_MS = 60_000
FIRST_SEQ, LAST_SEQ = -(2**63), 2**63 - 1

ROWS_PER_READ = 512

Row = tuple[int, bytes, bytes, bytes]
Read = Callable[[int, int], tuple[list[tuple[Any, ...]], int]]
Next = Callable[[int], int | None]


class Store(Protocol):
    """Records and seals of one ledger. Trusted for nothing: every byte that is read is checked again by its hash.

    Attributes:
        path: where it lies, for messages.
        writable: whether it was opened to append.
        deviations: guard triggers that are gone.
    """

    path: Path
    writable: bool
    deviations: list[str]

    def close(self) -> None:
        """Close the connection."""

    def transaction(self) -> AbstractContextManager[None]:
        """One write transaction, the write lock taken first; durable when it returns."""

    def snapshot(self) -> AbstractContextManager[None]:
        """One read transaction: everything read in it is the ledger at one moment."""

    def tail(self) -> tuple[int, bytes | None]:
        """Number of records and the id stored beside the last one."""

    def append(self, rows: Iterable[tuple[int, bytes, bytes | None, bytes, bytes]]) -> None:
        """Insert (seq, id, prev, signature, entry) rows inside a transaction."""

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """(seq, stored id, signature, entry) in seq order, a few at a time."""

    def row(self, seq: int) -> Row | None:
        """The row at a seq, or None."""

    def put_seal(self, size: int, note: bytes) -> None:
        """Keep a seal; one that is there already stays."""

    def seals(self) -> Iterator[tuple[int, bytes]]:
        """(size, note) of every seal, by size."""

    def newest_seal(self) -> tuple[int, bytes] | None:
        """(size, note) of the largest seal."""


def walk(start: int, stop: int | None, read: Read, next_seq: Next) -> Iterator[Row]:
    """Rows in seq order, a few at a time, each column looked at; a gap in hostile rows does not end the reading early.

    Args:
        start: the first seq.
        stop: the seq to stop before; None for all there are.
        read: the rows of a stretch, both ends included, and how far it could be read.
        next_seq: the first seq at or after one, None where there is none.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`, `ENTRY_TOO_LARGE`; see `checked_row` and `in_order`.
    """
    last = LAST_SEQ if stop is None else stop - 1
    while start <= last:
        batch, end = read(start, min(last, start + ROWS_PER_READ - 1))
        for row in batch:
            yield in_order(checked_row(row), start)
            start = row[0] + 1
        if not batch:
            later = next_seq(end + 1) if end < last else None
            if later is None:
                return
            if later <= end:
                raise _misplaced(later, end + 1)
            start = later


def checked_tail(row: tuple[Any, ...] | None) -> tuple[int, bytes | None]:
    """The number of records and the last stored id, from the last row's seq and id.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`.
    """
    if row is None:
        return 0, None
    if type(row[1]) is not bytes:
        raise EvidenceError("LEDGER_UNREADABLE", f"row {row[0]} has a column of another type")
    return row[0] + 1, row[1]


def checked_seal(row: tuple[Any, ...]) -> tuple[int, bytes]:
    """A seal's row, whose columns are of any type in a stranger's store.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`.
    """
    size, note = row
    if type(size) is not int or type(note) is not bytes:
        raise EvidenceError(
            "LEDGER_UNREADABLE", f"seal {size!r} has a column of another type or length"
        )
    return size, note


def in_order(row: Row, start: int) -> Row:
    """A damaged tree may give a row twice, or one of before: without an end, if nobody looked.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`.
    """
    if row[0] < start:
        raise _misplaced(row[0], start)
    return row


def _misplaced(seq: int, due: int) -> EvidenceError:
    return EvidenceError("LEDGER_UNREADABLE", f"row {seq} comes where {due} is due or a later one")


def checked_row(row: tuple[Any, ...]) -> Row:
    """A record's row, whose columns are of any type and length in a stranger's store.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`, `ENTRY_TOO_LARGE`.
    """
    seq, stored_id, signature, entry, entry_bytes = row
    if entry is None and type(entry_bytes) is int and entry_bytes > MAX_RECORD_BYTES:
        raise EvidenceError(
            "ENTRY_TOO_LARGE",
            f"the entry in row {seq} has {entry_bytes} bytes",
            seq=seq,
            expected=f"at most {MAX_RECORD_BYTES} with its signature",
            actual=str(entry_bytes),
        )
    if not (
        type(seq) is int
        and type(stored_id) is bytes
        and type(signature) is bytes
        and type(entry) is bytes
    ):
        raise EvidenceError(
            "LEDGER_UNREADABLE", f"row {seq!r} has a column of another type or length", seq=seq
        )
    return seq, stored_id, signature, entry
