"""Whether an optimizer's moments in a checkpoint are numbers that its updates could have left (torch-free).

Names, types and shapes are looked at by `verifiers.learning.learner_state`. A file can have them all and hold no state to
go on from: moments that are not finite, squares below zero, or a count of steps that counts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledger.errors import EvidenceError
from verifiers.learning.learner_state import MOMENTS, OPTIMIZER_FILE, STEP
from verifiers.learning.tensors import read_header
from verifiers.learning.weights import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from verifiers.learning.tensors import TensorEntry

SQUARES = f"{MOMENTS[1]}."
COUNTS = f"{STEP}."


def check_moments(files: Mapping[str, Callable[[], BinaryIO]]) -> None:
    """Refuse an optimizer's state from which nobody can go on.

    Args:
        files: opens each file by its path within the checkpoint; one without an optimizer's state passes.

    Raises:
        EvidenceError: `OPTIMIZER_WRONG`; `TENSORS_INVALID`, the header is broken.
    """
    if OPTIMIZER_FILE not in files:
        return
    with files[OPTIMIZER_FILE]() as stream:
        entries = read_header(stream)
        base = stream.tell()
        for entry in entries:
            stream.seek(base + entry.start)
            _check(stream, entry)


def _check(stream: BinaryIO, entry: TensorEntry) -> None:
    for part in numbers(stream, entry):
        if not np.isfinite(part).all():
            raise _wrong(entry, "holds a number that is not finite")
        if entry.name.startswith(SQUARES) and (part < 0).any():
            raise _wrong(entry, "holds a square below zero")
        if entry.name.startswith(COUNTS) and not _counts(part):
            raise _wrong(entry, "counts no whole number of steps")


def _counts(part: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    return bool((part >= 0).all() and (part == np.floor(part)).all())


def _wrong(entry: TensorEntry, why: str) -> EvidenceError:
    name = entry.name[:80]
    return EvidenceError("OPTIMIZER_WRONG", f"tensor {name} {why}", field=name)
