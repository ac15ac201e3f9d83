"""The derived index: id -> seq, kind -> seqs, edges backwards (spec: ledger.md, section 9).

Trusted for: nothing. It is a hint in a file of its own that may be deleted at any time; what it says is
proven by re-hashing the row it points to. The newest records are held in memory and written in groups.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysqlite3 import dbapi2 as sqlite

from ledger.record import Record
from ledger.store.sqlite import QUERIES, sql

FLUSH_RECORDS = 4096


@dataclass
class _Tail:
    """What is not in the file yet."""

    ids: dict[bytes, int] = field(default_factory=dict)
    kinds: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    edge_rows: list[tuple[int, int, str]] = field(default_factory=list)


class Index:
    """Look-ups over the records added so far.

    Args:
        path: the derived file, or None to hold everything in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: Any = None
        self._tail = _Tail()
        self.size = 0
        self.last_id: bytes | None = None
        self._flushed = 0
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
        self._tail, self.size, self.last_id, self._flushed = _Tail(), 0, None, 0
        if self._path is not None:
            for suffix in ("", "-journal", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            self._open(self._path)

    def add(self, record: Record) -> None:
        """Take in the next record; its refs must have been added before."""
        raw = bytes.fromhex(record.id[7:])
        self._tail.ids[raw] = record.seq
        self._tail.kinds[record.kind].append(record.seq)
        for role, ref in record.all_refs():
            target = self.seq_of(ref)
            if target is not None:
                self._tail.edges[target].append((role, record.seq))
                self._tail.edge_rows.append((target, record.seq, role))
        self.size, self.last_id = record.seq + 1, raw
        if len(self._tail.ids) >= FLUSH_RECORDS:
            self.flush()

    def seq_of(self, record_id: str) -> int | None:
        """Where a record should stand, or None where the index does not know it."""
        raw = bytes.fromhex(record_id[7:])
        seq = self._tail.ids.get(raw)
        if seq is None and self._db is not None:
            row = self._db.execute(QUERIES["seq_of"], (raw,)).fetchone()
            seq = None if row is None else row[0]
        return seq

    def with_prefix(self, prefix: str) -> list[int]:
        """Seqs of up to three records whose id's hex begins so."""
        low = bytes.fromhex(prefix.ljust(64, "0"))
        high = bytes.fromhex(prefix.ljust(64, "f"))
        found = [seq for raw, seq in self._tail.ids.items() if low <= raw <= high]
        if self._db is not None:
            found += [seq for _, seq in self._db.execute(QUERIES["ids_between"], (low, high))]
        return sorted(set(found))[:3]

    def of_kind(self, kind: str) -> list[int]:
        """Seqs of a kind's records, in order."""
        found = set(self._tail.kinds.get(kind, ()))
        if self._db is not None:
            found.update(seq for (seq,) in self._db.execute(QUERIES["seqs_of_kind"], (kind,)))
        return sorted(found)

    def referrers(self, seq: int) -> list[tuple[str, int]]:
        """(role, seq) of every record that names the one at `seq`."""
        found = set(self._tail.edges.get(seq, ()))
        if self._db is not None:
            found.update((role, source) for role, source in self._db.execute(QUERIES["referrers"], (seq,)))
        return sorted(found, key=lambda item: (item[1], item[0]))

    def flush(self) -> None:
        """Write what is held in memory to the file, in sorted order; a busy file is left for later."""
        if self._db is None or not self._tail.ids:
            return
        tail = self._tail
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite.OperationalError:
            return  # another process is writing the same rows; they stay in memory until the next flush
        self._db.executemany(QUERIES["put_id"], sorted(tail.ids.items()))
        kinds = [(kind, seq) for kind, seqs in tail.kinds.items() for seq in seqs]
        self._db.executemany(QUERIES["put_kind"], sorted(kinds))
        self._db.executemany(QUERIES["put_edge"], sorted(tail.edge_rows))
        written = self._db.execute(QUERIES["indexed"]).fetchone()[0]
        if self.size > written:
            self._db.execute(QUERIES["set_indexed"], (self.size, self.last_id))
        self._db.execute("COMMIT")
        self._tail, self._flushed = _Tail(), self.size

    def _open(self, path: Path) -> None:
        """Open or make the file; one that is damaged or cannot be opened is made anew or done without."""
        if not path.exists() and not os.access(path.parent, os.W_OK):
            return
        mode = "rwc" if os.access(path.parent, os.W_OK) else "ro&immutable=1"
        try:
            db = sqlite.connect(
                f"file:{path.absolute()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
            )
            db.execute("PRAGMA synchronous = OFF")
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                db.executescript(f"BEGIN IMMEDIATE;\n{sql('index.sql')}\nCOMMIT;")
            self.size, self.last_id = db.execute(QUERIES["indexed"]).fetchone()
        except sqlite.DatabaseError:
            path.unlink(missing_ok=True)
            self.size, self.last_id = 0, None
            return
        self._flushed = self.size
        self._db = db
