"""Ledgers on disk to attack: the folder, what its rows, seals and index hold, and what a verifier says of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysqlite3 import dbapi2 as sqlite

from campaigns.report import ROOT
from campaigns.tamper.growing import Note, grow, key, long_life
from ledger.blobs import blobs_of
from ledger.book import DATABASE, INDEX, Ledger
from ledger.ed25519 import PrivateKey
from ledger.record import Record, parse
from ledger.store.connection import DAMAGE
from ledger.store.durable import FIRST_SEQ
from ledger.store.sqlite import SqliteStore
from verifiers.chain import Row
from verifiers.report import Level, Report
from verifiers.verify import Options, verify

EXAMPLE = ROOT / "examples" / "small-ledger"
STATE = "state"
LEDGER = "ledger"
TIME = "2027-01-01T00:00:00.000Z"
_WAL_EDITS = (
    "UPDATE records SET entry = zeroblob(100) WHERE seq = 3",
    "UPDATE records SET id = zeroblob(32) WHERE seq = 2",
    "DELETE FROM records WHERE seq > 4",
    "DELETE FROM seals",
    "UPDATE records SET prev = NULL WHERE seq = 2",
)


@dataclass
class DiskBase:
    """One ledger on disk, untampered.

    Attributes:
        folder: holds `ledger` and `state`, the writer's high-water files.
        key: the writer's key.
        rows, notes, records: what it holds.
        index, triggers: what its derived file and its guards hold.
        controls: what a verifier says of it, by level.
        wals: write-ahead logs of copies that were changed, and of another ledger.
        other: the ledger that those came from.
    """

    name: str
    folder: Path
    key: PrivateKey
    rows: list[Row] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    index: object = None
    triggers: object = None
    controls: dict[Level, Report] = field(default_factory=dict)
    wals: list[bytes] = field(default_factory=list)
    other: DiskBase | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.rows)

    def copy(self, target: Path) -> Path:
        """A copy of the whole; its ledger folder."""
        shutil.copytree(self.folder, target)
        return target / LEDGER

    def naming(self, digest: str) -> int | None:
        """The seq of the first record that stands on a blob."""
        for record in self.records:
            if digest in {name for name, _ in blobs_of(record.kind, record.body)}:
                return record.seq
        return None


def make_bases(folder: Path) -> list[DiskBase]:
    """The example that verifies at level blobs, and a longer ledger of many pages."""
    example = folder / "example"
    shutil.copytree(EXAMPLE, example / LEDGER)
    long = folder / "long"
    grown = grow(long_life())
    grown.seal()
    grown.world.write(long / LEDGER)
    with _store(long / LEDGER) as store, store.transaction():
        for size, note in grown.notes:
            store.put_seal(size, note)
    example_key = PrivateKey.from_seed(b"example writer".ljust(32, b"."))
    bases = [DiskBase("example", example, example_key), DiskBase("long life", long, key("writer"))]
    _fill(bases[0], ("records", "blobs"))
    _fill(bases[1], ("records",))
    for base, other in zip(bases, reversed(bases), strict=True):
        base.wals = _wals(base, folder / "wal") + _wals(other, folder / "wal")[:1]
        base.other = other
    return bases


@contextmanager
def _store(folder: Path) -> Iterator[SqliteStore]:
    """A writer's store, closed at the end."""
    store = SqliteStore.open_writer(folder / DATABASE)
    try:
        yield store
    finally:
        store.close()


def open_writer(base: DiskBase, folder: Path) -> Ledger:
    """A ledger opened to append, held against the high-water files beside it."""
    return Ledger.open(folder, key=base.key, clock=lambda: TIME, state_dir=folder.parent / STATE)


def _fill(base: DiskBase, levels: tuple[Level, ...]) -> None:
    ledger = base.folder / LEDGER
    state = base.folder / STATE
    state.mkdir(mode=0o700)
    with open_writer(base, ledger) as opened:
        opened.seen()  # takes the chain in, so that closing writes the mark
    store = SqliteStore.open_reader(ledger / DATABASE)
    base.rows, base.notes = list(store.rows(FIRST_SEQ)), list(store.seals())
    store.close()
    base.records = [parse(entry, signature) for _, _, signature, entry in base.rows]
    base.index = content_of(ledger / INDEX, read_index)
    base.triggers = content_of(ledger / DATABASE, read_triggers)
    for level in levels:
        report = verify(ledger, Options(level=level, workers=1))
        if report.verdict != "verified" or not base.notes:
            raise RuntimeError(f"{base.name} does not verify untampered: {report.findings}")
        base.controls[level] = report


def content_of(path: Path, read: Callable[[Any], object]) -> object:
    """What a reader finds in a database, None where it cannot be read."""
    db = sqlite.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    try:
        return read(db)
    except DAMAGE:
        return None
    finally:
        db.close()


def read_index(db: Any) -> object:
    """Everything that a derived index holds."""
    tables = ("ids", "kinds", "edges", "indexed")
    found = [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]  # noqa: S608 - our own names
    return [sorted(rows, key=repr) for rows in found]


def read_triggers(db: Any) -> object:
    """Name and text of every trigger."""
    return sorted(
        db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    )


def _wals(base: DiskBase, scratch: Path) -> list[bytes]:
    """The write-ahead logs that edits of copies leave, each good in itself."""
    found: list[bytes] = []
    for edit in _WAL_EDITS:
        copy = base.copy(scratch) / DATABASE
        db = sqlite.connect(str(copy), isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA ignore_check_constraints = ON")
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(edit)
        found.append(copy.with_name(copy.name + "-wal").read_bytes())
        db.close()
        shutil.rmtree(scratch)
    return found
