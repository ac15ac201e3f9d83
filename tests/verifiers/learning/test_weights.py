"""A file of weights is taken for what its bytes hold: empty, torn, untrained or unlike its plan, it is refused by code."""

from __future__ import annotations

import io
import json
import math
import struct
from functools import partial

import numpy as np
import pytest
from world import World

from ledger.errors import EvidenceError
from verifiers.learning.learner_state import ADAPTER_FILE, MODEL_FILE
from verifiers.learning.weights import (
    check_lines,
    checked_weights,
    near,
    summary_of,
    take_inventory,
)
from verifiers.replay.learning import check_base, moved

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1"}
A, B = "m.q_proj.lora_A.weight", "m.q_proj.lora_B.weight"
OTHER_A, OTHER_B = "m.v_proj.lora_A.weight", "m.v_proj.lora_B.weight"


def file_of(tensors, behind=b""):
    """A safetensors file: each tensor by its type and an array, or raw bytes and a shape."""
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.astype(TYPES[dtype]).tobytes() if dtype in TYPES else array.tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data + behind


def adapter(**change):
    """Two modules with rank 2; a change replaces a tensor, or takes it away where it is None."""
    made = {
        A: ("F32", np.ones((2, 3))),
        B: ("F32", np.ones((4, 2))),
        OTHER_A: ("F32", np.ones((2, 3))),
        OTHER_B: ("F32", np.zeros((4, 2))),
        **change,
    }
    return {name: value for name, value in made.items() if value is not None}


def summary(tensors):
    """What a plan that trains these says."""
    return summary_of((name, dtype, array.shape) for name, (dtype, array) in tensors.items())


def checked(data, planned=None, *, moved=True, name=ADAPTER_FILE):
    """The weights of a checkpoint with this file."""
    return checked_weights({name: partial(io.BytesIO, data)}, planned, moved=moved)


def test_norms_are_those_of_the_numbers():
    """For every type the norm is the root of the sum of squares; bfloat16 is read as the upper half of a float32."""
    numbers = np.array([[3.0, 4.0], [0.0, 12.0]])
    halves = (numbers.astype("<f4").view("<u4") >> 16).astype("<u2")
    tensors = {name: (name, numbers) for name in TYPES} | {"BF16": ("BF16", halves)}
    found = take_inventory(io.BytesIO(file_of(tensors)))
    assert found.norms == dict.fromkeys(tensors, 13.0)
    assert found.norm == pytest.approx(13 * math.sqrt(len(tensors)))
    assert [line["name"] for line in found.lines()] == sorted(tensors)
    assert found.lines()[0] == {"name": "BF16", "dtype": "BF16", "shape": [2, 2], "norm": "13.0"}


def test_a_sound_adapter_is_what_its_plan_says():
    """One B matrix of two may be zero; the summary counts tensors and numbers, in any order."""
    tensors = adapter()
    found = checked(file_of(tensors), summary(dict(reversed(tensors.items()))))
    assert (found.summary["count"], found.summary["parameters"]) == (4, 28)
    assert checked(file_of(tensors)).summary == found.summary


def test_zero_matrices_are_in_order_before_anything_moved():
    """An adapter begins with B at zero: only an update with a positive rate makes that a fault."""
    tensors = adapter(**{B: ("F32", np.zeros((4, 2)))})
    assert checked(file_of(tensors), moved=False).norm > 0


def test_a_whole_model_has_no_pairs():
    """Tensors of other names need no partner, whatever they hold."""
    data = file_of({"model.norm.weight": ("F32", np.zeros(3))})
    assert checked(data, name=MODEL_FILE).summary["parameters"] == 3


