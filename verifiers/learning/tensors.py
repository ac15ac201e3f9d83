"""What trainable weights are: one digest over their names, types, shapes and bytes.

The same digest is computed in two places that share no library: while training, from the live tensors, and here, from
the bytes of a `safetensors` file alone. So whoever holds a checkpoint can tell which update it is, without torch.

    state = SHA-256 over each tensor in name order of
            name NUL dtype NUL shape NUL length LF bytes

`dtype` is the file format's own name (`F32`), `shape` its sizes joined by `x` (empty for a scalar), `length` the number
of bytes, which are little-endian and in row order. Names are those the file has.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from os import SEEK_END
from typing import TYPE_CHECKING, Any, BinaryIO

from ledger.digests import CHUNK_BYTES, PREFIX
from ledger.errors import EvidenceError
from verifiers.data.json_text import loads_unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_HEADER_BYTES = 8 << 20
"""Enough for 50,000 tensors; the header of a file that claims more is not read."""

MAX_METADATA_BYTES = 64 << 10
"""Texts beside the tensors, which no digest of a state covers: enough for notes, too little to hide something in."""

MAX_DIMENSIONS = 64
MAX_SIZE = 2**63 - 1

WIDTH_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
}


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file: its name, type and shape, and where its bytes lie behind the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


class StateDigest:
    """The digest while tensors are added, in name order."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self._last = ""

    def add(
        self, name: str, dtype: str, shape: Iterable[int], parts: Iterable[Any], length: int
    ) -> None:
        """Add one tensor.

        Args:
            name: later in code point order than the one before.
            dtype: the file format's name of its type.
            shape: its sizes.
            parts: its bytes, in any number of bytes-like pieces.
            length: how many bytes that is.

        Raises:
            EvidenceError: `TENSORS_INVALID`, the name is not later than the last, or holds a null or line feed.
        """
        if "\0" in name or "\n" in name:
            # the digest's own separators: with them two sets of tensors could have one digest
            raise EvidenceError("TENSORS_INVALID", f"tensor name {name[:80]!r} holds a separator")
        if name <= self._last:
            raise EvidenceError(
                "TENSORS_INVALID", f"tensor {name} does not come after {self._last}"
            )
        self._last = name
        sizes = "x".join(str(size) for size in shape)
        self._state.update(f"{name}\0{dtype}\0{sizes}\0{length}\n".encode())
        for part in parts:
            self._state.update(part)

    def value(self) -> str:
        """The digest of what was added so far."""
        return PREFIX + self._state.hexdigest()


def read_header(stream: BinaryIO) -> list[TensorEntry]:
    """The tensors of a `safetensors` file in the order of their bytes; the stream then stands at the first byte.

    Raises:
        EvidenceError: `TENSORS_INVALID`, the header is too long, no JSON, holds too much beside tensors, or its tensors leave gaps, overlap or have
            lengths that their types and shapes do not give.
    """
    length = int.from_bytes(_exactly(stream, 8), "little")
    if length > MAX_HEADER_BYTES:
        raise EvidenceError(
            "TENSORS_INVALID", f"the header claims {length} bytes, over {MAX_HEADER_BYTES}"
        )
    try:
        header = loads_unique(_exactly(stream, length), max_depth=4)
    except EvidenceError as error:
        if error.code == "TENSORS_INVALID":
            raise
        raise EvidenceError("TENSORS_INVALID", f"the header: {error.message}") from None
    if not isinstance(header, dict):
        raise EvidenceError("TENSORS_INVALID", "the header is no object")
    _check_metadata(header.pop("__metadata__", {}))
    entries = sorted(
        (_entry(name, fields) for name, fields in header.items()), key=lambda entry: entry.start
    )
    _check_layout(entries)
    return entries


def _check_metadata(notes: Any) -> None:
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise EvidenceError("TENSORS_INVALID", "__metadata__ is no object of texts")
    size = sum(len(name.encode()) + len(text.encode()) for name, text in notes.items())
    if size > MAX_METADATA_BYTES:
        raise EvidenceError(
            "TENSORS_INVALID", f"__metadata__ has {size} bytes, over {MAX_METADATA_BYTES}"
        )


def file_state_digest(stream: BinaryIO) -> str:
    """The state digest of a seekable `safetensors` stream.

    Raises:
        EvidenceError: `TENSORS_INVALID`, see `read_header`; or the file ends before its last tensor or goes on after.
    """
    entries = read_header(stream)
    base = stream.tell()
    state = StateDigest()
    for entry in sorted(entries, key=lambda entry: entry.name):
        stream.seek(base + entry.start)
        size = entry.end - entry.start
        state.add(entry.name, entry.dtype, entry.shape, _chunks(stream, size), size)
    stream.seek(base)
    check_covered(stream, entries)
    return state.value()


def check_covered(stream: BinaryIO, entries: Iterable[TensorEntry]) -> None:
    """Refuse a file with bytes that no tensor describes; the stream stands at the first byte behind the header.

    Raises:
        EvidenceError: `TENSORS_INVALID`, the file ends before its last tensor or goes on after.
    """
    end = stream.tell() + max((entry.end for entry in entries), default=0)
    length = stream.seek(0, SEEK_END)
    if length != end:
        word = "goes on behind" if length > end else "ends before the end of"
        raise EvidenceError("TENSORS_INVALID", f"the file {word} its last tensor")


def _entry(name: str, fields: Any) -> TensorEntry:
    match fields:
        case {
            "dtype": str(dtype),
            "shape": list(shape),
            "data_offsets": [int(start), int(end)],
        } if dtype in WIDTH_BYTES and _are_sizes(shape) and _are_sizes((start, end)):
            entry = TensorEntry(name, dtype, tuple(shape), start, end)
        case _:
            raise EvidenceError("TENSORS_INVALID", f"tensor {name[:80]} is described wrongly")
    if len(shape) > MAX_DIMENSIONS or end - start != entry.elements * WIDTH_BYTES[dtype]:
        raise EvidenceError(
            "TENSORS_INVALID", f"tensor {name[:80]} has not the length its shape gives"
        )
    return entry


def _are_sizes(values: Iterable[object]) -> bool:
    return all(type(value) is int and 0 <= value <= MAX_SIZE for value in values)


def _check_layout(entries: list[TensorEntry]) -> None:
    position = 0
    for entry in entries:
        if entry.start != position:
            raise EvidenceError(
                "TENSORS_INVALID", f"tensor {entry.name[:80]} leaves a gap or overlaps"
            )
        position = entry.end


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EvidenceError("TENSORS_INVALID", "the file ends too early")
    return data


def _chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    while size:
        chunk = _exactly(stream, min(size, CHUNK_BYTES))
        size -= len(chunk)
        yield chunk
