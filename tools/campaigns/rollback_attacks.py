"""What is done to a ledger folder in the campaign `rollback`: older copies, cut tails, other histories.

A `Story` is a ledger that was backed up in the middle of its life, closed and live (database with its WAL beside
it), and went on. Each attack puts something else in its place.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from world import ORIGIN, key, row_of

from campaigns.rollback_world import Case, History, history, root_of
from ledger import record as records
from ledger import statements
from ledger.book import DATABASE
from ledger.dsse import pae
from ledger.highwater import path_of
from ledger.records import KINDS
from ledger.records.base import Seen
from ledger.restores import KIND
from ledger.store.sqlite import SqliteStore

WAL = DATABASE + "-wal"


@dataclass
class Story:
    """One ledger's life, and what an attacker kept of it.

    Attributes:
        place: the ledger folder.
        state: the writing machine's high-water folder.
        backup: the folder as it was, closed.
        live_then, live_now: the database and its WAL while a writer had them open, then and at the end.
        before, whole: the history at the backup, and at the end.
        old_mark: the high-water file's bytes at the backup.
        seals: a signed note by what it is to the backup.
        known: every history that was written by somebody with the keys.
    """

    case: Case
    place: Path
    state: Path
    backup: Path
    live_then: Path
    live_now: Path
    before: History = ()
    whole: History = ()
    old_mark: bytes = b""
    seals: dict[str, bytes] = field(default_factory=dict)
    known: list[History] = field(default_factory=list)

    @property
    def scratch(self) -> Path:
        """Where databases are copied to be read."""
        return self.case.folder / "scratch"

    def learn(self, place: Path) -> History:
        """Take in another history that somebody with the keys wrote."""
        found = history(place, self.scratch)
        self.known.append(found)
        return found


def tell(case: Case, random: Random) -> Story:
    """A ledger that lived, was backed up, and went on."""
    story = Story(
        case,
        place=case.folder / "ledger",
        state=case.folder / "state",
        backup=case.folder / "backup",
        live_then=case.folder / "live-then",
        live_now=case.folder / "live-now",
    )
    case.create(story.place, story.state)
    _notes(story, random.randrange(4))
    story.seals["older"] = case.seal(story.place, story.state)
    _notes(story, random.randrange(1, 4))
    _live(story, story.live_then)
    story.seals["equal"] = case.seal(story.place, story.state)
    shutil.copytree(story.place, story.backup)
    story.before = story.learn(story.place)
    story.old_mark = path_of(story.state, story.before[0]).read_bytes()
    story.seals["fork"] = _forked_seal(story)
    _notes(story, random.randrange(3))
    story.seals["beyond"] = case.seal(story.place, story.state)
    _notes(story, random.randrange(3))
    _live(story, story.live_now)
    story.whole = story.learn(story.place)
    return story


def _notes(story: Story, count: int) -> None:
    if count:
        story.case.note(story.place, story.state, count)


def _live(story: Story, to: Path) -> None:
    """The database and its WAL while a writer has both open, one record after the last checkpoint."""
    to.mkdir()
    with story.case.open(story.place, story.state) as ledger:
        ledger.append("note.added", {"text": "live"})
        for name in (DATABASE, WAL):
            shutil.copy(story.place / name, to / name)


def _forked_seal(story: Story) -> bytes:
    """The seal of a history that left the ledger's at the backup."""
    other = story.case.folder / "forked"
    shutil.copytree(story.backup, other)
    story.case.note(other, None)
    made = story.case.seal(other, None)
    story.learn(other)
    return made


def _nothing(_story: Story, _random: Random) -> None:
    """A control: the ledger as it is."""


def _folder(story: Story, _random: Random) -> None:
    shutil.rmtree(story.place)
    shutil.copytree(story.backup, story.place)


def _database(story: Story, _random: Random) -> None:
    shutil.copy(story.backup / DATABASE, story.place / DATABASE)


def _live_copy(story: Story, _random: Random) -> None:
    for name in (DATABASE, WAL):
        shutil.copy(story.live_then / name, story.place / name)


def _database_without_its_wal(story: Story, _random: Random) -> None:
    shutil.copy(story.live_then / DATABASE, story.place / DATABASE)


def _only_the_wal(story: Story, _random: Random) -> None:
    shutil.copy(story.live_then / WAL, story.place / WAL)


def _old_wal_beside_the_live_database(story: Story, _random: Random) -> None:
    shutil.copy(story.live_now / DATABASE, story.place / DATABASE)
    shutil.copy(story.live_then / WAL, story.place / WAL)


def _new_wal_beside_the_old_database(story: Story, _random: Random) -> None:
    shutil.copy(story.live_then / DATABASE, story.place / DATABASE)
    shutil.copy(story.live_now / WAL, story.place / WAL)


