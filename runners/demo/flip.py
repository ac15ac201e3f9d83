"""One flipped byte in a copy of a ledger: what a storage administrator could do, and does not get away with."""

from __future__ import annotations

from pathlib import Path

from pysqlite3 import dbapi2 as sqlite

from ledger.book import DATABASE


def flip_one_byte(folder: Path) -> int:
    """Change one byte in the middle record of a copied ledger, past its guard triggers; the record's seq.

    Only ever used on a copy: the file is opened for nothing else in this process.
    """
    db = sqlite.connect(folder / DATABASE, isolation_level=None)
    try:
        (seq,) = db.execute("SELECT max(seq) / 2 FROM records").fetchone()
        db.execute("DROP TRIGGER records_no_update")
        (entry,) = db.execute("SELECT entry FROM records WHERE seq = ?", (seq,)).fetchone()
        place = len(entry) // 2
        changed = entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :]
        db.execute("UPDATE records SET entry = ? WHERE seq = ?", (changed, seq))
    finally:
        db.close()
    return int(seq)
