"""What a checkpoint's file of weights holds, tensor by tensor, and whether it is what a plan trains (torch-free).

An adapter lies in `adapter_model.safetensors`, a whole model in `model.safetensors`. A trainer can save a file that is
whole by its digest and worthless: no tensor at all, tensors missing, every LoRA-B matrix still zero. Each of these is
refused here, by the supervisor before it publishes and by V18 from the bytes alone.

The summary of a set of tensors is their number, the numbers in them, and

    digest = SHA-256 over each tensor in name order of   name NUL dtype NUL shape LF

with the shape's sizes joined by `x`. A plan states it before the run, from the model's configuration.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ledger.canonical import parse_real, real
from ledger.digests import CHUNK_BYTES, PREFIX
from ledger.errors import EvidenceError
from verifiers.learning.learner_state import weights_file
from verifiers.learning.tensors import TensorEntry, check_covered, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

A_SUFFIX = ".lora_A.weight"
B_SUFFIX = ".lora_B.weight"
NUMBERS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
"""A type of the file format as NumPy reads it; BF16 is the upper half of a float32."""

NORM_TOLERANCE = 1e-6
"""Relative: sums of squares differ in their last bits from one processor to the next."""


@dataclass(frozen=True)
class Inventory:
    """The tensors of a file of weights in name order, and the Euclidean norm of each by its name."""

    entries: tuple[TensorEntry, ...]
    norms: Mapping[str, float]

    @property
    def summary(self) -> dict[str, Any]:
        """Number of tensors, numbers in them, digest of names, types and shapes."""
        return summary_of((entry.name, entry.dtype, entry.shape) for entry in self.entries)

    @property
    def norm(self) -> float:
        """The norm of all of them together."""
        return math.sqrt(math.fsum(norm * norm for norm in self.norms.values()))

    def lines(self) -> list[dict[str, Any]]:
        """One object for each tensor: name, type, shape, norm as text."""
        return [
            {
                "name": entry.name,
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "norm": real(self.norms[entry.name]),
            }
            for entry in self.entries
        ]


def summary_of(tensors: Iterable[tuple[str, str, Iterable[int]]]) -> dict[str, Any]:
    """The summary of tensors given as name, type and shape, in any order."""
    state, count, parameters = hashlib.sha256(), 0, 0
    for name, dtype, shape in sorted((name, dtype, tuple(shape)) for name, dtype, shape in tensors):
        sizes = "x".join(str(size) for size in shape)
        state.update(f"{name}\0{dtype}\0{sizes}\n".encode())
        count += 1
        parameters += math.prod(shape)
    return {"count": count, "parameters": parameters, "digest": PREFIX + state.hexdigest()}


def take_inventory(stream: BinaryIO) -> Inventory:
    """The tensors of a seekable `safetensors` stream with their norms.

    Raises:
        EvidenceError: `TENSORS_INVALID`, the header does not describe exactly the file's bytes, or has a type whose
            numbers are not read here; `WEIGHTS_NOT_FINITE`.
    """
    entries = read_header(stream)
    base = stream.tell()
    check_covered(stream, entries)
    norms: dict[str, float] = {}
    for entry in entries:
        stream.seek(base + entry.start)
        norms[entry.name] = _norm(stream, entry)
    return Inventory(tuple(sorted(entries, key=lambda entry: entry.name)), norms)


def checked_weights(
    files: Mapping[str, Callable[[], BinaryIO]], planned: Mapping[str, Any] | None, *, moved: bool
) -> Inventory:
    """The weights of a checkpoint, after they were found to be what its plan trains.

    Args:
        files: opens each file by its path within the checkpoint.
        planned: the summary that the plan states, None where it states none.
        moved: an update with a positive learning rate was acknowledged.

    Raises:
        EvidenceError: `CHECKPOINT_WRONG`, there is no file of weights or two; `TENSORS_INVALID`; `WEIGHTS_EMPTY`;
            `WEIGHTS_OTHER`; `WEIGHTS_NOT_FINITE`; `ADAPTER_UNTRAINED`.
    """
    name = weights_file(files)
    with files[name]() as stream:
        found = take_inventory(stream)
    if not found.entries:
        raise EvidenceError("WEIGHTS_EMPTY", f"{name} holds no tensor", field=name)
    _check_pairs(found.entries)
    if planned is not None and found.summary != planned:
        raise _other(name, found, planned)
    matrices = [norm for tensor, norm in found.norms.items() if tensor.endswith(B_SUFFIX)]
    if moved and matrices and not any(matrices):
        raise EvidenceError(
            "ADAPTER_UNTRAINED",
            f"all {len(matrices)} LoRA-B matrices of {name} are zero",
            field=name,
        )
    return found


def check_lines(found: Inventory, claimed: Sequence[Mapping[str, Any]]) -> str | None:
    """The first tensor whose line is not what the bytes give, None where every line is."""
    lines = found.lines()
    for line, given in zip(lines, claimed, strict=False):
        same = {**line, "norm": None} == {**given, "norm": None}
        if not same or not near(found.norms[line["name"]], str(given["norm"])):
            return str(line["name"])
    if len(lines) == len(claimed):
        return None
    return "the number of tensors"


def near(norm: float, claimed: str) -> bool:
    """Whether a norm is the one claimed, but for last bits.

    Raises:
        EvidenceError: `NOT_A_REAL`.
    """
    return math.isclose(norm, parse_real(claimed), rel_tol=NORM_TOLERANCE)


def _other(name: str, found: Inventory, planned: Mapping[str, Any]) -> EvidenceError:
    summary = found.summary
    return EvidenceError(
        "WEIGHTS_OTHER",
        f"{name} holds {summary['count']} tensors of {summary['parameters']} numbers, the plan trains"
        f" {planned['count']} of {planned['parameters']}"
        + ("" if summary["count"] != planned["count"] else "; names, types or shapes differ"),
        field=name,
        expected=str(planned["digest"]),
        actual=str(summary["digest"]),
    )


def _check_pairs(entries: Iterable[TensorEntry]) -> None:
    """Each LoRA-A matrix has its LoRA-B, of the same rank, and none stands alone."""
    shapes = {entry.name: entry.shape for entry in entries}
    for name, shape in shapes.items():
        for mine, others in ((A_SUFFIX, B_SUFFIX), (B_SUFFIX, A_SUFFIX)):
            if not name.endswith(mine):
                continue
            partner = name.removesuffix(mine) + others
            if partner not in shapes:
                raise EvidenceError("WEIGHTS_OTHER", f"{name} has no {partner}", field=partner)
            rank, other = (
                (shape[0], shapes[partner][1])
                if mine == A_SUFFIX
                else (shape[1], shapes[partner][0])
            )
            if rank != other:
                raise EvidenceError(
                    "WEIGHTS_OTHER",
                    f"{name} and {partner} have ranks {rank} and {other}",
                    field=name,
                )


def _norm(stream: BinaryIO, entry: TensorEntry) -> float:
    total = math.fsum(float(np.dot(part, part)) for part in numbers(stream, entry))
    if not math.isfinite(total):
        raise EvidenceError(
            "WEIGHTS_NOT_FINITE", f"tensor {entry.name[:80]} is not finite", field=entry.name[:80]
        )
    return math.sqrt(total)


def numbers(
    stream: BinaryIO, entry: TensorEntry
) -> Iterator[np.ndarray[Any, np.dtype[np.float64]]]:
    """A tensor's numbers in pieces, as float64; the pieces' length is a multiple of every type's width.

    Raises:
        EvidenceError: `TENSORS_INVALID`, they are of a type that is not trained here.
    """
    if entry.dtype not in NUMBERS:
        raise EvidenceError(
            "TENSORS_INVALID",
            f"tensor {entry.name[:80]} is of type {entry.dtype}, not trained here",
        )
    left = entry.end - entry.start
    while left:
        data = stream.read(min(left, CHUNK_BYTES))
        left -= len(data)
        raw = np.frombuffer(data, NUMBERS[entry.dtype])
        if entry.dtype == "BF16":
            raw = (raw.astype("<u4") << 16).view("<f4")
        yield raw.astype(np.float64)
