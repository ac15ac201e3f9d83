"""The state digest of tensors, from live arrays and from a file's bytes."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ledger.errors import EvidenceError
from verifiers.learning.tensors import (
    MAX_HEADER_BYTES,
    StateDigest,
    file_state_digest,
    read_header,
)

NAMES = {"float32": "F32", "float16": "F16", "int64": "I64", "uint8": "U8"}

TENSORS = st.dictionaries(
    st.text("abcxyz.019_", min_size=1, max_size=12),
    st.sampled_from(sorted(NAMES)).flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, max_side=4))
    ),
    max_size=5,
)


def live_digest(tensors):
    """The digest of arrays in memory."""
    state = StateDigest()
    for name, array in sorted(tensors.items()):
        raw = np.ascontiguousarray(array).tobytes()
        state.add(name, NAMES[str(array.dtype)], array.shape, [raw], len(raw))
    return state.value()


def written(header, data=b""):
    """The bytes of a safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@given(TENSORS)
def test_file_and_memory_agree(tensors):
    """The library's file and the live arrays have one digest, whatever names, types and shapes."""
    numpy_files = pytest.importorskip("safetensors.numpy")
    data = numpy_files.save(tensors, metadata={"format": "pt"})
    assert file_state_digest(io.BytesIO(data)) == live_digest(tensors)


@given(TENSORS.filter(bool), st.data())
def test_any_changed_byte_changes_the_digest(tensors, data):
    """One flipped bit anywhere in the tensors' bytes gives another digest."""
    names = [name for name in tensors if tensors[name].nbytes]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    raw = bytearray(np.ascontiguousarray(tensors[name]).tobytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1
    other = np.frombuffer(bytes(raw), tensors[name].dtype).reshape(tensors[name].shape)
    assert live_digest({**tensors, name: other}) != live_digest(tensors)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(
            {"a": np.zeros((2, 3), "float32")}, {"a": np.zeros((3, 2), "float32")}, id="shape"
        ),
        pytest.param({"a": np.zeros(4, "float32")}, {"a": np.zeros(2, "int64")}, id="type"),
        pytest.param({"a": np.zeros(1, "uint8")}, {"b": np.zeros(1, "uint8")}, id="name"),
        pytest.param({"a": np.zeros(0, "uint8")}, {}, id="an empty tensor"),
        pytest.param(
            {"a": np.arange(2, dtype="uint8"), "b": np.arange(1, dtype="uint8")},
            {"a": np.arange(1, dtype="uint8"), "b": np.array([1, 0], "uint8")},
            id="where one ends",
        ),
    ],
)
def test_what_the_digest_tells_apart(left, right):
    """Equal bytes under another name, type, shape or division are another state."""
    assert live_digest(left) != live_digest(right)


def test_pieces_do_not_matter():
    """The digest is of the bytes, however many pieces they come in."""
    whole, pieces = StateDigest(), StateDigest()
    whole.add("a", "U8", (4,), [b"abcd"], 4)
    pieces.add("a", "U8", (4,), [b"a", b"", b"bcd"], 4)
    assert whole.value() == pieces.value()


def test_names_must_come_in_order():
    """Tensors out of order, or twice, are refused: one state has one digest."""
    state = StateDigest()
    state.add("b", "U8", (1,), [b"x"], 1)
    for name in ("a", "b"):
        with pytest.raises(EvidenceError) as caught:
            state.add(name, "U8", (1,), [b"x"], 1)
        assert caught.value.code == "TENSORS_INVALID"


def test_a_name_cannot_stand_for_another_tensor():
    """Names hold none of the digest's separators, so one tensor never has the digest of two."""
    state = StateDigest()
    with pytest.raises(EvidenceError) as caught:
        state.add("a\0U8\x001\x001\nxb", "U8", (1,), [b"y"], 1)
    assert caught.value.code == "TENSORS_INVALID"


def entry(start, end, shape=(1,), dtype="U8"):
    """A header's description of one tensor."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x01\x00", id="half a length"),
        pytest.param((MAX_HEADER_BYTES + 1).to_bytes(8, "little"), id="a header without end"),
        pytest.param((2**63).to_bytes(8, "little") + b"{}", id="a length beyond all"),
        pytest.param(written(b"{") + b"x", id="no JSON"),
        pytest.param(written(b"[" * 50 + b"]" * 50), id="a deep header"),
        pytest.param(written([]), id="a list"),
        pytest.param(written({"a": 1}), id="no description"),
        pytest.param(written({"a": entry(0, 1, dtype="PICKLE")}, b"x"), id="no such type"),
        pytest.param(written({"a": entry(0, 1, shape=(-1, -1))}, b"x"), id="a negative shape"),
        pytest.param(written({"a": entry(0, 1, shape=(True,))}, b"x"), id="a shape of booleans"),
        pytest.param(written({"a": entry(0, 2)}, b"xx"), id="longer than its shape"),
        pytest.param(written({"a": entry(1, 2)}, b"xx"), id="a gap before"),
        pytest.param(written({"a": entry(0, 1), "b": entry(0, 1)}, b"x"), id="overlapping"),
        pytest.param(written({"a": entry(0, 1), "b": entry(2, 3)}, b"xxx"), id="a gap between"),
        pytest.param(written({"a": entry(0, 1)}), id="bytes missing"),
        pytest.param(written({"a": entry(0, 1)}, b"xx"), id="bytes behind"),
        pytest.param(written({"a": entry(False, True)}, b"x"), id="offsets of booleans"),
        pytest.param(
            written({"a": entry(0, 1, shape=(1,) * 65)}, b"x"), id="dimensions without end"
        ),
        pytest.param(written({"a": entry(0, 1, shape=(2**64, 0))}), id="a size beyond all"),
        pytest.param(written({"a": entry(0, -1, shape=(0,))}), id="a negative end"),
        pytest.param(
            written(
                b'{"a":'
                + json.dumps(entry(0, 1)).encode()
                + b',"a":'
                + json.dumps(entry(0, 1)).encode()
                + b"}",
                b"x",
            ),
            id="a name twice",
        ),
        pytest.param(written({"a\0U8": entry(0, 1)}, b"x"), id="a name with a null"),
    ],
)
def test_malformed_files(data):
    """A file whose header does not describe exactly its bytes raises one error, whatever is wrong."""
    with pytest.raises(EvidenceError) as caught:
        file_state_digest(io.BytesIO(data))
    assert caught.value.code == "TENSORS_INVALID"


def test_header_gives_shapes():
    """The header alone gives names, shapes and counts, and the stream stands at the first byte."""
    stream = io.BytesIO(
        written({"w": entry(0, 24, (2, 3), "F32"), "__metadata__": {"a": "b"}}, b"z" * 24)
    )
    (found,) = read_header(stream)
    assert (found.name, found.shape, found.elements) == ("w", (2, 3), 6)
    assert stream.read(1) == b"z"
