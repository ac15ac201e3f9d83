"""What is done to a ledger folder in the campaign `rollback`: older copies, cut tails, other histories.

Each attack puts something else in a ledger's place.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from random import Random

from campaigns.rollback_forgeries import FORGERIES
from campaigns.rollback_story import WAL, Story
from ledger.book import DATABASE


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
    **FORGERIES,
    "fork, shorter": _fork_shorter,
    "fork, same size": _fork_of_the_same_size,
    "fork, longer": _fork_longer,
}
