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

ROOM_BYTES = 16_384


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
    def reserved(cls, out: Path) -> Self:
        """Take room for a small file beside the one that is to be.

        Raises:
            UsageError: `INPUT_MISSING`, there is no such folder; `DISK_FULL`; `OS_REFUSED`.
        """
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
                self.path.write_bytes(data)
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
