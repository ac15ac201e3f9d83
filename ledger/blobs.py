"""Content-addressed files: `blobs/sha256/ab/cdef…` (spec: ledger.md, section 10).

Trusted for: nothing; reading re-hashes. Written to a temporary file in the same folder, fsynced,
renamed, folder fsynced, so a crash leaves a whole blob or a stray temporary file, never half a blob.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP, ENOTDIR
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pydantic import ValidationError

from ledger import disk
from ledger.digests import CHUNK_BYTES, PREFIX, digest_stream, is_digest, open_regular
from ledger.errors import EvidenceError, UsageError, reason
from ledger.records.base import Blob

JSON = "application/json"
JSON_LINES = "application/jsonl"
TEXT = "text/plain"
SAFETENSORS = "application/vnd.safetensors"
BINARY = "application/octet-stream"
MAX_FILE_BYTES = 1 << 40
"""A file that goes on for longer is taken for one without end."""


class Source(Protocol):
    """Where bytes are read from."""

    def read(self, count: int, /) -> bytes:
        """Up to so many bytes; nothing at the end."""


class BlobStore:
    """The blobs of one ledger.

    Args:
        folder: where they lie; made on the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where a blob lies.

        Raises:
            EvidenceError: `BLOB_WRONG`, the name is no digest.
        """
        if not is_digest(digest):
            raise EvidenceError("BLOB_WRONG", f"{digest[:80]!r} is not a blob's name")
        return self.folder / "sha256" / digest[7:9] / digest[9:]

    def has(self, digest: str) -> bool:
        """Whether a regular file lies where the blob belongs; its bytes are not read."""
        path = self.path(digest)
        return path.is_file() and not path.is_symlink()

    def put(self, data: bytes, media_type: str, count: int | None = None) -> Blob:
        """Keep bytes; what is there already is not written again.

        Args:
            data: the bytes.
            media_type: what they are.
            count: how many rows or items they hold, where that means something.

        Raises:
            UsageError: `DISK_FULL`, `OS_REFUSED`; the blob is then not there.
            EvidenceError: `UNSAFE_PATH`, a folder on the way is a link.
        """
        digest = PREFIX + hashlib.sha256(data).hexdigest()
        blob = Blob(digest=digest, size=len(data), media_type=media_type, count=count)
        with disk.translated(self.folder):
            if not self._used_again(digest):
                with self._writing(digest) as stream:
                    stream.write(data)
        return blob

    def put_file(
        self,
        path: Path,
        media_type: str,
        count: int | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> Blob:
        """Keep a file's bytes, streamed; the bytes hashed are the bytes kept.

        Raises:
            UsageError: `INPUT_MISSING`, `DISK_FULL`, `OS_REFUSED`; `TOO_LARGE`, it has, or goes on for, more than
                `max_bytes`; the blob is then not there.
            EvidenceError: `UNSAFE_PATH`, it is a link or no regular file.
        """
        try:
            source = open_regular(path)
        except FileNotFoundError:
            raise UsageError("INPUT_MISSING", f"there is no file {path}") from None
        with source, disk.translated(self.folder):
            digest, size = self._keep(source, path.name, max_bytes)
        return Blob(digest=digest, size=size, media_type=media_type, count=count)

    def receive(self, source: Source, digest: str) -> None:
        """Keep what a stream gives, which must be the blob of this name; of other bytes nothing stays.

        Raises:
            UsageError: `DISK_FULL`, `OS_REFUSED`.
            EvidenceError: `BLOB_WRONG`; what reading the stream raises.
        """
        state = hashlib.sha256()
        with disk.translated(self.folder):
            with self._new_file() as (temporary, target):
                while chunk := source.read(CHUNK_BYTES):
                    state.update(chunk)
                    target.write(chunk)
            actual = PREFIX + state.hexdigest()
            if actual != digest:
                temporary.unlink()
                raise EvidenceError(
                    "BLOB_WRONG",
                    f"blob {digest} has other bytes",
                    field=self._place_of(digest),
                    expected=digest,
                    actual=actual,
                )
            self._place(temporary, digest)

    def open(self, digest: str) -> BinaryIO:
        """A blob for streaming; the caller compares the digest. `read` does it for you.

        Raises:
            EvidenceError: `BLOB_MISSING`, it is not there or cannot be read; `UNSAFE_PATH`.
        """
        try:
            return open_regular(self.path(digest))
        except FileNotFoundError:
            raise EvidenceError(
                "BLOB_MISSING",
                f"blob {digest} is not in the store",
                field=self._place_of(digest),
            ) from None
        except OSError as error:
            code = "UNSAFE_PATH" if error.errno in (ENOTDIR, ELOOP) else "BLOB_MISSING"
            raise EvidenceError(
                code, f"blob {digest}: {error.strerror}", field=self._place_of(digest)
            ) from error

    def read(self, digest: str, max_bytes: int = 1 << 31) -> bytes:
        """A blob's bytes, re-hashed.

        Raises:
            EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, `UNSAFE_PATH`, `TOO_LARGE`.
        """
        with self.open(digest) as stream, disk.translated(self.folder):
            # no more than there is: a read reserves all the memory that it may need
            there = os.fstat(stream.fileno()).st_size
            data = stream.read(min(there, max_bytes) + 1)
        if len(data) > max_bytes:
            raise EvidenceError("TOO_LARGE", f"blob {digest} has more than {max_bytes} bytes")
        actual = PREFIX + hashlib.sha256(data).hexdigest()
        if actual != digest:
            raise EvidenceError(
                "BLOB_WRONG",
                f"blob {digest} has other bytes",
                field=self._place_of(digest),
                expected=digest,
                actual=actual,
            )
        return data

    def check(self, digest: str, size: int | None = None) -> int:
        """Re-hash a blob as a stream; its size in bytes.

        Args:
            digest: which blob.
            size: what it must have in bytes; one of another size is not hashed, since a hole of a terabyte costs nobody disk.

        Raises:
            EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, `UNSAFE_PATH`.
        """
        with self.open(digest) as stream, disk.translated(self.folder):
            there = os.fstat(stream.fileno()).st_size
            if size is not None and there != size:
                raise EvidenceError(
                    "BLOB_WRONG",
                    f"blob {digest} has another size",
                    field=self._place_of(digest),
                    expected=str(size),
                    actual=str(there),
                )
            actual, size = digest_stream(stream)
        if actual != digest:
            raise EvidenceError(
                "BLOB_WRONG",
                f"blob {digest} has other bytes",
                field=self._place_of(digest),
                expected=digest,
                actual=actual,
            )
        return size

    def _keep(self, source: BinaryIO, name: str, max_bytes: int) -> tuple[str, int]:
        state = hashlib.sha256()
        size = 0
        with self._new_file() as (temporary, target):
            while chunk := source.read(CHUNK_BYTES):
                state.update(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise UsageError("TOO_LARGE", f"{name} has more than {max_bytes} bytes")
                target.write(chunk)
        digest = PREFIX + state.hexdigest()
        if self._used_again(digest):
            temporary.unlink()
        else:
            self._place(temporary, digest)
        return digest, size

    def _used_again(self, digest: str) -> bool:
        """Whether the blob is there and whole; it then counts as written now, so that nobody sweeps it (`ledger.sweep`)."""
        if not self.has(digest):
            return False
        with self.lock(fcntl.LOCK_SH), suppress(FileNotFoundError, PermissionError):
            os.utime(self.path(digest), follow_symlinks=False)
            return self._is_whole(digest)
        return False  # it was swept away a moment ago, or is not ours: written anew

    @contextmanager
    def lock(self, how: int) -> Iterator[None]:
        """Hold the lock between who uses a blob again and who sweeps blobs; the system frees it.

        Args:
            how: `fcntl.LOCK_SH` to use, `fcntl.LOCK_EX` to sweep.

        Raises:
            OSError: there is no folder of blobs.
        """
        handle = os.open(self.folder / "sha256", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    def _is_whole(self, digest: str) -> bool:
        """Whether a blob is there with its own bytes; one that was damaged is written again by who brings them."""
        try:
            self.check(digest)
        except EvidenceError as error:
            if error.code != "BLOB_WRONG":
                raise
            return False
        return True

    def _place_of(self, digest: str) -> str:
        """The blob's path below the ledger folder."""
        return self.path(digest).relative_to(self.folder.parent).as_posix()

    def _temporary(self) -> Path:
        folder = self.folder / "sha256"
        _refuse_links(self.folder, folder)
        if not folder.is_dir():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            disk.sync_folder(self.folder)
            disk.sync_folder(self.folder.parent)
        return folder / f".new-{secrets.token_hex(8)}"

    @contextmanager
    def _writing(self, digest: str) -> Iterator[BinaryIO]:
        with self._new_file() as (temporary, stream):
            yield stream
        self._place(temporary, digest)

    @contextmanager
    def _new_file(self) -> Iterator[tuple[Path, BinaryIO]]:
        """A temporary file to fill, on the disk when the block ends; gone where it ends in an error."""
        temporary = self._temporary()
        with _removed_on_failure(temporary), temporary.open("xb") as stream:
            yield temporary, stream
            _sync(stream)

    def _place(self, temporary: Path, digest: str) -> None:
        target = self.path(digest)
        _refuse_links(target.parent)
        if not target.parent.is_dir():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            disk.sync_folder(
                self.folder / "sha256"
            )  # the new folder's own entry must outlast a power cut
        with _removed_on_failure(temporary):
            temporary.chmod(0o400)
            temporary.replace(target)
        disk.sync_folder(target.parent)


