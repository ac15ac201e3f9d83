"""A ledger that was backed up in the middle of its life, closed and live (database with its WAL beside it), and went on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from campaigns.rollback_world import Case, History, history
from ledger.book import DATABASE
from ledger.highwater import path_of

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
