"""The derived index: id -> seq, kind -> seqs, edges backwards (spec: ledger.md, section 9).

Trusted for: nothing. It is a hint in a file of its own that may be deleted at any time; what it says is
proven by re-hashing the row it points to. A file that is damaged or laid out in another way is not used.
The newest records are held in memory and written in groups.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pysqlite3 import dbapi2 as sqlite

from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.record import Record
from ledger.store.connection import (
    DAMAGE,
    QUERIES,
    connect,
    expected_objects,
    is_plain,
    objects,
    sql,
)

FLUSH_RECORDS = 4096
MAX_FLUSH_RECORDS = 16_384
FLUSHES = 16
PATIENCE_MS = 500


@dataclass
class _Tail:
    """What is not in the file yet."""

    ids: dict[bytes, int] = field(default_factory=dict)
    kinds: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))

    def edge_rows(self) -> list[tuple[int, int, str]]:
        """(target, source, role) of every edge, in the order of the file's key."""
        return sorted(
            (target, source, role) for target, edges in self.edges.items() for role, source in edges
        )


class Index:
    """Look-ups over the records added so far.

    Args:
        path: the derived file, or None to hold everything in memory.
        writable: whether the file may be made, brought forward or made anew; a reader never touches it.
    """

    def __init__(self, path: Path | None, *, writable: bool = True) -> None:
        self._path = path
        self._writable = writable
        self._db: Any = None
        self._tail = _Tail()
        self.size = 0
        self.last_id: bytes | None = None
        self._flush_at = FLUSH_RECORDS
        if path is not None:
            self._open(path)

    def close(self) -> None:
        """Write what is held in memory and close the file."""
        self.flush()
        if self._db is not None:
            self._db.close()
            self._db = None

    def reset(self) -> None:
        """Forget everything: the file did not fit the ledger."""
        if self._db is not None:
            self._db.close()
            self._db = None
        self._tail, self.size, self.last_id, self._flush_at = _Tail(), 0, None, FLUSH_RECORDS
        if self._path is not None and self._writable and _removed(self._path):
            self._open(self._path)

    def do_without(self, *, damaged: bool) -> None:
        """Forget everything and hold what comes in memory; a damaged file is removed where it may be, for the next opening."""
        path, self._path = self._path, None
        self.reset()
        if damaged and path is not None and self._writable:
            _removed(path)

    def add(self, record: Record, edges: list[tuple[str, int]]) -> None:
        """Take in the next record, and (role, seq) of each record that it names."""
        raw = bytes.fromhex(record.id[7:])
        self._tail.ids[raw] = record.seq
        self._tail.kinds[record.kind].append(record.seq)
        for role, target in edges:
            self._tail.edges[target].append((role, record.seq))
        self.size, self.last_id = record.seq + 1, raw
        if len(self._tail.ids) >= self._flush_at:
            self.flush()

    def seq_of(self, record_id: str) -> int | None:
        """Where a record should stand, or None where the index does not know it.

        Raises:
            EvidenceError: `INDEX_STALE`, the file is damaged; so for every look-up.
            UsageError: `LEDGER_BUSY`, another process holds the file; so for every look-up.
        """
        raw = bytes.fromhex(record_id[7:])
        seq = self._tail.ids.get(raw)
        if seq is None:
            seq = next((found for (found,) in self._ask("seq_of", int, raw)), None)
        return seq

    def with_prefix(self, prefix: str) -> list[int]:
        """Seqs of up to three records whose id's hex begins so."""
        low = bytes.fromhex(prefix.ljust(64, "0"))
        high = bytes.fromhex(prefix.ljust(64, "f"))
        found = [seq for raw, seq in self._tail.ids.items() if low <= raw <= high]
        found += [seq for (seq,) in self._ask("ids_between", int, low, high)]
        return sorted(set(found))[:3]

    def of_kind(self, kind: str) -> list[int]:
        """Seqs of a kind's records, in order."""
        found = set(self._tail.kinds.get(kind, ()))
        found.update(seq for (seq,) in self._ask("seqs_of_kind", int, kind))
        return sorted(found)

    def referrers(self, seq: int) -> list[tuple[str, int]]:
        """(role, seq) of every record that names the one at `seq`."""
        found = set(self._tail.edges.get(seq, ()))
        found.update((role, source) for source, role in self._ask("referrers", int, seq))
        return sorted(found, key=lambda item: (item[1], item[0]))

    def flush(self) -> None:
        """Write what is held in memory to the file; one that is busy or full is left for later."""
        if self._db is None or not self._tail.ids or not self._writable:
            return
        try:
            self._write(self._tail)
        except DAMAGE:
            if self._db.in_transaction:
                with suppress(*DAMAGE):
                    self._db.execute("ROLLBACK")
            self._flush_at = len(self._tail.ids) + FLUSH_RECORDS
            return
        self._tail, self._flush_at = _Tail(), _flush_at(self.size)

    def _write(self, tail: _Tail) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(QUERIES["put_id"], sorted(tail.ids.items()))
        kinds = [(kind, seq) for kind, seqs in tail.kinds.items() for seq in seqs]
        self._db.executemany(QUERIES["put_kind"], sorted(kinds))
        self._db.executemany(QUERIES["put_edge"], tail.edge_rows())
        written = self._db.execute(QUERIES["indexed"]).fetchone()[0]
        if self.size > written:
            self._db.execute(QUERIES["set_indexed"], (self.size, self.last_id))
        self._db.execute("COMMIT")

    def _ask(self, query: str, first: type, *values: bytes | str | int) -> list[tuple[Any, ...]]:
        """Rows of a look-up, the first column of a type: a hostile file keeps no promise."""
        if self._db is None:
            return []
        try:
            rows: list[tuple[Any, ...]] = self._db.execute(QUERIES[query], values).fetchall()
        except DAMAGE as error:
            raise _told(error) from error
        if any(type(row[0]) is not first for row in rows):
            raise EvidenceError("INDEX_STALE", "the derived index holds a value of another type")
        return rows

    def _open(self, path: Path) -> None:
        """Open or make the file; one that is damaged or not laid out as ours is removed and done without."""
        writable = self._writable and os.access(path.parent, os.W_OK)
        if not _plain(path) or (not path.exists() and not writable):
            return
        mode = "rwc" if writable else _reading_mode(path)
        db = None
        try:
            db = connect(path, mode)
            size, last_id = _read_head(db)
        except sqlite.OperationalError:
            if db is not None:  # another process holds it, or it cannot be read: do without
                db.close()
        except (*DAMAGE, EvidenceError):
            if db is not None:
                db.close()
            if mode == "rwc":
                _removed(path)
        else:
            self.size, self.last_id, self._db = size, last_id, db
            self._flush_at = _flush_at(size)