REFUSED = [
    pytest.param(file_of({}), None, "WEIGHTS_EMPTY", "no tensor", id="forty bytes of nothing"),
    pytest.param(
        file_of(adapter(**{B: ("F32", np.zeros((4, 2)))})),
        None, "ADAPTER_UNTRAINED", "all 2 LoRA-B", id="every B zero",
    ),
    pytest.param(file_of(adapter(**{B: None})), None, "WEIGHTS_OTHER", B, id="a B missing"),
    pytest.param(file_of(adapter(**{A: None})), None, "WEIGHTS_OTHER", A, id="an A missing"),
    pytest.param(
        file_of(adapter(**{B: ("F32", np.ones((4, 3)))})),
        None, "WEIGHTS_OTHER", "ranks 2 and 3", id="two ranks",
    ),
    pytest.param(
        file_of(adapter(**{OTHER_A: None, OTHER_B: None})),
        summary(adapter()), "WEIGHTS_OTHER", "2 tensors of 14 numbers, the plan trains 4 of 28",
        id="a module missing",
    ),
    pytest.param(
        file_of(adapter(**{"m.norm.weight": ("F32", np.ones(1))})),
        summary(adapter()), "WEIGHTS_OTHER", "5 tensors", id="a tensor more",
    ),
    pytest.param(
        file_of(adapter(**{A: ("F64", np.ones((2, 3)))})),
        summary(adapter()), "WEIGHTS_OTHER", "types or shapes", id="another type",
    ),
    pytest.param(
        file_of(adapter(**{A: ("F32", np.full((2, 3), np.nan))})),
        None, "WEIGHTS_NOT_FINITE", A, id="not a number",
    ),
    pytest.param(
        file_of(adapter(**{A: ("F32", np.full((2, 3), np.inf))})),
        None, "WEIGHTS_NOT_FINITE", A, id="an infinity",
    ),
    pytest.param(
        file_of(adapter(), b"hidden"), None, "TENSORS_INVALID", "goes on behind", id="hidden bytes"
    ),
    pytest.param(file_of(adapter())[:-1], None, "TENSORS_INVALID", "ends before", id="cut"),
    pytest.param(
        file_of({"a": ("F8_E5M2", np.zeros(1, "u1"))}),
        None, "TENSORS_INVALID", "F8_E5M2", id="a type that nobody trains in",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "planned", "code", "word"), REFUSED)
def test_weights_that_are_not_what_was_planned(data, planned, code, word):
    """Each way in which a file of weights can be worthless has its code, and the message says which tensors."""
    with pytest.raises(EvidenceError) as caught:
        checked(data, planned)
    assert caught.value.code == code
    assert word in caught.value.message


@pytest.mark.parametrize("names", [[], [ADAPTER_FILE, MODEL_FILE]], ids=["none", "both"])
def test_a_checkpoint_has_one_file_of_weights(names):
    """An adapter or a whole model, not neither and not both: which of two counts would be anybody's guess."""
    data = file_of(adapter())
    with pytest.raises(EvidenceError) as caught:
        checked_weights({name: partial(io.BytesIO, data) for name in names}, None, moved=True)
    assert caught.value.code == "CHECKPOINT_WRONG"


def test_lines_are_compared_but_for_last_bits():
    """Names, types, shapes and the number of lines are equal, norms within a millionth."""
    found = take_inventory(io.BytesIO(file_of(adapter())))
    lines = found.lines()
    assert check_lines(found, lines) is None
    assert check_lines(found, lines[:-1]) == "the number of tensors"
    assert check_lines(found, [*lines[:-1], {**lines[-1], "norm": "0.5"}]) == OTHER_B
    assert check_lines(found, [{**lines[0], "shape": [3, 2]}, *lines[1:]]) == A
    assert near(1.0, "1.0000000001")
    assert not near(1.0, "1.0001")


def test_a_rate_of_zero_moves_nothing():
    """While the rate is zero no update moves the weights; from the first positive one on they have moved."""
    world = World()
    first = world.add("update.acknowledged", learning_rate="0.0")
    second = world.add("update.acknowledged", learning_rate="0.1")
    assert not moved(first, world.by_id.__getitem__)
    assert moved(second, world.by_id.__getitem__)


@pytest.mark.parametrize(
    ("config", "there"),
    [
        pytest.param({"base_model_name_or_path": "NAME", "revision": "REVISION"}, True, id="named"),
        pytest.param(
            {"base_model_name_or_path": "NAME", "revision": "other"}, False, id="revision"
        ),
        pytest.param({"base_model_name_or_path": "/home/x", "revision": None}, False, id="a path"),
        pytest.param([], False, id="no object"),
    ],
)
def test_an_adapter_names_its_base(config, there):
    """The adapter's configuration names the registered model and revision, or the checkpoint is refused."""
    model = World().add("model.registered", revision="REVISION")
    text = json.dumps(config).replace("NAME", model.body["name"]).encode()
    if there:
        check_base(text, model)
        return
    with pytest.raises(EvidenceError) as caught:
        check_base(text, model)
    assert caught.value.code == "BASE_OTHER"