def _cut(story: Story, random: Random, *, seals_too: bool) -> None:
    """Delete the newest rows by SQL; the guard trigger is there again afterwards."""
    size = random.randrange(3, len(story.whole))
    db = sqlite3.connect(story.place / DATABASE, isolation_level=None)
    (trigger,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'records_no_delete'"
    ).fetchone()
    db.execute("DROP TRIGGER records_no_delete")
    db.execute("DELETE FROM records WHERE seq >= ?", (size,))
    db.execute(trigger)
    if seals_too:
        _cut_seals(db, size)
    db.close()


def _cut_seals(db: sqlite3.Connection, size: int) -> None:
    rows = db.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'seals'"
    ).fetchall()
    for name, _ in rows:
        db.execute(f"DROP TRIGGER {name}")
    db.execute("DELETE FROM seals WHERE size > ?", (size,))
    for _, text in rows:
        db.execute(text)


def _tail_and_seals(story: Story, random: Random) -> None:
    _cut(story, random, seals_too=True)


def _tail_alone(story: Story, random: Random) -> None:
    _cut(story, random, seals_too=False)


def _no_database(story: Story, _random: Random) -> None:
    for name in (DATABASE, WAL, DATABASE + "-shm"):
        (story.place / name).unlink(missing_ok=True)


def _begun_again(story: Story, _random: Random) -> None:
    shutil.rmtree(story.place)
    story.case.create(story.place, None)
    story.learn(story.place)


def _begun_again_by_another(story: Story, _random: Random) -> None:
    shutil.rmtree(story.place)
    story.case.create(story.place, None, root="another root")
    story.learn(story.place)


def _forged(story: Story, writer: str) -> None:
    """The older copy with a restore record at its end that root never stated."""
    _folder(story, Random(0))  # noqa: S311 - not used
    ids = story.before
    lost = {"size": len(story.whole), "root": root_of(story.whole).hex()}
    body = {"lost_from": len(ids), "high_water": lost, "why": "trust me"}
    seen = Seen(size=len(ids), root=root_of(ids).hex())
    stated = statements.make(
        key("forger"),
        ledger=ORIGIN,
        kind=KIND,
        refs={},
        body=body,
        seal=seen,
        nonce=story.case.nonce(),
    )
    entry = records.build_entry(
        ledger=ORIGIN,
        seq=len(ids),
        prev=ids[-1],
        kind=KIND,
        schema=KINDS[KIND].version,
        time=story.case.clock(),
        actor=key("writer").id,
        refs={},
        body=body,
        statement=stated.model_copy(update={"key": key("root").id}),
    )
    made = records.parse(entry, key(writer).sign(pae(records.PAYLOAD_TYPE, entry)))
    store = SqliteStore.open_writer(story.place / DATABASE)
    with store.transaction():
        store.append([row_of(made)])
    store.close()


def _forged_by_a_stranger(story: Story, _random: Random) -> None:
    _forged(story, "forger")


def _forged_by_the_writer(story: Story, _random: Random) -> None:
    _forged(story, "writer")


def _fork(story: Story, count: int) -> None:
    """Another history from the backup on, of so many records."""
    _folder(story, Random(0))  # noqa: S311 - not used
    story.case.note(story.place, None, count)
    story.learn(story.place)


def _fork_shorter(story: Story, random: Random) -> None:
    lost = len(story.whole) - len(story.before)
    _fork(story, random.randrange(1, max(2, lost)))


def _fork_of_the_same_size(story: Story, _random: Random) -> None:
    _fork(story, len(story.whole) - len(story.before))


def _fork_longer(story: Story, random: Random) -> None:
    _fork(story, len(story.whole) - len(story.before) + random.randrange(1, 4))


ATTACKS: dict[str, Callable[[Story, Random], None]] = {
    "control": _nothing,
    "older folder": _folder,
    "older database": _database,
    "older database with its WAL": _live_copy,
    "older database without its WAL": _database_without_its_wal,
    "older WAL": _only_the_wal,
    "older WAL beside the live database": _old_wal_beside_the_live_database,
    "new WAL beside the older database": _new_wal_beside_the_old_database,
    "tail and its seals cut by SQL": _tail_and_seals,
    "tail cut by SQL, seals left": _tail_alone,
    "database deleted": _no_database,
    "begun again by the same root": _begun_again,
    "begun again by another root": _begun_again_by_another,
    "restore record forged by a stranger": _forged_by_a_stranger,
    "restore record forged by the writer": _forged_by_the_writer,
    "fork, shorter": _fork_shorter,
    "fork, same size": _fork_of_the_same_size,
    "fork, longer": _fork_longer,
}
