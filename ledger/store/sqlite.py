"""The durable store: one SQLite file of records and seals (spec: ledger.md, section 9).

Trusted for: nothing. Every byte that is read is checked again by its hash. A crash leaves every
acknowledged record and nothing half-written: WAL with synchronous=FULL, one transaction a group.
All access to the file in a process goes through one SQLite library: a second one would drop the locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pysqlite3 import dbapi2 as sqlite

from ledger import disk
from ledger.errors import EvidenceError, UsageError
from ledger.store.connection import (
    PAGE_BYTES,
    QUERIES,
    Connection,
    check_file,
    check_identity,
    check_library,
    connect_patiently,
    expected_objects,
    objects,
    read_only,
    reading_mode,
    set_pragmas,
    sql,
    translated,
)
from ledger.store.durable import (
    BUSY_TIMEOUT_MS,
    FORMAT_VERSION,
    Row,
    checked_seal,
    checked_tail,
    walk,
)


class SqliteStore:
    """Records and seals of one ledger; open it with `create`, `open_writer` or `open_reader`."""

    def __init__(self, path: Path, connection: Connection, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self._db = connection
        self.deviations: list[str] = []

    @classmethod
    def create(cls, path: Path) -> SqliteStore:
        """Make a new, empty store; the file must not exist.

        Raises:
            UsageError: `LEDGER_EXISTS`, `SQLITE_UNSAFE`.
        """
        check_library()
        if path.exists():
            raise UsageError("LEDGER_EXISTS", f"{path} exists already")
        with translated(path), disk.translated(path):
            db = connect_patiently(path, "rwc")
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            set_pragmas(db)
            db.executescript(f"BEGIN IMMEDIATE;\n{sql('schema.sql')}\nCOMMIT;")
            path.chmod(0o600)
        store = cls(path, db, writable=True)
        store._check_schema()
        return store

    @classmethod
    def open_writer(cls, path: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> SqliteStore:
        """Open an existing store to append.

        Args:
            path: the file.
            busy_timeout_ms: how long to wait for another process before `LEDGER_BUSY`.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`, `SQLITE_UNSAFE`.
            EvidenceError: `LEDGER_UNREADABLE`, `LEDGER_SCHEMA`, `FORMAT_UNKNOWN`.
        """
        check_library()
        check_file(path)
        if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise read_only(path)
        with translated(path):
            db = connect_patiently(path, "rw", busy_timeout_ms)
            check_identity(db, path)
            set_pragmas(db)
        store = cls(path, db, writable=True)
        store._check_schema()
        if store.deviations:
            raise EvidenceError("LEDGER_SCHEMA", f"not as made: {', '.join(store.deviations)}")
        return store

    @classmethod
    def open_reader(cls, path: Path) -> SqliteStore:
        """Open a store, maybe from a stranger, only to read.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `SQLITE_UNSAFE`.
            EvidenceError: `LEDGER_UNREADABLE`, `LEDGER_SCHEMA`, `FORMAT_UNKNOWN`.
        """
        check_library()
        check_file(path)
        with translated(path):
            db = connect_patiently(path, reading_mode(path))
            for pragma in (
                "trusted_schema = OFF",
                "query_only = ON",
                "mmap_size = 0",
                "cell_size_check = ON",
            ):
                db.execute(f"PRAGMA {pragma}")
            check_identity(db, path)
        store = cls(path, db, writable=False)
        store._check_schema()
        return store

    def close(self) -> None:
        """Close the connection; a last writer's checkpoint happens here."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One write transaction, the write lock taken first; durable when it returns.

        Raises:
            UsageError: `LEDGER_BUSY`, `LEDGER_READ_ONLY`.
            EvidenceError: `LEDGER_UNREADABLE`, the disk failed; nothing of the group is kept.
        """
        with translated(self.path):
            self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            with translated(self.path):
                self._commit()
        except BaseException:
            self._rollback()
            raise

    def _commit(self) -> None:
        """Commit; what could not be committed must not come back when the log is recovered."""
        try:
            self._db.execute("COMMIT")
        except sqlite.Error as error:
            self._rollback()
            if error.sqlite_errorcode == sqlite.SQLITE_IOERR and not self._write_over():
                raise EvidenceError(
                    "LEDGER_UNREADABLE",
                    f"{self.path.name}: {error}; whether the group was kept shows when the ledger is opened again",
                ) from error
            raise

    def _rollback(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite.Error):  # a disk that fails twice: the first error is told
                self._db.execute("ROLLBACK")

    def _write_over(self) -> bool:
        """Put another commit where a failed one may lie in the log.

        A sync that fails leaves the whole group in the log, committed for whoever recovers it after a kill.
        Until then SQLite does not count it, so that the next commit takes its place: here one that changes
        nothing.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            self._db.execute("COMMIT")
        except sqlite.OperationalError:
            self._rollback()
            return False
        return True

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One read transaction: everything read in it is the ledger at one moment, whoever appends meanwhile.

        Raises:
            UsageError: `LEDGER_BUSY`.
            EvidenceError: `LEDGER_UNREADABLE`.
        """
        with translated(self.path):
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._rollback()

    def copy_to(self, path: Path) -> None:
        """Copy the database as it is at one moment to a new file, whoever appends meanwhile.

        Raises:
            UsageError: `LEDGER_BUSY`, `DISK_FULL`.
            EvidenceError: `LEDGER_UNREADABLE`.
        """
        with translated(path):
            copy = connect_patiently(path, "rwc")
            try:
                self._db.backup(copy)
            finally:
                copy.close()
        path.chmod(0o600)

    def tail(self) -> tuple[int, bytes | None]:
        """Number of records and the id stored beside the last one."""
        with translated(self.path):
            row = self._db.execute(QUERIES["tail"]).fetchone()
        return checked_tail(row)

    def append(self, rows: Iterable[tuple[int, bytes, bytes | None, bytes, bytes]]) -> None:
        """Insert (seq, id, prev, signature, entry) rows inside a transaction."""
        with translated(self.path):
            self._db.executemany(QUERIES["append"], rows)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """(seq, stored id, signature, entry) in seq order, a few at a time.

        Args:
            start: the first seq; `FIRST_SEQ` for whatever hostile rows there are, below zero too.
            stop: the seq to stop before; None for all there are.

        Raises:
            EvidenceError: `LEDGER_UNREADABLE`, a column has another type than it must; `ENTRY_TOO_LARGE`.
        """
        return walk(start, stop, self._batch, self._next_seq)

    def _batch(self, start: int, last: int) -> tuple[list[tuple[Any, ...]], int]:
        """The rows of a stretch and its end; of one that cannot be read whole, its first place only.

        So the rows before a damage are given, and what is wrong in them counts first.
        """
        while True:
            try:
                with translated(self.path):
                    found = self._db.execute(QUERIES["rows"], (start, last)).fetchall()
            except EvidenceError:
                if start == last:
                    raise
                last = start
            else:
                return list(found), last

    def row(self, seq: int) -> Row | None:
        """The row at a seq, or None."""
        return next(self.rows(seq, seq + 1), None)

    def put_seal(self, size: int, note: bytes) -> None:
        """Keep a seal; one that is there already stays."""
        with translated(self.path):
            self._db.execute(QUERIES["put_seal"], (size, note))

    def seals(self) -> Iterator[tuple[int, bytes]]:
        """(size, note) of every seal, by size."""
        with translated(self.path):
            cursor = self._db.execute(QUERIES["seals"])
        while True:
            with translated(self.path):
                row = cursor.fetchone()
            if row is None:
                return
            yield checked_seal(row)

    def newest_seal(self) -> tuple[int, bytes] | None:
        """(size, note) of the largest seal."""
        with translated(self.path):
            row = self._db.execute(QUERIES["newest_seal"]).fetchone()
        return None if row is None else checked_seal(row)

    def _next_seq(self, start: int) -> int | None:
        """The first seq at or after `start`: a gap in hostile rows must not end the reading early."""
        with translated(self.path):
            row = self._db.execute(
                "SELECT min(seq) FROM records NOT INDEXED WHERE seq >= ?", (start,)
            ).fetchone()
        return None if row is None else row[0]

    def _check_schema(self) -> None:
        """Plain tables are demanded; a missing guard trigger is only noted."""
        with translated(self.path):
            there = objects(self._db)
        wanted = expected_objects("schema.sql")
        for kind, name in sorted(set(there) | set(wanted)):
            if there.get((kind, name)) == wanted.get((kind, name)):
                continue
            if kind == "trigger" and (kind, name) in wanted:
                self.deviations.append(f"trigger {name}")
                continue
            raise EvidenceError(
                "LEDGER_SCHEMA", f"{kind} {name!r} is not as a ledger has it", field=str(name)[:80]
            )
