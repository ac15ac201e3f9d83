"""Where a verifier remembers ids: recent ones in memory, the rest in a private temporary database.

Nothing of the ledger's own index is trusted, so a pass builds its own. Memory stays bounded however
long the ledger is; SQLite removes the temporary file by itself.
"""

from __future__ import annotations

from pysqlite3 import dbapi2 as sqlite

RECENT_IDS = 32_768


class Scratch:
    """Ids of the records that passed, in order of seq."""

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._db = sqlite.connect("", isolation_level=None)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE ids (id BLOB PRIMARY KEY, seq INTEGER) WITHOUT ROWID")

    def add(self, raw_id: bytes, seq: int) -> None:
        """Remember a record."""
        self._recent[raw_id] = seq
        if len(self._recent) >= RECENT_IDS:
            self._db.execute("BEGIN")
            self._db.executemany(
                "INSERT OR IGNORE INTO ids VALUES (?, ?)", sorted(self._recent.items())
            )
            self._db.execute("COMMIT")
            self._recent.clear()

    def seq_of(self, raw_id: bytes) -> int | None:
        """Where the record stands, None where none such passed."""
        seq = self._recent.get(raw_id)
        if seq is None:
            row = self._db.execute("SELECT seq FROM ids WHERE id = ?", (raw_id,)).fetchone()
            seq = None if row is None else row[0]
        return seq

    def with_prefix(self, low: bytes, high: bytes) -> list[int]:
        """Seqs of up to three records whose raw id lies between two, both included."""
        found = [seq for raw, seq in self._recent.items() if low <= raw <= high]
        rows = self._db.execute(
            "SELECT seq FROM ids WHERE id >= ? AND id <= ? LIMIT 3", (low, high)
        )
        return sorted({*found, *(seq for (seq,) in rows)})[:3]

    def close(self) -> None:
        """Drop the temporary database."""
        self._db.close()
