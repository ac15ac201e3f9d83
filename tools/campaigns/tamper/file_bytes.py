"""Attacks on the files as bytes: the database, what lies beside it, the blobs, the derived index."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from campaigns.tamper.disk import LEDGER, DiskBase
from ledger.book import BLOBS, DATABASE, INDEX

Change = Callable[[DiskBase, Path, Random], None]
"""Tampers with the ledger folder at a path, a copy of the base's."""
PAGES = (512, 1024, 4096, 8192)
BESIDE = ("-wal", "-shm", "-journal")


def _bytes(name: str, change: Callable[[bytearray, Random], bytearray]) -> Change:
    def run(_base: DiskBase, folder: Path, random: Random) -> None:
        path = folder / name
        path.write_bytes(change(bytearray(path.read_bytes()), random))

    return run


def _flipped(data: bytearray, random: Random) -> bytearray:
    for _ in range(random.choice((1, 1, 2, 16))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return data


def _header_flipped(data: bytearray, random: Random) -> bytearray:
    data[random.randrange(108)] ^= 1 << random.randrange(8)
    return data


def _overwritten(data: bytearray, random: Random) -> bytearray:
    start, length = random.randrange(len(data)), random.choice((4, 64, 700, 9000))
    filler = random.choice((bytes(length), b"\xff" * length, random.randbytes(length)))
    data[start : start + length] = filler[: len(data) - start]
    return data


def _pages_swapped(data: bytearray, random: Random) -> bytearray:
    size = random.choice(PAGES)
    count = len(data) // size
    one, two = (random.randrange(count) * size for _ in range(2))
    data[one : one + size], data[two : two + size] = data[two : two + size], data[one : one + size]
    return data


def _page_copied(data: bytearray, random: Random) -> bytearray:
    size = random.choice(PAGES)
    one, two = (random.randrange(len(data) // size) * size for _ in range(2))
    data[one : one + size] = data[two : two + size]
    return data


def _truncated(data: bytearray, random: Random) -> bytearray:
    size = random.choice((0, 1, 100, random.randrange(len(data)), len(data) // 8192 * 8192 - 8192))
    return data[:size]


def _extended(data: bytearray, random: Random) -> bytearray:
    return data + random.choice((b"\x00", bytes(8192), random.randbytes(9000), bytes(data)))


def _shifted(data: bytearray, random: Random) -> bytearray:
    """Bytes put in or taken out, so that all pages after them lie elsewhere."""
    start = random.randrange(len(data))
    if random.randrange(2):
        return data[:start] + random.randbytes(random.choice((1, 512, 8192))) + data[start:]
    return data[:start] + data[start + random.choice((1, 512, 8192)) :]


# --- beside the database ---------------------------------------------------------------------


def _wal_of_another(base: DiskBase, folder: Path, random: Random) -> None:
    """A log that is good in itself, of a changed copy or of another ledger: SQLite reads it as its own."""
    _beside(folder, "-wal").write_bytes(random.choice(base.wals))
    if random.randrange(2):
        _beside(folder, "-shm").write_bytes(
            random.choice((b"", bytes(32768), random.randbytes(32768)))
        )


def _wal_damaged(base: DiskBase, folder: Path, random: Random) -> None:
    data = bytearray(random.choice(base.wals))
    change = random.choice((_flipped, _truncated, _overwritten, _extended))
    _beside(folder, "-wal").write_bytes(change(data, random))


def _junk_beside(_base: DiskBase, folder: Path, random: Random) -> None:
    data = random.choice((b"", b"x", random.randbytes(5000), bytes(40_000)))
    _beside(folder, random.choice(BESIDE)).write_bytes(data)


def _journal_of_another(_base: DiskBase, folder: Path, random: Random) -> None:
    """A rollback journal with a good header: it asks whoever opens the file to undo something."""
    page = 8192
    pages = (folder / DATABASE).stat().st_size // page
    head = bytes.fromhex("d9d505f920a163d7") + (1).to_bytes(4, "big") + bytes(4)
    head += pages.to_bytes(4, "big") + (512).to_bytes(4, "big") + page.to_bytes(4, "big")
    number = random.randrange(1, pages + 1)
    old = random.choice((bytes(page), random.randbytes(page)))
    check = sum(old[place] for place in range(page - 200, 0, -200)) & 0xFFFFFFFF
    record = number.to_bytes(4, "big") + old + check.to_bytes(4, "big")
    _beside(folder, "-journal").write_bytes(head.ljust(512, b"\x00") + record)


def _special_beside(_base: DiskBase, folder: Path, random: Random) -> None:
    _special(_beside(folder, random.choice(BESIDE)), random)


def _beside(folder: Path, suffix: str) -> Path:
    return folder / (DATABASE + suffix)


def _special(path: Path, random: Random) -> None:
    """Something that is no plain file of one's own in a file's place."""
    _gone(path)
    kind = random.choice(("pipe", "folder", "full folder", "link", "dangling", "loop", "zero"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("folder", "full folder"):
        path.mkdir()
        if kind == "full folder":
            (path / "inside").write_bytes(b"x")
    else:
        targets = {
            "link": "/etc/passwd",
            "dangling": "nowhere",
            "loop": path.name,
            "zero": "/dev/zero",
        }
        path.symlink_to(targets[kind])


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _database_special(_base: DiskBase, folder: Path, random: Random) -> None:
    _special(folder / DATABASE, random)


# --- the derived index -----------------------------------------------------------------------


def _index_special(_base: DiskBase, folder: Path, random: Random) -> None:
    suffix = random.choice(("", "", *BESIDE))
    _special(folder / (INDEX + suffix), random)


def _index_junk(_base: DiskBase, folder: Path, random: Random) -> None:
    name = INDEX + random.choice(("", *BESIDE))
    (folder / name).write_bytes(random.choice((b"", b"not an index", random.randbytes(9000))))


def _index_of_another(base: DiskBase, folder: Path, random: Random) -> None:
    other = random.choice(("example", "long"))
    shutil.copyfile(base.folder.parent / other / "ledger" / INDEX, folder / INDEX)


# --- blobs -----------------------------------------------------------------------------------


def blob_files(folder: Path) -> list[Path]:
    """Every blob's file."""
    return sorted(path for path in (folder / BLOBS).rglob("*") if path.is_file())


def _blob_bytes(_base: DiskBase, folder: Path, random: Random) -> None:
    path = random.choice(blob_files(folder))
    data = bytearray(path.read_bytes())
    change = random.choice((_flipped, _overwritten, _extended, _shifted))
    _put(path, bytes(change(data, random)) if data else b"x")


def _blob_cut(_base: DiskBase, folder: Path, random: Random) -> None:
    path = random.choice(blob_files(folder))
    size = path.stat().st_size
    _put(path, path.read_bytes()[: random.choice((0, size // 2, max(size - 1, 0)))])


def _blob_gone(_base: DiskBase, folder: Path, random: Random) -> None:
    _gone(random.choice(blob_files(folder)))


def _blobs_swapped(_base: DiskBase, folder: Path, random: Random) -> None:
    one, two = random.sample(blob_files(folder), 2)
    first, second = one.read_bytes(), two.read_bytes()
    _put(one, second)
    _put(two, first)


def _blob_special(_base: DiskBase, folder: Path, random: Random) -> None:
    _special(random.choice(blob_files(folder)), random)


def _blob_linked(_base: DiskBase, folder: Path, random: Random) -> None:
    """A hard link to another blob's file, to a file of the same bytes, or a link to the very bytes."""
    path, other = random.sample(blob_files(folder), 2)
    kind = random.randrange(3)
    if kind == 0:
        path.unlink()
        os.link(other, path)
        return
    twin = folder.parent / "twin"
    shutil.copyfile(path, twin)
    path.unlink()
    if kind == 1:
        os.link(twin, path)
    else:
        path.symlink_to(twin)


def _blob_folder(_base: DiskBase, folder: Path, random: Random) -> None:
    """A folder on the way to the blobs gone, a file, a pipe or a link."""
    path = random.choice((folder / BLOBS, folder / BLOBS / "sha256", blob_files(folder)[0].parent))
    kind = random.randrange(3)
    if kind == 0:
        _gone(path)
        path.write_bytes(b"no folder")
    elif kind == 1:
        _special(path, random)
    else:
        _gone(path)


def _put(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


DATABASE_BYTES: dict[str, Change] = {
    "database: bits flipped": _bytes(DATABASE, _flipped),
    "database: header bits flipped": _bytes(DATABASE, _header_flipped),
    "database: a range overwritten": _bytes(DATABASE, _overwritten),
    "database: pages swapped": _bytes(DATABASE, _pages_swapped),
    "database: a page over another": _bytes(DATABASE, _page_copied),
    "database: truncated": _bytes(DATABASE, _truncated),
    "database: extended": _bytes(DATABASE, _extended),
    "database: shifted": _bytes(DATABASE, _shifted),
    "database: no plain file": _database_special,
    "beside: a log of another database": _wal_of_another,
    "beside: a damaged log": _wal_damaged,
    "beside: a journal of another database": _journal_of_another,
    "beside: junk": _junk_beside,
    "beside: no plain file": _special_beside,
}
INDEX_BYTES: dict[str, Change] = {
    "index: bits flipped": _bytes(INDEX, _flipped),
    "index: a range overwritten": _bytes(INDEX, _overwritten),
    "index: pages swapped": _bytes(INDEX, _pages_swapped),
    "index: truncated": _bytes(INDEX, _truncated),
    "index: of another ledger": _index_of_another,
    "index: junk": _index_junk,
    "index: no plain file": _index_special,
}
BLOB_FILES: dict[str, Change] = {
    "blob: bytes changed": _blob_bytes,
    "blob: cut": _blob_cut,
    "blob: gone": _blob_gone,
    "blob: two swapped": _blobs_swapped,
    "blob: no plain file": _blob_special,
    "blob: linked": _blob_linked,
    "blob: no folder on the way": _blob_folder,
}


def changed_blobs(base: DiskBase, folder: Path) -> set[str]:
    """Digests of the blobs that are no longer plain files of the bytes they had."""
    original = base.folder / LEDGER
    changed: set[str] = set()
    for path in blob_files(original):
        name = path.relative_to(original)
        digest = "sha256:" + path.parent.name + path.name
        if not _same_file(path, folder / name):
            changed.add(digest)
    return changed


def _same_file(path: Path, other: Path) -> bool:
    if not other.is_file() or other.is_symlink():
        return False
    return other.stat().st_size < (1 << 30) and other.read_bytes() == path.read_bytes()
