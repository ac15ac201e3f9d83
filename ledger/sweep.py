"""Blobs that no record names: found, and taken away where that can hurt nobody.

A blob lies there before its record, so one without a record may be the work of somebody who is about to append. Therefore

    only what was last written or used again before a grace period is taken; using a blob again renews its time
    each is taken under the ledger's write lock, after the records that others appended since were looked at: an
    append either came before, and its blobs are named, or comes after, and is refused where it names what is gone
    a ledger that is behind its high-water file, or holds a seal beyond its end, is not swept: what it lacks may come back

Each removal is one unlink; whoever is killed in between leaves a ledger that is as good as before.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ledger import disk, highwater, seals
from ledger import record as records
from ledger.blobs import BlobStore, blobs_of
from ledger.digests import PREFIX, is_digest
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.reading import BLOBS
from ledger.store.choose import open_reader, open_writer
from ledger.store.durable import Store

A_TRANSACTION = 256
GRACE_S = 24 * 3600


@dataclass
class Swept:
    """What a sweep found.

    Attributes:
        digests: blobs that no record names and that were old enough: taken, or to be taken.
        leftovers: names of half-written files that were old enough.
        size_bytes: of both.
        young: blobs and half-written files that no record names and that are not old enough.
        kept: how many blobs records name.
    """

    digests: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    size_bytes: int = 0
    young: int = 0
    kept: int = 0


def sweep(
    folder: Path,
    *,
    now_s: float,
    state_dir: Path | None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Swept:
    """Take away blobs that no record names.

    Args:
        folder: the ledger's.
        now_s: the time, in seconds since 1970, as files have it.
        state_dir: where high-water files are kept; None for nowhere.
        grace_s: what was written or used again later than so many seconds ago stays.
        dry_run: only say what would be taken.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`, `LEDGER_BUSY`, `OS_REFUSED`.
        EvidenceError: `LEDGER_ROLLED_BACK`, `LEDGER_FORKED`, `TAIL_CUT`; a record that cannot be read.
    """
    store = open_reader(folder) if dry_run else open_writer(folder)
    try:
        sweeping = _Sweeping(folder, store, now_s - grace_s)
        sweeping.survey(state_dir)
        return sweeping.look() if dry_run else sweeping.take()
    finally:
        store.close()


class _Sweeping:
    """One sweep of one ledger."""

    def __init__(self, folder: Path, store: Store, before_s: float) -> None:
        self._store = store
        self._blobs = BlobStore(folder / BLOBS)
        self._before_s = before_s
        self._tree = CompactRange()
        self._named: set[str] = set()
        self._swept = Swept()

    def survey(self, state_dir: Path | None) -> None:
        """Read every record, and see that none is known to be lost."""
        row = self._store.row(0)
        first = None if row is None else records.parse(row[3], row[2])
        mark = highwater.read(state_dir, first.id) if state_dir and first else None
        newest = self._store.newest_seal()
        if mark is not None:
            self._read(mark.size)
            highwater.standing(mark, self._tree.size, lambda _: self._tree.root())
        self._read()
        if newest is not None and newest[0] > self._tree.size:
            raise seals.tail_cut(newest[0], self._tree.size)

    def look(self) -> Swept:
        """What would be taken."""
        for path, digest in self._candidates():
            if digest not in self._named:
                self._note(path, digest, taken=self._is_old(path))
        return self._result()

    def take(self) -> Swept:
        """Take it, a few at a time, so that nobody waits long to append."""
        candidates = self._candidates()
        while several := list(islice(candidates, A_TRANSACTION)):
            with self._store.transaction():
                self._read()
                for path, digest in several:
                    if digest not in self._named:
                        self._remove(path, digest)
        return self._result()

    def _remove(self, path: Path, digest: str | None) -> None:
        with disk.translated(path), self._blobs.lock(fcntl.LOCK_EX):
            old = self._is_old(path)
            self._note(path, digest, taken=old)
            if old:
                path.unlink(missing_ok=True)

    def _note(self, path: Path, digest: str | None, *, taken: bool) -> None:
        if not taken:
            self._swept.young += 1
            return
        with suppress(FileNotFoundError):
            self._swept.size_bytes += path.lstat().st_size
        if digest is None:
            self._swept.leftovers.append(path.name)
        else:
            self._swept.digests.append(digest)

    def _is_old(self, path: Path) -> bool:
        try:
            return path.lstat().st_mtime < self._before_s
        except FileNotFoundError:
            return False  # whoever was writing it has finished

    def _read(self, stop: int | None = None) -> None:
        """Take in the records from where the last reading ended."""
        for _, _, signature, entry in self._store.rows(self._tree.size, stop):
            record = records.sound(records.parse(entry, signature))
            self._named.update(digest for digest, _ in blobs_of(record.kind, record.body))
            self._tree.append(bytes.fromhex(record.id[7:]))

    def _candidates(self) -> Iterator[tuple[Path, str | None]]:
        """Every plain file in the folders of blobs with its digest, or None for a half-written one."""
        root = self._blobs.folder / "sha256"
        if root.is_symlink() or self._blobs.folder.is_symlink():
            raise EvidenceError("UNSAFE_PATH", "the folder of blobs is a symbolic link")
        with disk.translated(root):
            for item in sorted(_entries(root), key=lambda entry: entry.name):
                if item.is_dir(follow_symlinks=False) and len(item.name) == 2:
                    yield from _blobs_in(Path(item.path))
                elif item.name.startswith(".new-") and _is_plain(item):
                    yield Path(item.path), None

    def _result(self) -> Swept:
        self._swept.kept = len(self._named)
        return self._swept


def _blobs_in(folder: Path) -> Iterator[tuple[Path, str]]:
    for item in sorted(_entries(folder), key=lambda entry: entry.name):
        digest = f"{PREFIX}{folder.name}{item.name}"
        if is_digest(digest) and _is_plain(item):
            yield Path(item.path), digest


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []


def _is_plain(item: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISREG(item.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