def named_blobs(body: Any) -> Iterator[Blob]:
    """Every blob that a record's body names, in field order.

    Raises:
        EvidenceError: `BODY_INVALID`, an object has a blob's fields with other values than a blob's.
    """
    if isinstance(body, dict):
        if body.keys() >= {"digest", "size", "media_type"}:
            yield _named(body)
            return
        for item in body.values():
            yield from named_blobs(item)
    elif isinstance(body, list):
        for item in body:
            if isinstance(item, dict | list):
                yield from named_blobs(item)


def _named(item: dict[str, Any]) -> Blob:
    try:
        return Blob.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise EvidenceError(
            "BODY_INVALID", f"a blob's {field}: {reason(first['msg'])}", field=field
        ) from None


def blobs_of(kind: str, body: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(digest, size) of everything in the blob store that a record stands on: blobs, and a checkpoint's files.

    A model's files are not among them: they lie on a shelf, see docs/decisions/0006.

    Raises:
        EvidenceError: `BODY_INVALID`, see `named_blobs`.
    """
    for blob in named_blobs(body):
        yield blob.digest, blob.size
    if kind == "checkpoint.published" and not body.get("hosted"):
        for item in body["files"]:
            yield item["digest"], item["size"]


@contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    """On a full disk, half a file must not take the room that is missing."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the first refusal is what is told
            temporary.unlink(missing_ok=True)
        raise


def _refuse_links(*folders: Path) -> None:
    """A folder of blobs that is a link would have us write outside the ledger."""
    for folder in folders:
        if folder.is_symlink():
            raise EvidenceError("UNSAFE_PATH", f"the blob folder {folder.name} is a symbolic link")


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())
