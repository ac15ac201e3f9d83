"""A file that a command is to write after it has recorded something: room for it is taken before.

A disk that is full, a folder that is read-only or a name that cannot be a file is then refused while nothing is recorded yet. The
file appears whole or not at all. A device or pipe has no room to take; what it refuses is found when it is written.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ledger import disk
from ledger.errors import UsageError
from ledger.store.address import POINTER
from ledger.store.choose import DATABASE

ROOM_BYTES = 16_384
_HEAD_BYTES = 65_536
_PRIVATE = b"PRIVATE KEY"
_OF_THE_SYSTEM = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


@dataclass
class Target:
    """A file to be written.

    Attributes:
        path: where it is to lie, links followed.
        room: a file beside it that holds its room; None for a device or pipe.
    """

    path: Path
    room: Path | None

    @classmethod
    def reserved(cls, out: Path, *, new: bool = False) -> Self:
        """Take room for a small file beside the one that is to be.

        Args:
            out: where it is to lie.
            new: nobody named this place, so nothing may lie there yet, not even a link.

        Raises:
            UsageError: `INPUT_MISSING`, there is no such folder; `DISK_FULL`; `OS_REFUSED`; `OUT_REFUSED`, it would lie in a
                ledger's folder, over a private key, or where a link leads.
        """
        _refuse_precious(out, new=new)
        if not out.parent.is_dir():
            raise UsageError("INPUT_MISSING", f"there is no folder {out.parent}", field="--out")
        if out.is_dir():
            raise UsageError("OS_REFUSED", f"{out} is a folder", field="--out")
        if out.exists() and not out.is_file():
            return cls(out, None)
        path = out.resolve()
        target = cls(path, path.with_name(f".{path.name}.{secrets.token_hex(8)}"))
        try:
            target._take_room()
        except UsageError:
            target.release()
            raise
        return target

    def _take_room(self) -> None:
        assert self.room is not None
        with disk.translated(self.path):
            if self.path.exists():
                self.path.open(
                    "r+b"
                ).close()  # a file that may not be written is not replaced either
            with self.room.open("xb") as stream:
                stream.write(bytes(ROOM_BYTES))
                stream.flush()
                os.fsync(stream.fileno())

    def write(self, data: bytes) -> None:
        """Put the bytes into the room and the file into its place; one that was there keeps its mode.

        Raises:
            UsageError: `DISK_FULL`, `OS_REFUSED`.
        """
        with disk.translated(self.path):
            if self.room is None:
                _hand_over(self.path, data)
                return
            with self.room.open("r+b") as stream:
                stream.write(data)
                stream.truncate()
                stream.flush()
                os.fsync(stream.fileno())
            if self.path.exists():
                self.room.chmod(stat.S_IMODE(self.path.stat().st_mode))
            self.room.replace(self.path)

    def release(self) -> None:
        """Give the room back, where it was not used."""
        if self.room is not None:
            self.room.unlink(missing_ok=True)


def put(out: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file whole or not at all; see `Target.reserved`."""
    target = Target.reserved(out, new=new)
    try:
        target.write(data)
    finally:
        target.release()


def _refuse_precious(out: Path, *, new: bool) -> None:
    """A command's output replaces no ledger, no key, and nothing at the end of somebody's link."""
    if new and os.path.lexists(out):
        raise UsageError(
            "OUT_REFUSED",
            f"{out} is there already",
            field="--out",
            hint="name a place with --out FILE",
        )
    if out.is_symlink() and out.parent not in _OF_THE_SYSTEM:
        raise UsageError("OUT_REFUSED", f"{out} is a link", field="--out")
    for folder in out.resolve().parents:
        if (folder / DATABASE).exists() or (folder / POINTER).exists():
            raise UsageError("OUT_REFUSED", f"{out} lies inside the ledger {folder}", field="--out")
    with disk.translated(out):
        if out.is_file():
            with out.open("rb") as stream:
                holds_key = _PRIVATE in stream.read(_HEAD_BYTES)
            if holds_key:
                raise UsageError("OUT_REFUSED", f"{out} holds a private key", field="--out")


def _hand_over(path: Path, data: bytes) -> None:
    """Write to a device or pipe; a pipe that nobody reads is refused at once."""
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with open(handle, "wb") as stream:  # noqa: PTH123 - a handle, not a path
        stream.write(data)