class IndexReader:
    """A derived index, maybe a stranger's, only to look at; use it in a `with` block, or close it.

    Args:
        path: the file, which exists.

    Raises:
        EvidenceError: `INDEX_STALE`, it cannot be read or is laid out in another way.
        UsageError: `LEDGER_BUSY`, another process holds it; so for every look-up.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file() or not _plain(path):
            raise EvidenceError("INDEX_STALE", "the derived index is not a regular file")
        self._db = connect(path, _reading_mode(path))
        self._db.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        try:
            self.size, self.last_id = self._read_head()
        except LedgerError:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def seq_of(self, raw_id: bytes) -> int | None:
        """Where a record should stand by its raw id, or None."""
        seq = self._ask(QUERIES["seq_of"], raw_id)
        return seq if type(seq) is int else None

    def _read_head(self) -> tuple[int, bytes | None]:
        if not self._ask("SELECT count(*) FROM sqlite_master"):
            raise EvidenceError("INDEX_STALE", "the derived index is empty")
        try:
            return _read_head(self._db)
        except DAMAGE as error:
            raise _told(error) from error

    def has_record(self, record: Record) -> bool:
        """Whether the index has a record's place and kind."""
        place = self._ask("SELECT seq FROM ids WHERE id = ?", bytes.fromhex(record.id[7:]))
        return place == record.seq and bool(
            self._ask("SELECT 1 FROM kinds WHERE kind = ? AND seq = ?", record.kind, record.seq)
        )

    def has_edge(self, target: int, source: int, role: str) -> bool:
        """Whether the index has an edge."""
        query = "SELECT 1 FROM edges WHERE target = ? AND source = ? AND role = ?"
        return bool(self._ask(query, target, source, role))

    def counts(self) -> tuple[int, int, int]:
        """How many ids, kinds and edges it holds."""
        ids, kinds, edges = (
            self._ask(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own table names
            for table in ("ids", "kinds", "edges")
        )
        return ids, kinds, edges

    def _ask(self, query: str, *values: object) -> Any:
        try:
            row = self._db.execute(query, values).fetchone()
        except DAMAGE as error:
            raise _told(error) from error
        return None if row is None else row[0]


def _told(error: Exception) -> LedgerError:
    """A file that somebody is writing says nothing about its contents."""
    if isinstance(error, sqlite.OperationalError) and "locked" in str(error):
        return UsageError("LEDGER_BUSY", "the derived index is held by another process")
    return EvidenceError("INDEX_STALE", f"the derived index: {error}")


def _flush_at(size: int) -> int:
    """How many records to hold before they are written.

    Ids are random: a group of them touches as many pages of the file as it has records, until it touches them
    all. A group that grows with the file keeps that cost a record from growing; its bound keeps what has to be
    read again after a crash to a second or two.
    """
    return min(max(FLUSH_RECORDS, size // FLUSHES), MAX_FLUSH_RECORDS)


def _reading_mode(path: Path) -> str:
    """Locked against a writer's flush, unless nobody can write there and a lock could not be had."""
    return "ro" if os.access(path.parent, os.W_OK) else "ro&immutable=1"


def _removed(path: Path) -> bool:
    """Whether the file and what belongs to it is gone now; where the system refuses, it is done without."""
    try:
        for suffix in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _plain(path: Path) -> bool:
    """Whether the file and what lies beside it under its name are regular files, where they are there."""
    beside = (path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal", "-shm"))
    return all(is_plain(item) for item in beside)


def _read_head(db: Any) -> tuple[int, bytes | None]:
    """Size and last id that the file claims, once its layout is seen to be ours."""
    for pragma in ("synchronous = OFF", "trusted_schema = OFF", "cell_size_check = ON"):
        db.execute(f"PRAGMA {pragma}")
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.executescript(f"BEGIN IMMEDIATE;\n{sql('index.sql')}\nCOMMIT;")
    if objects(db) != expected_objects("index.sql"):
        raise EvidenceError("INDEX_STALE", "the derived index is laid out in another way")
    row = db.execute(QUERIES["indexed"]).fetchone()
    if row is None or type(row[0]) is not int or not isinstance(row[1], bytes | None):
        raise EvidenceError("INDEX_STALE", "the derived index does not say how far it goes")
    return row[0], row[1]
