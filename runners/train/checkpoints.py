"""Checkpoints: what is in one, written whole or not at all (torch-free apart from the saving callable).

A checkpoint folder holds the adapter's tensors, its configuration and the learner's state
(`verifiers.learning.learner_state`), and no pickle. Trusted for: the tensors on disk are those of the last acknowledged
update. They are read back and hashed before anybody is told. A crash leaves either no folder or a `.partial` one, which
nothing reads.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from ledger.digests import open_regular
from ledger.errors import EvidenceError
from verifiers.learning.learner_state import (
    ADAPTER_FILE,
    LEARNER_FILE,
    OPTIMIZER_FILE,
    RANDOM_FILE,
)
from verifiers.learning.tensors import file_state_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG_FILE = "adapter_config.json"
FILES = (CONFIG_FILE, ADAPTER_FILE, OPTIMIZER_FILE, RANDOM_FILE, LEARNER_FILE)


def write_checkpoint(folder: Path, save: Callable[[Path], None], state: str) -> None:
    """Write a checkpoint folder, read it back and put it in place.

    Args:
        folder: where it will be; it must not exist.
        save: writes the files into the folder it is given; files that are no part of a checkpoint are left out.
        state: the state digest that the adapter must have.

    Raises:
        EvidenceError: `CHECKPOINT_CHANGED`, what is on disk has another state.
        FileExistsError: the folder exists.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save(partial)
    for path in partial.iterdir():
        if path.name not in FILES:
            path.unlink()
    found = adapter_state_digest(partial)
    if found != state:
        raise EvidenceError(
            "CHECKPOINT_CHANGED",
            "the adapter on disk is not the live one",
            expected=state,
            actual=found,
        )
    for name in FILES:
        sync(partial / name)
    sync(partial)
    if folder.exists():
        raise FileExistsError(folder)
    partial.rename(folder)
    sync(folder.parent)


def adapter_state_digest(folder: Path) -> str:
    """The state digest of an adapter folder, from its bytes alone.

    Raises:
        EvidenceError: `TENSORS_INVALID` or `UNSAFE_PATH`: its tensors cannot be read.
    """
    with open_regular(folder / ADAPTER_FILE) as stream:
        return file_state_digest(stream)


def sync(path: Path) -> None:
    """Make a file's bytes, or a folder's entries, outlast a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
