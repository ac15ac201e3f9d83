"""Where a verifier remembers ids: recent ones in memory, the rest in a private temporary file.

Nothing of the ledger's own index is trusted, so a pass builds its own. Memory stays bounded however long the ledger is.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from pysqlite3 import dbapi2 as sqlite

from ledger import disk
from ledger.store import connection

RECENT_IDS = 32_768


class Scratch:
    """Ids of the records that passed, in order of seq.

    Up to `RECENT_IDS` of them no file is needed.

    Raises:
        UsageError: `OS_REFUSED` or `DISK_FULL`, the system's folder for temporary files takes no more; from any method.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._db: Any = None

    def add(self, raw_id: bytes, seq: int) -> None:
        """Remember a record."""
        self._recent[raw_id] = seq
        if len(self._recent) >= RECENT_IDS:
            self._write()

    def seq_of(self, raw_id: bytes) -> int | None:
        """Where the record stands, None where none such passed."""
        seq = self._recent.get(raw_id)
        if seq is None and self._db is not None:
            row = self._db.execute("SELECT seq FROM ids WHERE id = ?", (raw_id,)).fetchone()
            seq = None if row is None else row[0]
        return seq

    def with_prefix(self, low: bytes, high: bytes) -> list[int]:
        """Seqs of up to three records whose raw id lies between two, both included."""
        found = {seq for raw, seq in self._recent.items() if low <= raw <= high}
        if self._db is not None:
            rows = self._db.execute(
                "SELECT seq FROM ids WHERE id >= ? AND id <= ? LIMIT 3", (low, high)
            )
            found.update(seq for (seq,) in rows)
        return sorted(found)[:3]

    def close(self) -> None:
        """Drop what was remembered."""
        if self._db is not None:
            self._db.close()

    def _write(self) -> None:
        folder = Path(tempfile.gettempdir())
        with disk.translated(folder), connection.translated(folder / "evidence-ids"):
            if self._db is None:
                self._db = _open()
            self._db.execute("BEGIN")
            self._db.executemany(
                "INSERT OR IGNORE INTO ids VALUES (?, ?)", sorted(self._recent.items())
            )
            self._db.execute("COMMIT")
        self._recent.clear()


def _open() -> Any:
    """A database in a file without a name, which the system takes back when it is closed, however that comes about.

    SQLite's own temporary databases will not do: the library may be built to keep them in memory.
    """
    handle, name = tempfile.mkstemp(prefix="evidence-ids-")
    os.close(handle)
    db = sqlite.connect(name, isolation_level=None)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("CREATE TABLE ids (id BLOB PRIMARY KEY, seq INTEGER) WITHOUT ROWID")
    finally:
        Path(name).unlink()
    return db
