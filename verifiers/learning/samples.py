"""What a group's members sampled, as one `safetensors` file of five tensors: the numbers as the sampler gave them.

    prompt_ids      I32 [prompt]   the one prompt of the group
    lengths         I32 [members]  tokens of each member's completion
    completion_ids  I32 [tokens]   all members' tokens, one after the other
    mask            U8  [tokens]   1 the policy sampled it, 0 the environment gave it
    logprobs        F32 [tokens]   the sampler's own log-probability; 0 where the mask is 0

Nothing else is in the file. It comes from whoever sampled, so it is read with bounds and judged before it is used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import SEEK_END
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ledger.errors import EvidenceError
from verifiers.learning.tensors import MAX_HEADER_BYTES, check_covered, read_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

TENSORS: dict[str, str] = {
    "prompt_ids": "I32",
    "lengths": "I32",
    "completion_ids": "I32",
    "mask": "U8",
    "logprobs": "F32",
}
MAX_BYTES = 1 << 28
"""A group of 1024 members of 20,000 tokens fits."""
MAX_SAMPLES_HEADER = 4096
_TYPES: dict[str, np.dtype[Any]] = {
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "F32": np.dtype("<f4"),
}


@dataclass(frozen=True)
class Samples:
    """The tensors of one group, by their names in the file."""

    prompt_ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    completion_ids: NDArray[np.int32]
    mask: NDArray[np.uint8]
    logprobs: NDArray[np.float32]

    def bounds(self) -> list[tuple[int, int]]:
        """Where each member's tokens begin and end among all."""
        ends = np.cumsum(self.lengths, dtype=np.int64).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))


def encode_samples(samples: Samples) -> bytes:
    """The file's bytes: tensors in the order of the table, the header filled up with spaces to eight bytes."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    position = 0
    for name, dtype in TENSORS.items():
        values = np.ascontiguousarray(getattr(samples, name), dtype=_TYPES[dtype])
        data = values.tobytes()
        offsets = [position, position + len(data)]
        header[name] = {"dtype": dtype, "shape": [values.size], "data_offsets": offsets}
        parts.append(data)
        position += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def read_samples(stream: BinaryIO) -> Samples:
    """The tensors of a group's file.

    Raises:
        EvidenceError: `TENSORS_INVALID`, it is no whole file of tensors; `LOGPROBS_WRONG`, it has no log-probabilities, or
            not one a token; `GROUP_MALFORMED`, it is too large, lacks another tensor, has one of another type or shape, or more;
            `GROUP_TOKENS`, lengths, ids and mask do not cover the same tokens.
    """
    size = stream.seek(0, SEEK_END)
    stream.seek(0)
    if size > MAX_BYTES:
        raise EvidenceError("GROUP_MALFORMED", f"a group's samples take over {MAX_BYTES} bytes")
    _refuse_remarks(stream)
    entries = read_header(stream)
    base = stream.tell()
    check_covered(stream, entries)
    found: dict[str, NDArray[Any]] = {}
    for entry in entries:
        if TENSORS.get(entry.name) != entry.dtype or len(entry.shape) != 1:
            raise EvidenceError(
                "GROUP_MALFORMED",
                f"tensor {entry.name[:40]} is none of a group's, or of another type or shape",
                field=entry.name[:40],
            )
        stream.seek(base + entry.start)
        data = stream.read(entry.end - entry.start)
        found[entry.name] = np.frombuffer(data, dtype=_TYPES[entry.dtype])
    for name in TENSORS:
        if name not in found:
            code = "LOGPROBS_WRONG" if name == "logprobs" else "GROUP_MALFORMED"
            raise EvidenceError(code, f"the samples have no {name}", field=name)
    samples = Samples(**found)
    _check_cover(samples)
    return samples


def _refuse_remarks(stream: BinaryIO) -> None:
    """A file's remarks are read by nobody, so nothing may hide there."""
    length = int.from_bytes(stream.read(8), "little")
    if length > MAX_SAMPLES_HEADER and length <= MAX_HEADER_BYTES:
        raise EvidenceError("GROUP_MALFORMED", "the header is longer than five tensors need")
    header = stream.read(min(length, MAX_SAMPLES_HEADER))
    if b"__metadata__" in header:
        raise EvidenceError("GROUP_MALFORMED", "the samples carry remarks", field="__metadata__")
    stream.seek(0)


def _check_cover(samples: Samples) -> None:
    lengths = samples.lengths.astype(np.int64)
    if not samples.prompt_ids.size or not lengths.size:
        raise EvidenceError("GROUP_TOKENS", "the samples have no prompt or no member")
    if (lengths < 1).any() or (samples.prompt_ids < 0).any() or (samples.completion_ids < 0).any():
        raise EvidenceError("GROUP_TOKENS", "a completion is empty, or an id is negative")
    tokens = int(lengths.sum())
    for name in ("completion_ids", "mask"):
        if getattr(samples, name).size != tokens:
            raise EvidenceError(
                "GROUP_TOKENS",
                f"{name} has not one number a token",
                field=name,
                expected=str(tokens),
                actual=str(getattr(samples, name).size),
            )
    if samples.logprobs.size != tokens:
        raise EvidenceError(
            "LOGPROBS_WRONG",
            "there is not one log-probability a token",
            field="logprobs",
            expected=str(tokens),
            actual=str(samples.logprobs.size),
        )
