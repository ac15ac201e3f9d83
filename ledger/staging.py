"""What is to appear whole or not at all: filled beside its place under another name, made durable, then renamed.

The other name is always the same, `.NAME.arriving`, and whoever fills it holds a lock on it that the system frees when
they die. So what a kill leaves is taken over and emptied by the next one who puts something at the same place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ledger import disk
from ledger.errors import EvidenceError, UsageError

SUFFIX = ".arriving"
Opener = Callable[[], int]


def staging_of(path: Path) -> Path:
    """Where something is filled that will lie at a path."""
    return path.with_name(f".{path.name}{SUFFIX}")


@contextmanager
def folder_at(path: Path) -> Iterator[Path]:
    """A folder to fill; it stands at its place when the block ends, and nothing is left where it ends in an error.

    Args:
        path: where it is to stand: nothing, or an empty folder.

    Raises:
        UsageError: `LEDGER_EXISTS`, there is something; `LEDGER_BUSY`, another process fills it; `DISK_FULL`,
            `OS_REFUSED`.
        EvidenceError: `UNSAFE_PATH`, a link lies in the way.
    """
    target = path.resolve()
    _refuse_taken(target)
    staging = staging_of(target)
    with disk.translated(target):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = _locked(staging, lambda: _open_folder(staging))
    try:
        with disk.translated(staging):
            _empty(staging)
        try:
            yield staging
            with disk.translated(target):
                _sync_tree(staging)
                _refuse_taken(target)
                staging.rename(target)
                disk.sync_folder(target.parent)
        except BaseException:  # a Ctrl-C too
            shutil.rmtree(staging, ignore_errors=True)
            raise
    finally:
        os.close(handle)


@contextmanager
def file_at(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it stands at its place when the block ends, and nothing is left where it ends in an error.

    Args:
        path: where it is to stand; nothing may be there.

    Raises:
        UsageError: `FOLDER_EXISTS`, there is something; `INPUT_MISSING`, there is no such folder; `LEDGER_BUSY`,
            `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: `UNSAFE_PATH`, a link lies in the way.
    """
    target = path.absolute()
    if os.path.lexists(target):
        raise UsageError("FOLDER_EXISTS", f"{path} is there already")
    if not target.parent.is_dir():
        raise UsageError("INPUT_MISSING", f"there is no folder {target.parent}")
    staging = staging_of(target)
    with disk.translated(target):
        handle = _locked(staging, lambda: _open_file(staging))
    with disk.translated(target), os.fdopen(handle, "r+b") as stream:
        try:
            stream.truncate()
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            staging.rename(target)
            disk.sync_folder(target.parent)
        except BaseException:  # a Ctrl-C too
            with suppress(OSError):  # the first refusal is what is told
                staging.unlink(missing_ok=True)
            raise


def _locked(staging: Path, opened: Opener) -> int:
    """A handle with the lock on what now lies at the path."""
    if staging.is_symlink():
        raise EvidenceError("UNSAFE_PATH", f"{staging} is a symbolic link")
    handle = opened()
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(handle), staging.lstat())
    except (BlockingIOError, FileNotFoundError):
        same = False  # somebody fills it, or has just put it into its place
    except BaseException:
        os.close(handle)
        raise
    if not same:
        os.close(handle)
        raise UsageError("LEDGER_BUSY", f"another process is making {staging.name}")
    return handle


def _open_folder(staging: Path) -> int:
    staging.mkdir(mode=0o700, exist_ok=True)
    return os.open(staging, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _open_file(staging: Path) -> int:
    if os.path.lexists(staging) and not staging.is_file():
        raise EvidenceError("UNSAFE_PATH", f"{staging} is not a regular file")
    return os.open(staging, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _refuse_taken(target: Path) -> None:
    with disk.translated(target):
        if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
            raise UsageError("LEDGER_EXISTS", f"{target} is not an empty folder")


def _empty(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()


def _sync_tree(folder: Path) -> None:
    """Make files and entries directly in a folder durable; what writes deeper syncs itself."""
    for item in folder.iterdir():
        if item.is_file():
            handle = os.open(item, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    disk.sync_folder(folder)
