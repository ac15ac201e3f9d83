"""Checkpoints back from the ledger: a folder rebuilt from a record and its blobs, whole or not at all (torch-free).

Nothing else is needed: the run's own folder may be long gone. Each file is copied, made durable and then read again from
where it now lies; the digest of what was read decides. The folder appears under its name only after that; until then
the files lie in a new folder beside it, which nothing that goes wrong leaves behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ledger import disk
from ledger.digests import CHUNK_BYTES, PREFIX, FileEntry, tree_digest
from ledger.errors import EvidenceError, UsageError
from ledger.record import check_body
from runners.train.checkpoints import sync
from verifiers.learning.learner_state import PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from ledger.blobs import BlobStore
    from ledger.book import Ledger
    from ledger.record import Record
    from ledger.records.base import File
    from ledger.records.learning import CheckpointPublished

COPY_BYTES = 1 << 30


@dataclass(frozen=True)
class Recovered:
    """A checkpoint's folder: where it lies, its files, and the parts of the learner's state that it lacks."""

    folder: Path
    files: tuple[FileEntry, ...]
    absent: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size for file in self.files)


def recover(ledger: Ledger, checkpoint: Record, folder: Path) -> Recovered:
    """Rebuild a checkpoint's folder.

    Args:
        ledger: open for reading or writing.
        checkpoint: a published checkpoint.
        folder: where it is to lie; it must not exist, its parent must.

    Raises:
        UsageError: `FOLDER_EXISTS`, `INPUT_MISSING`, `DISK_FULL`, `OS_REFUSED`; `MODEL_HOSTED`, its bytes were never here.
        EvidenceError: `BODY_INVALID`, the record names a path that leads out of its folder; `UNSAFE_PATH`, a path twice
            or one below a file; `BLOB_MISSING`; `BLOB_WRONG`, the bytes are not those recorded; `CHECKPOINT_WRONG`, the
            files are not those of the record's tree digest.
    """
    body = cast(
        "CheckpointPublished", check_body(checkpoint.kind, checkpoint.schema, checkpoint.body)
    )
    if folder.exists() or folder.is_symlink():
        raise UsageError("FOLDER_EXISTS", f"{folder} exists", field="folder")
    if not folder.parent.is_dir():
        raise UsageError("INPUT_MISSING", f"there is no folder {folder.parent}", field="folder")
    if body.hosted is not None:
        raise UsageError("MODEL_HOSTED", "a hosted checkpoint has no bytes here")
    _check_paths(body.files, checkpoint.id)
    # in a new folder: one that lies beside it already, under whatever name, is somebody's
    with (
        disk.translated(folder),
        tempfile.TemporaryDirectory(prefix=".recover-", dir=folder.parent) as place,
    ):
        partial = Path(place) / "whole"
        partial.mkdir()
        files = tuple(_copied(ledger.blobs, item, partial) for item in body.files)
        _check_tree(checkpoint, files)
        for inner in {(partial / file.path).parent for file in files} | {partial}:
            sync(inner)
        partial.rename(folder)
        sync(folder.parent)
    there = body.completeness.model_dump()
    return Recovered(folder, files, tuple(name for name in PARTS if not there[name]))


def _check_paths(files: Sequence[File], record: str) -> None:
    """Each path of a folder stands once, and none is both a file and a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for file in files:
        inner = file.path.split("/")
        folders.update("/".join(inner[:depth]) for depth in range(1, len(inner)))
        if file.path in seen:
            raise EvidenceError(
                "UNSAFE_PATH", "the record names a file twice", field=file.path, record=record
            )
        seen.add(file.path)
    for path in sorted(seen & folders):
        raise EvidenceError(
            "UNSAFE_PATH", "the record names a file and one below it", field=path, record=record
        )


def _copied(blobs: BlobStore, item: File, folder: Path) -> FileEntry:
    target = folder / item.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with blobs.open(item.digest) as source, target.open("x+b") as written:
        _copy(source, written)
        os.fsync(written.fileno())
        written.seek(0)
        actual = PREFIX + file_digest(written, "sha256").hexdigest()
        size = written.tell()
    if actual != item.digest:
        raise EvidenceError(
            "BLOB_WRONG",
            f"{item.path} has other bytes than the record says",
            field=item.path,
            expected=item.digest,
            actual=actual,
        )
    if size != item.size:
        raise EvidenceError(
            "BLOB_WRONG",
            f"{item.path} has another size than the record says",
            field=item.path,
            expected=str(item.size),
            actual=str(size),
        )
    return FileEntry(item.path, size, actual)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    """All bytes, by the kernel where it can: they need not pass through this process."""
    try:
        while os.copy_file_range(source.fileno(), target.fileno(), COPY_BYTES):
            pass
    except (AttributeError, OSError):  # another system, or a file system that cannot
        source.seek(0)
        target.seek(0)
        target.truncate()
        shutil.copyfileobj(source, target, CHUNK_BYTES)
        target.flush()


def _check_tree(checkpoint: Record, files: tuple[FileEntry, ...]) -> None:
    actual = tree_digest(files)
    if actual != checkpoint.body["tree"]:
        raise EvidenceError(
            "CHECKPOINT_WRONG",
            "the files are not those of the record's tree digest",
            record=checkpoint.id,
            expected=checkpoint.body["tree"],
            actual=actual,
        )
