"""The records of a closure in a database of their own: by seq with gaps, found by id. Ours to make and to drop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from ledger import record as records
from ledger.errors import EvidenceError
from ledger.recent import Recent
from ledger.record import Record
from ledger.store.connection import Connection, connect, translated

RECENT_RECORDS = 2048
_TABLE = """
CREATE TABLE carried (
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, signature BLOB NOT NULL, entry BLOB NOT NULL
) STRICT
"""


class CarriedStore:
    """Records that came in a bundle; nothing of them is trusted but their ids, which are hashes."""

    def __init__(self, path: Path, connection: Connection) -> None:
        self._path = path
        self._db = connection
        self._recent = Recent(RECENT_RECORDS)

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make an empty one; it lives no longer than the folder, so nothing is synced.

        Raises:
            LedgerError: the system refuses, or the disk is full.
        """
        with translated(path):
            db = connect(path, "rwc")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA journal_mode = OFF")
            db.execute(_TABLE)
        return cls(path, db)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open one that `create` made."""
        with translated(path):
            return cls(path, connect(path, "ro"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def add(self, found: Iterable[Record]) -> None:
        """Take records in, which must come in order of seq.

        Raises:
            EvidenceError: `SEQ_GAP`, one does not; what reading them raises.
        """
        before = -1
        with translated(self._path):
            self._db.execute("BEGIN")
        for record in found:
            if record.seq <= before:
                raise EvidenceError(
                    "SEQ_GAP",
                    f"record {record.seq} comes after {before}",
                    seq=record.seq,
                    record=record.id,
                )
            before = record.seq
            row = (record.seq, bytes.fromhex(record.id[7:]), record.signature, record.entry)
            with translated(self._path):
                self._db.execute("INSERT INTO carried VALUES (?, ?, ?, ?)", row)
        with translated(self._path):
            self._db.execute("COMMIT")

    def records(self) -> Iterator[Record]:
        """Every record, in order of seq."""
        with translated(self._path):
            cursor = self._db.execute("SELECT signature, entry FROM carried ORDER BY seq")
        while True:
            with translated(self._path):
                row = cursor.fetchone()
            if row is None:
                return
            yield records.parse(row[1], row[0])

    def find(self, record_id: str) -> Record | None:
        """The record of an id, or None."""
        found = self._recent.get(record_id)
        if found is None:
            with translated(self._path):
                row = self._db.execute(
                    "SELECT signature, entry FROM carried WHERE id = ?",
                    (bytes.fromhex(record_id[7:]),),
                ).fetchone()
            if row is None:
                return None
            found = records.parse(row[1], row[0])
            self._recent.add(found)
        return found
