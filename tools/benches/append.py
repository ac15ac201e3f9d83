"""Durable append in groups of a hundred, beside signing, a bare insert and fsync of the same bytes.

Both sides are signed by the same library, written with the same pragmas to the same disk, in turns, group by
group. What the ledger leaves for later (the index that `close` writes) is counted too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from pysqlite3 import dbapi2 as sqlite
from world import key, row_of

from benches.report import Row, Settings, Spent, ratios, timed
from benches.workload import Training, grown, make, open_ledger
from ledger.dsse import pae
from ledger.record import PAYLOAD_TYPE, Record
from ledger.store.connection import PAGE_BYTES, PRAGMAS

ROUNDS = 5


def run(settings: Settings) -> list[Row]:
    """An empty ledger, and one that is large already."""
    size = 1_000_000 if settings.full else 20_000
    groups = 60 if settings.full else 15
    empty = settings.scratch / "append-empty"
    large = settings.scratch / "append-large"
    for folder in (empty, large):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.with_suffix(".state"), ignore_errors=True)
    make(empty)
    source = grown(settings, size)
    for suffix in ("", ".state"):  # the high-water file too: opening looks at it
        shutil.copytree(source.with_suffix(suffix), large.with_suffix(suffix))
    os.sync()  # what was copied is not written while we measure
    rows = [*_measure(settings, empty, groups), *_measure(settings, large, groups)]
    for folder in (empty, large):
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_suffix(".state"))
    return rows


def _measure(settings: Settings, folder: Path, groups: int) -> list[Row]:
    settings.say(f"appending {ROUNDS} x {groups} groups of 100")
    ledger, opening = timed(open_ledger, folder)
    _, first = timed(ledger.state)
    size = ledger.size
    bare = Bare(folder.with_suffix(".bare"))
    training = Training(ledger).groups()
    pairs: list[tuple[Spent, Spent]] = []
    entry_bytes = 0
    for _ in range(ROUNDS):
        ours, theirs = Spent(), Spent()
        for _ in range(groups):
            drafts = next(training)
            appended, spent = timed(ledger.append_many, drafts)
            ours += spent
            entry_bytes += sum(len(record.entry) for record in appended)
            theirs += timed(bare.append, appended)[1]
        pairs.append((ours, theirs))
    _, closing = timed(ledger.close)
    bare.close()
    count = ROUNDS * groups * 100
    median = ratios(pairs)
    whole = ratios(
        [(sum((ours for ours, _ in pairs), closing), sum((b for _, b in pairs), Spent()))]
    )
    details: dict[str, Any] = {
        "median_of": ROUNDS,
        "appended": count,
        "entry_bytes": round(entry_bytes / count),
        "rounds": [{"ours": a.as_json(), "bare": b.as_json()} for a, b in pairs],
        "with_close": whole,
        "close": closing.as_json(),
        "per_s": round(count / sum(ours.wall_s for ours, _ in pairs)),
        "bare_per_s": round(count / sum(theirs.wall_s for _, theirs in pairs)),
    }
    return [
        Row(
            f"append at {size:,} records, wall", median["wall"], "ratio", "more", 0.6, 0.8, details
        ),
        Row(f"append at {size:,} records, cpu", median["cpu"], "ratio", "more", 0.6, 0.8),
        Row(f"append at {size:,} records, cpu with close", whole["cpu"], "ratio", "more", 0.6, 0.8),
        Row(
            f"opening to append at {size:,} records",
            round(opening.wall_s + first.wall_s, 3),
            "s",
            "less",
            details={"cpu_s": round(opening.cpu_s + first.cpu_s, 3)},
        ),
    ]


class Bare:
    """What an append cannot do without: a signature, an insert, a commit that is durable."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.path = path
        self._key = key("writer")
        self._db = sqlite.connect(str(path), isolation_level=None)
        self._db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        for name, value in PRAGMAS.items():
            self._db.execute(f"PRAGMA {name} = {value}")
        self._db.execute(
            "CREATE TABLE records (seq INTEGER PRIMARY KEY, id BLOB, prev BLOB, signature BLOB, entry BLOB) STRICT"
        )

    def append(self, records: list[Record]) -> None:
        """Sign and insert the bytes of records in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", self._rows(records))
        self._db.execute("COMMIT")

    def _rows(self, records: list[Record]) -> list[tuple[Any, ...]]:
        return [
            (seq, raw, prev, self._key.sign(pae(PAYLOAD_TYPE, entry)), entry)
            for seq, raw, prev, _, entry in map(row_of, records)
        ]

    def close(self) -> None:
        """Close and remove the file."""
        self._db.close()
        self.path.unlink()
