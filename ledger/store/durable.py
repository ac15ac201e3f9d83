"""What the ledger asks of a durable store, whichever it is (spec: ledger.md, section 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ledger.errors import EvidenceError
from ledger.records.base import MAX_RECORD_BYTES

FORMAT_VERSION = 1
BUSY_TIMEOUT_MS = 60_000
FIRST_SEQ, LAST_SEQ = -(2**63), 2**63 - 1

Row = tuple[int, bytes, bytes, bytes]


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
        raise EvidenceError(
            "LEDGER_UNREADABLE", f"row {row[0]} comes where {start} is due or a later one"
        )
    return row


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
