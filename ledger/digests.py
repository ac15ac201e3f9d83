"""Digests of bytes, files and folders (spec: ledger.md, section 3)."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ledger.errors import EvidenceError

CHUNK_BYTES = 1 << 20
MAX_FOLDER_DEPTH = 64
PREFIX = "sha256:"


def sha256(data: bytes) -> str:
    """Digest of bytes as `sha256:` and 64 hex digits."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def is_digest(text: object) -> bool:
    """Whether a value has the form of a digest."""
    if not isinstance(text, str) or len(text) != 71 or not text.startswith(PREFIX):
        return False
    return all(char in "0123456789abcdef" for char in text[7:])


def digest_stream(stream: BinaryIO) -> tuple[str, int]:
    """Digest and size in bytes of what is left of a stream."""
    state = hashlib.sha256()
    size = 0
    while chunk := stream.read(CHUNK_BYTES):
        state.update(chunk)
        size += len(chunk)
    return PREFIX + state.hexdigest(), size


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading without following a link at its last step.

    Raises:
        EvidenceError: `UNSAFE_PATH`, it is a link, a device or a folder.
        OSError: it cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise EvidenceError("UNSAFE_PATH", f"{path.name} is a symbolic link") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EvidenceError("UNSAFE_PATH", f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def digest_file(path: Path) -> tuple[str, int]:
    """Digest and size in bytes of a regular file.

    Raises:
        EvidenceError: `UNSAFE_PATH`, see `open_regular`.
    """
    with open_regular(path) as stream:
        return digest_stream(stream)


@dataclass(frozen=True)
class FileEntry:
    """One file of a folder: its path with forward slashes, its size in bytes and its digest."""

    path: str
    size: int
    digest: str


def inventory(folder: Path) -> list[FileEntry]:
    """Every file below a folder, in path order.

    Raises:
        EvidenceError: `UNSAFE_PATH`, something below is a link, no regular file, more than 64 folders deep or of a
            name that is no UTF-8.
    """
    return [
        _entry(folder, path)
        for path in sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix())
    ]


def tree_digest(files: Iterable[FileEntry]) -> str:
    """One digest for a folder: SHA-256 over `path NUL size NUL digest LF` of each file in path order."""
    state = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        state.update(f"{file.path}\0{file.size}\0{file.digest}\n".encode())
    return PREFIX + state.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    waiting = [(folder, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if depth > MAX_FOLDER_DEPTH:
            raise EvidenceError("UNSAFE_PATH", f"folders are more than {MAX_FOLDER_DEPTH} deep")
        for path in inner.iterdir():
            _check_name(path)
            if path.is_symlink():
                raise EvidenceError("UNSAFE_PATH", f"{path.name} is a symbolic link")
            if path.is_dir():
                waiting.append((path, depth + 1))
            else:
                yield path


def _check_name(path: Path) -> None:
    """A name that is no Unicode text has no place in a digest or a record."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise EvidenceError("UNSAFE_PATH", f"{path.name!r} is no name in UTF-8") from None


def _entry(folder: Path, path: Path) -> FileEntry:
    digest, size = digest_file(path)
    return FileEntry(path.relative_to(folder).as_posix(), size, digest)
