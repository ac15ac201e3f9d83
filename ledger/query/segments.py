"""Sealed history: which stretches of a ledger lie in Parquet files, and in which (see docs/history.md).

A segment is a complete subtree of the ledger's tree: its root, the id of its last record and, for each table, one
Parquet file. The list of segments lies in the user's own cache, never in the ledger's folder, and names every file
by its digest: a file that somebody else put there is not read. All of it may be deleted at any time.

Trusted for: that these files came from the rows whose ids have this root, because this user's own process read
them. Whether the ledger is the same one still is asked each time (`sealed`).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

from pydantic import ValidationError

from ledger import canonical
from ledger.digests import PREFIX, sha256
from ledger.errors import EvidenceError
from ledger.query.columns import columns
from ledger.query.names import AS_OF, READ
from ledger.records.base import Count, Digest, Hex32, Model, Positive

if TYPE_CHECKING:
    from collections.abc import Iterator

FROM_RECORDS = 1_000_000
UNIT_RECORDS = 4096
UNITS_A_SEGMENT = 16
TAIL_UNITS = 4
MANIFEST = "segments.json"
MANIFEST_MAX_BYTES = 64 << 20
TABLES = tuple(name for name in READ if name != AS_OF)
"""Tables that a segment has, each in a file where it has rows."""

Stretch = tuple[int, int]


@dataclass(frozen=True)
class History:
    """Where segments lie and from which size of a ledger on they are made.

    Args:
        folder: of all ledgers' segments.
        from_records: a ledger with fewer records has none, unless somebody made them.
    """

    folder: Path
    from_records: int = FROM_RECORDS

    @property
    def unit(self) -> int:
        """The least segment in records, a power of two; a small threshold makes small ones."""
        most = max(1, min(UNIT_RECORDS, self.from_records // UNITS_A_SEGMENT))
        return 1 << (most.bit_length() - 1)

    def of(self, ledger_id: str) -> Path:
        """The folder of one ledger's segments.

        Raises:
            EvidenceError: `SEGMENT_INVALID`, the id is not a digest.
        """
        digits = ledger_id.removeprefix(PREFIX)
        if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
            raise invalid(f"{ledger_id[:80]!r} is not the id of a record")
        return self.folder / digits


class SegmentFile(Model):
    """One table's rows of a segment: digest and size of the file, and what the system said of it when it was checked.

    Args:
        stat: inode, size, modification and change time in nanoseconds: while they are the same the file is not
            hashed again; its pages have checksums of their own.
    """

    version: ClassVar[int] = 1
    digest: Digest
    bytes: Positive
    rows: Positive
    stat: str


class Segment(Model):
    """Records from `start` to before `stop`: a complete subtree with this root, whose last record has the id `last`."""

    version: ClassVar[int] = 1
    start: Count
    stop: Positive
    root: Hex32
    last: Digest
    files: dict[str, SegmentFile]


class Manifest(Model):
    """The segments of one ledger, one after the other from its beginning.

    Args:
        layouts: a digest of the columns of each table that has files.
        ledger: id of record 0.
        segments: without a gap.
    """

    version: ClassVar[int] = 1
    layouts: dict[str, Digest]
    ledger: Digest
    segments: list[Segment]

    @property
    def stop(self) -> int:
        """How many records are sealed."""
        return self.segments[-1].stop if self.segments else 0

    @classmethod
    def read(cls, folder: Path, ledger_id: str) -> Self | None:
        """The list in a ledger's folder of segments, None where there is none.

        Raises:
            EvidenceError: `SEGMENT_INVALID`, it is damaged or another ledger's; `UNSAFE_PATH`.
        """
        try:
            with opened(folder / MANIFEST) as stream:
                data = stream.read(MANIFEST_MAX_BYTES)
        except FileNotFoundError:
            return None
        try:
            found = cls.model_validate(canonical.decode(data))
        except (EvidenceError, ValidationError) as error:
            raise invalid(f"{MANIFEST} is damaged: {str(error)[:200]}") from None
        if found.ledger != ledger_id:
            raise invalid(f"{MANIFEST} is of another ledger")
        _check_order(found.segments)
        return found

    def encode(self) -> bytes:
        """The file's content."""
        return canonical.encode(self.model_dump())


def stretches(stop: int, unit: int) -> Iterator[Stretch]:
    """The segments of this many records: whole ones, then ever smaller complete subtrees down to `unit`.

    What is left beyond the last one, less than `unit`, is not sealed.
    """
    size, start = unit * UNITS_A_SEGMENT, 0
    while size >= unit:
        while start + size <= stop:
            yield start, start + size
            start += size
        size //= 2


def path_of(folder: Path, stretch: Stretch, table: str) -> Path:
    """Where a table's file of a segment lies; no text of a manifest is part of it."""
    if table not in TABLES:
        raise invalid(f"there is no table {table[:60]!r}")
    start, stop = stretch
    return folder / f"{start:012d}-{stop:012d}-{table}.parquet"


def opened(path: Path) -> IO[bytes]:
    """A regular file to read, no link followed.

    Raises:
        FileNotFoundError: there is none.
        EvidenceError: `UNSAFE_PATH`, it is something else.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise EvidenceError("UNSAFE_PATH", f"{path}: {error.strerror}") from error
    stream = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        stream.close()
        raise EvidenceError("UNSAFE_PATH", f"{path} is not a regular file")
    return stream


def stat_of(stream: IO[bytes]) -> str:
    """What changes when a file is changed or another is put in its place."""
    found = os.fstat(stream.fileno())
    numbers = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return " ".join(map(str, numbers))


@cache
def layout(table: str) -> str:
    """Digest of a table's columns."""
    there: list[Any] = [[item.name, item.type] for item in columns(table)]
    return sha256(canonical.encode(there))


def invalid(message: str) -> EvidenceError:
    """A segment that is not what the ledger says."""
    return EvidenceError("SEGMENT_INVALID", message)


def _check_order(segments: list[Segment]) -> None:
    """Each begins where the one before ends, and is a complete subtree there."""
    for before, after in pairwise(segments):
        if before.stop != after.start:
            raise invalid(f"{MANIFEST}: a gap at {before.stop}")
    for item in segments:
        unknown = sorted(item.files.keys() - set(TABLES))
        if unknown:
            raise invalid(f"{MANIFEST}: there is no table {unknown[0][:60]!r}")
        leaves = item.stop - item.start
        if leaves < 1 or leaves & (leaves - 1) or item.start % leaves:
            raise invalid(f"{MANIFEST}: {item.start} to {item.stop} is no complete subtree")
    if segments and segments[0].start != 0:
        raise invalid(f"{MANIFEST}: the first segment begins at {segments[0].start}")
