"""What an attack made of a ledger folder and its high-water file, and what follows from that."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from random import Random

from campaigns.rollback_attacks import ATTACKS
from campaigns.rollback_story import Story, tell
from campaigns.rollback_world import (
    Case,
    Content,
    History,
    Named,
    alarm,
    content,
)
from ledger.book import INDEX
from ledger.highwater import HighWater, path_of

MARKS = ("present", "lagging", "absent", "empty", "damaged", "foreign")
SEALS = ("none", "older", "equal", "beyond", "fork")
DAMAGED = "HIGHWATER_INVALID"


@dataclass
class Scene:
    """A ledger after an attack, and all that decides what is due.

    Attributes:
        story: how it came about.
        found: what the database holds, None where it cannot be read.
        mark: the history whose head the high-water file of the ledger holds, None for no file.
        readable_mark: the file is absent or a head of this ledger.
    """

    story: Story
    found: Content | None
    mark: History | None
    readable_mark: bool

    @property
    def now(self) -> History:
        """The history in the folder."""
        return self.found.ids if self.found else ()

    @property
    def good(self) -> bool:
        """Whether somebody with the keys wrote exactly this history."""
        return len(self.now) > 0 and any(
            one[: len(self.now)] == self.now for one in self.story.known
        )

    @property
    def alarm(self) -> str:
        """What the high-water file makes of it."""
        return alarm(self.now, self.mark, Named()) if self.readable_mark else DAMAGED


def attacked(case: Case, random: Random, attack: str, mark: str) -> Scene:
    """A story, and what one attack and one fate of the high-water file make of it."""
    story = tell(case, random)
    ATTACKS[attack](story, random)
    if random.random() < 0.3 and story.place.exists():
        shutil.rmtree(story.place / "blobs", ignore_errors=True)
    if random.random() < 0.3 and story.place.exists():
        (story.place / INDEX).unlink(missing_ok=True)
    held = _set_mark(story, mark, random)
    found = content(story.place, story.scratch)
    same_ledger = found is None or not found.ids or found.ids[0] == story.whole[0]
    readable = mark not in ("damaged", "foreign") or not same_ledger
    return Scene(story, found, held if same_ledger else None, readable)


def _set_mark(story: Story, mark: str, random: Random) -> History | None:
    """Give the high-water file its fate; the history that it then speaks of."""
    path = path_of(story.state, story.whole[0])
    data = path.read_bytes()
    if mark == "present":
        return story.whole
    if mark == "lagging":  # as a crash between commit and write leaves it
        path.write_bytes(story.old_mark)
        return story.before
    if mark == "absent":
        path.unlink()
    elif mark == "empty":
        path.write_bytes(b"")
    elif mark == "damaged":
        path.write_bytes(data[: random.randrange(1, len(data))])
    else:
        other = HighWater("sha256:" + "1" * 64, 5, bytes(32), "sha256:" + "2" * 64)
        path.write_bytes(other.encode())
    return None


def mark_bytes(story: Story) -> bytes | None:
    """The high-water file as it is."""
    path = path_of(story.state, story.whole[0])
    return path.read_bytes() if path.exists() else None
