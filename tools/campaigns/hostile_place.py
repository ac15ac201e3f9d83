"""Where a case happens: a folder with a user's home, a ledger of theirs, somebody's files, and what is outside."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from world import grown

from campaigns.hostile_child import Attack, Ended, call
from ledger.book import DATABASE
from ledger.errors import LedgerError
from ledger.store.sqlite import SqliteStore

ORIGIN = "example.com/hostile"
CANARY = b"nobody asked for this to be changed\n"


@dataclass(frozen=True)
class Place:
    """The folders of one case.

    Attributes:
        folder: all of them.
        ledger: the user's own ledger, made by `evidence init`.
        stranger: a whole ledger of somebody else, with every kind of record.
        input: where hostile files go.
        outside: what no call may touch.
    """

    folder: Path

    @property
    def ledger(self) -> Path:
        """The user's own ledger."""
        return self.folder / "ledger"

    @property
    def stranger(self) -> Path:
        """Somebody else's ledger."""
        return self.folder / "stranger"

    @property
    def input(self) -> Path:
        """Where hostile files go."""
        return self.folder / "input"

    @property
    def outside(self) -> Path:
        """What no call may touch."""
        return self.folder / "outside"

    @property
    def state(self) -> Path:
        """Where the user's high-water files lie."""
        return self.folder / "home/state/evidence-ledger/high-water"

    def own(self, *words: str | bytes | Path) -> tuple[str | bytes, ...]:
        """A call's words with the user's ledger named."""
        return (
            "--ledger",
            str(self.ledger),
            *(w if isinstance(w, bytes) else str(w) for w in words),
        )

    def theirs(self, *words: str | bytes | Path) -> tuple[str | bytes, ...]:
        """A call's words with the stranger's ledger named."""
        return (
            "--ledger",
            str(self.stranger),
            *(w if isinstance(w, bytes) else str(w) for w in words),
        )

    def put(self, name: str | bytes, data: bytes) -> Path:
        """A hostile file."""
        path = self.input / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


class Base:
    """What every case starts from, made once.

    Args:
        folder: where it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("home", "input", "outside", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "outside/canary").write_bytes(CANARY)
        done = call(Attack(("init", str(folder / "ledger"), "--origin", ORIGIN)), folder)
        assert done.code == 0, done.err
        grown().write(folder / "stranger")

    def copy(self, to: Path) -> Place:
        """A case's own copy."""
        shutil.copytree(self._folder, to, symlinks=True)
        return Place(to)


@dataclass(frozen=True)
class Kept:
    """What a case's folders held before the call."""

    folders: dict[str, str]
    records: int | None

    @classmethod
    def of(cls, place: Place, attack: Attack) -> Kept:
        """Look at them."""
        kept = {name: listing(place.folder / name) for name in attack.leaves}
        return cls(kept, None if "ledger" in attack.leaves else size(place.ledger))

    def problems(self, place: Place, ended: Ended, attack: Attack) -> list[str]:
        """What was changed outside, left half-written, or recorded by a call that was refused."""
        found = [
            f"{name} was changed"
            for name, before in self.folders.items()
            if listing(place.folder / name) != before
        ]
        refused = ended.code != 0 and not attack.may_record and self.records is not None
        if refused and size(place.ledger) != self.records:
            found.append("a refused call left a record")
        found += [f"left half-written: {path.name}" for path in _leftovers(place)]
        return found


def size(ledger: Path) -> int | None:
    """How many records a ledger has, None where it cannot be told."""
    if not (ledger / DATABASE).is_file():
        return None
    try:
        store = SqliteStore.open_reader(ledger / DATABASE)
    except LedgerError:
        return None
    try:
        return store.tail()[0]
    finally:
        store.close()


def listing(folder: Path) -> str:
    """One digest over names, kinds, modes and bytes below a folder."""
    state = hashlib.sha256()
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            path = Path(parent, name)
            status = path.lstat()
            state.update(os.fsencode(path) + f"\0{status.st_mode}\0{status.st_size}\n".encode())
            if path.is_file() and not path.is_symlink() and status.st_size < 1 << 20:
                state.update(path.read_bytes())
    return state.hexdigest()


def _leftovers(place: Place) -> list[Path]:
    return [
        Path(parent, name)
        for root in (place.ledger / "blobs", place.folder / "home")
        for parent, _, files in os.walk(root)
        for name in files
        if name.startswith(".new-") or name.endswith((".tmp", ".new"))
    ]
