"""Checkpoints: what is in one, written whole or not at all (torch-free apart from the saving callable).

A checkpoint folder holds the tensors of an adapter or of a whole model, their configuration and the learner's state
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
    CONFIG_FILE,
    LEARNER_FILE,
    OPTIMIZER_FILE,
    RANDOM_FILE,
    ROLLOUTS_FILE,
    openers,
    weights_file,
)
from verifiers.learning.tensors import file_state_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = (
    CONFIG_FILE,
    ADAPTER_FILE,
    OPTIMIZER_FILE,
    RANDOM_FILE,
    LEARNER_FILE,
    ROLLOUTS_FILE,
)


def write_checkpoint(folder: Path, save: Callable[[Path], None], state: str) -> None:
    """Write a checkpoint folder, read it back and put it in place.

    Args:
        folder: where it will be; it must not exist.
        save: writes the files into the folder it is given; what a library leaves beside an adapter is left out.
        state: the state digest that the trained tensors must have.

    Raises:
        EvidenceError: `CHECKPOINT_CHANGED`, what is on disk has another state.
        FileExistsError: the folder exists.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save(partial)
    if (partial / ADAPTER_FILE).exists():
        for path in partial.iterdir():
            if path.name not in FILES:
                path.unlink()
    found = adapter_state_digest(partial)
    if found != state:
        raise EvidenceError(
            "CHECKPOINT_CHANGED",
            "the weights on disk are not the live ones",
            expected=state,
            actual=found,
        )
    for path in partial.iterdir():
        sync(path)
    sync(partial)
    if folder.exists():
        raise FileExistsError(folder)
    partial.rename(folder)
    sync(folder.parent)


def adapter_state_digest(folder: Path) -> str:
    """The state digest of a folder with an adapter or a whole model, from its bytes alone.

    Raises:
        EvidenceError: `CHECKPOINT_WRONG`, it has no file of weights; `TENSORS_INVALID` or `UNSAFE_PATH`: its tensors
            cannot be read.
    """
    with open_regular(folder / weights_file(openers(folder))) as stream:
        return file_state_digest(stream)


def sync(path: Path) -> None:
    """Make a file's bytes, or a folder's entries, outlast a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
