"""An optimizer's state in a checkpoint: the types, and numbers that updates could have left."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from ledger.errors import EvidenceError
from verifiers.learning.learner_state import ADAPTER_FILE, OPTIMIZER_FILE, parts_of
from verifiers.learning.moments import check_moments
from verifiers.learning.tensors import MAX_METADATA_BYTES, read_header

NAME = "a.lora_A.weight"
TYPES = {"f4": "F32", "f2": "F16", "?": "BOOL", "f8": "F64"}


def tensors_file(tensors: dict[str, Any], notes: Any = None) -> bytes:
    """A safetensors file of NumPy arrays, in the order given."""
    header: dict[str, Any]
    header, data = ({} if notes is None else {"__metadata__": notes}), b""
    for name, array in tensors.items():
        kind = TYPES[array.dtype.str.lstrip("<|").replace("b1", "?")]
        end = len(data) + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), end]}
        data += array.tobytes()
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data


def files(**changes: Any) -> dict[str, Any]:
    """A checkpoint's adapter and optimizer, some of its moments changed."""
    weights = np.ones((2, 2), "<f4")
    moments = {
        "exp_avg": -weights,
        "exp_avg_sq": weights,
        "step": np.float32(3),
        **changes,
    }
    made = {
        ADAPTER_FILE: tensors_file({NAME: weights}),
        OPTIMIZER_FILE: tensors_file({f"{part}.{NAME}": item for part, item in moments.items()}),
    }
    return {name: (lambda data=data: io.BytesIO(data)) for name, data in made.items()}


def test_an_honest_optimizer_passes():
    """Negative first moments are as good as any; a checkpoint without an optimizer has nothing to check."""
    check_moments(files())
    check_moments({})


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        pytest.param({"exp_avg": np.array([[1, np.nan], [1, 1]], "<f4")}, "not finite", id="nan"),
        pytest.param({"exp_avg_sq": np.array([[1, np.inf], [1, 1]], "<f4")}, "not finite", id="inf"),
        pytest.param({"exp_avg_sq": -np.ones((2, 2), "<f4")}, "below zero", id="negative square"),
        pytest.param({"step": np.float32(2.5)}, "no whole number", id="half a step"),
        pytest.param({"step": np.float32(-1)}, "no whole number", id="less than none"),
    ],
)  # fmt: skip
def test_moments_that_no_update_leaves(changed, word):
    """Names and shapes fit, and the numbers do not: each is refused by the tensor's name."""
    with pytest.raises(EvidenceError, match=word) as caught:
        check_moments(files(**changed))
    assert caught.value.code == "OPTIMIZER_WRONG"
    assert NAME in caught.value.field


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"step": np.array(True)}, id="a boolean count"),
        pytest.param({"exp_avg": np.ones((2, 2), "<f2")}, id="a narrower moment"),
        pytest.param({"exp_avg_sq": np.ones((2, 2), "<f8")}, id="a wider moment"),
    ],
)
def test_moments_of_other_types_are_no_optimizer(changed):
    """The part is then not there, so nobody goes on from it."""
    learner = json.dumps(
        {"format": 1, "optimizer": {"groups": [{"params": [NAME]}]}}, separators=(",", ":")
    ).encode()
    more = {"learner.json": lambda: io.BytesIO(learner)}
    assert parts_of(files() | more, 3)["optimizer"]
    assert not parts_of(files(**changed) | more, 3)["optimizer"]


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        pytest.param({"a": "x" * MAX_METADATA_BYTES}, "over 65536", id="too much"),
        pytest.param({"a": 1}, "no object of texts", id="a number"),
        pytest.param(["a"], "no object of texts", id="a list"),
    ],
)
def test_notes_beside_tensors_are_small(notes, why):
    """No digest of a state covers `__metadata__`, so nothing can be hidden in it."""
    with pytest.raises(EvidenceError, match=why) as caught:
        read_header(io.BytesIO(tensors_file({}, notes)))
    assert caught.value.code == "TENSORS_INVALID"
    assert read_header(io.BytesIO(tensors_file({}, {"format": "pt"}))) == []
