"""How long a checkpoint takes to come back, beside copying and hashing the same bytes once.

    python tools/bench/recover.py [--megabytes 200]

Prints one JSON object: best of five, wall-clock seconds, the two taken in turns; the limit of the ratio is 1.3. The plain
side copies each file, makes it durable and reads it again for its digest, with the library's own functions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from ledger.blobs import BINARY, BlobStore  # noqa: E402 - after the path is set
from ledger.book import Ledger  # noqa: E402
from ledger.digests import FileEntry, tree_digest  # noqa: E402
from ledger.record import Record  # noqa: E402
from runners.train.recovery import recover  # noqa: E402
from verifiers.learning.learner_state import PARTS  # noqa: E402

TRIES = 5
LIMIT = 1.3
SHARES = {
    "adapter_model.safetensors": 0.32,
    "optimizer.safetensors": 0.66,
    "random.safetensors": 0.01,
    "learner.json": 0.01,
}
"""The files of a checkpoint, by their share of its bytes."""


def timed_s(work: Callable[[Path], object], folder: Path) -> float:
    """One piece of work into a folder that is taken away afterwards, in seconds."""
    begun = time.perf_counter()
    work(folder)
    took = time.perf_counter() - begun
    shutil.rmtree(folder)
    return took


def plain(source: Path, folder: Path) -> None:
    """Copy every file, make it durable, hash it once."""
    folder.mkdir()
    for path in source.iterdir():
        target = folder / path.name
        shutil.copyfile(path, target)
        with target.open("rb+") as stream:
            os.fsync(stream.fileno())
            hashlib.file_digest(stream, "sha256")


def made(folder: Path, size_bytes: int) -> tuple[Path, Ledger, Record]:
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch)
        source, ledger, record = made(folder, options.megabytes << 20)
        ours, theirs = [], []
        for _ in range(TRIES):
            ours.append(timed_s(lambda to: recover(ledger, record, to), folder / "back"))
            theirs.append(timed_s(lambda to: plain(source, to), folder / "plain"))
    ratio = min(ours) / min(theirs)
    print(
        json.dumps(
            {
                "megabytes": options.megabytes,
                "recover_s": round(min(ours), 3),
                "copy_and_hash_once_s": round(min(theirs), 3),
                "ratio": round(ratio, 3),
                "limit": LIMIT,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
