"""How long a checkpoint takes to come back, beside copying and hashing the same bytes once.

The plain side copies each file, makes it durable and reads it again for its digest, with the standard library.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from benches.report import Row, Settings
from ledger.blobs import BINARY, BlobStore
from ledger.book import Ledger
from ledger.digests import FileEntry, tree_digest
from ledger.record import Record
from runners.train.recovery import recover
from verifiers.learning.learner_state import PARTS

TRIES = 5
LIMIT = 1.3
SHARES = {
    "adapter_model.safetensors": 0.32,
    "optimizer.safetensors": 0.66,
    "random.safetensors": 0.01,
    "learner.json": 0.01,
}
"""The files of a checkpoint, by their share of its bytes."""


def run(settings: Settings) -> list[Row]:
    """Best of five of each, taken in turns."""
    megabytes = 1000 if settings.full else 100
    folder = settings.scratch / "recover"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source, ledger, record = _made(folder, megabytes << 20)
    ours, theirs = [], []
    for number in range(TRIES):
        settings.say(f"recovering {megabytes} MB, round {number + 1} of {TRIES}")
        ours.append(_timed_s(lambda to: recover(ledger, record, to), folder / "back"))
        theirs.append(_timed_s(lambda to: _plain(source, to), folder / "plain"))
    shutil.rmtree(folder)
    return [
        Row(
            f"checkpoint recover, {megabytes} MB, against copying and hashing once",
            round(min(ours) / min(theirs), 3),
            "ratio",
            "less",
            LIMIT,
            details={
                "recover_s": [round(took, 3) for took in ours],
                "plain_s": [round(took, 3) for took in theirs],
            },
        )
    ]


def _timed_s(work: Callable[[Path], object], folder: Path) -> float:
    """One piece of work into a folder that is taken away afterwards, in seconds."""
    begun = time.perf_counter()
    work(folder)
    took = time.perf_counter() - begun
    shutil.rmtree(folder)
    return took


def _plain(source: Path, folder: Path) -> None:
    """Copy every file, make it durable, hash it once."""
    folder.mkdir()
    for path in source.iterdir():
        target = folder / path.name
        shutil.copyfile(path, target)
        with target.open("rb+") as stream:
            os.fsync(stream.fileno())
            hashlib.file_digest(stream, "sha256")


def _made(folder: Path, size_bytes: int) -> tuple[Path, Ledger, Record]:
    """A checkpoint's files, the blobs of a ledger that has them, and the record's fields that recovery reads."""
    source, blobs = folder / "source", BlobStore(folder / "blobs")
    source.mkdir()
    entries = []
    for name, share in SHARES.items():
        (source / name).write_bytes(os.urandom(int(size_bytes * share)))
        blob = blobs.put_file(source / name, BINARY)
        entries.append(FileEntry(name, blob.size, blob.digest))
    body: dict[str, Any] = {
        "files": [{"path": e.path, "size": e.size, "digest": e.digest} for e in entries],
        "tree": tree_digest(entries),
        "completeness": dict.fromkeys(PARTS, True),
        "hosted": None,
    }
    record = SimpleNamespace(id="sha256:" + "0" * 64, body=body)
    return source, cast("Ledger", SimpleNamespace(blobs=blobs)), cast("Record", record)
