"""What a checkpoint holds is read from its bytes, without a training library, and compared with what its record claims."""

from __future__ import annotations

import io
import json
import struct
from functools import partial

import pytest
from world import World

from ledger.book import Ledger
from ledger.canonical import encode
from ledger.digests import FileEntry, sha256, tree_digest
from ledger.errors import EvidenceError
from verifiers.learning.learner_state import PARTS, parts_of, rows_read
from verifiers.learning.tensors import file_state_digest
from verifiers.replay.learning import checkpoint
from verifiers.replay.view import View

STEP = 1
NAMES = ("a.weight", "b.weight")


def tensors(**named):
    """A safetensors file of zeros: each tensor by its type, its width in bytes and its shape."""
    header, end = {}, 0
    for name, (dtype, width, shape) in named.items():
        size = width
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def learner(**change):
    """The fields of `learner.json`."""
    value = {
        "format": 1,
        "optimizer": {"groups": [{"params": [NAMES[1]]}, {"params": [NAMES[0]]}]},
        "scheduler": {"last_epoch": STEP},
        "scaler": None,
        "random": {},
        "sampler": {"epoch": 0, "position": 2, "rows": 10},
        "counters": {"updates": STEP},
    }
    return encode({name: item for name, item in {**value, **change}.items() if item != "out"})


def whole():
    """A complete checkpoint's files that matter here."""
    shapes = {name: ("F32", 4, [2, 3]) for name in NAMES}
    moments = {f"{m}.{name}": shapes[name] for name in NAMES for m in ("exp_avg", "exp_avg_sq")}
    steps = {f"step.{name}": ("F32", 4, []) for name in NAMES}
    generators = {"python": ("I64", 8, [625]), "numpy": ("I64", 8, [624]), "torch": ("U8", 1, [16])}
    return {
        "adapter_model.safetensors": tensors(**shapes),
        "optimizer.safetensors": tensors(**moments, **steps),
        "random.safetensors": tensors(**generators),
        "learner.json": learner(),
    }


def parts(files, step=STEP, processes=1):
    """The parts of some files."""
    opened = {name: partial(io.BytesIO, data) for name, data in files.items()}
    return parts_of(opened, step, processes)


def of_ranks(*ranks, positions=True):
    """The files with the random generators of these ranks beside those of rank 0."""
    generators = {"python": ("I64", 8, [625]), "numpy": ("I64", 8, [624]), "torch": ("U8", 1, [16])}
    more = {f"rank.{rank}.{name}": item for rank in ranks for name, item in generators.items()}
    names = [f"rank.{rank}.{name}" for rank in ranks for name in ("python", "numpy")]
    return {
        **whole(),
        "random.safetensors": tensors(**generators, **more),
        "learner.json": learner(random={name: {} for name in names} if positions else {}),
    }


@pytest.mark.parametrize(
    ("files", "processes", "there"),
    [
        pytest.param(of_ranks(), 1, True, id="one of one"),
        pytest.param(of_ranks(1), 2, True, id="both of two"),
        pytest.param(of_ranks(1, 2), 3, True, id="all of three"),
        pytest.param(of_ranks(), 2, False, id="one of two"),
        pytest.param(of_ranks(2), 2, False, id="another rank"),
        pytest.param(of_ranks(1), 1, False, id="two of one"),
        pytest.param(of_ranks(1, 2), 2, False, id="three of two"),
        pytest.param(of_ranks(1, positions=False), 2, False, id="no positions of rank 1"),
    ],
)
def test_every_process_has_its_random_state(files, processes, there):
    """The generators of as many processes as the plan names, no fewer and no more, and nothing else depends on it."""
    assert parts(files, processes=processes) == {**dict.fromkeys(PARTS, True), "random": there}


def test_a_complete_checkpoint_has_every_part():
    """Five parts, each there."""
    assert parts(whole()) == dict.fromkeys(PARTS, True)


CHANGES = [
    pytest.param({"adapter_model.safetensors": None}, {"weights", "optimizer"}, id="no adapter"),
    pytest.param({"optimizer.safetensors": None}, {"optimizer"}, id="no moments"),
    pytest.param(
        {"optimizer.safetensors": tensors(**{"exp_avg.a.weight": ("F32", 4, [2, 3])})},
        {"optimizer"},
        id="a moment too few",
    ),
    pytest.param(
        {"learner.json": learner(optimizer={"groups": [{"params": [NAMES[0]]}]})},
        {"optimizer"},
        id="a tensor in no group",
    ),
    pytest.param(
        {"learner.json": learner(scheduler={"last_epoch": 2})}, {"scheduler"}, id="another step"
    ),
    pytest.param({"learner.json": learner(scheduler="out")}, {"scheduler"}, id="no schedule"),
    pytest.param({"random.safetensors": None}, {"random"}, id="no generators"),
    pytest.param(
        {"random.safetensors": tensors(python=("I64", 8, [625]), torch=("U8", 1, [16]))},
        {"random"},
        id="a generator too few",
    ),
    pytest.param({"learner.json": learner(random="out")}, {"random"}, id="no positions"),
    pytest.param({"learner.json": learner(sampler="out")}, {"sampler"}, id="no sampler"),
    pytest.param(
        {"learner.json": learner(sampler={"epoch": 0, "position": 10, "rows": 10})},
        {"sampler"},
        id="a position behind the epoch",
    ),
    pytest.param({"learner.json": learner(counters={"updates": 9})}, {"sampler"}, id="other count"),
    pytest.param(
        {"learner.json": None}, {"optimizer", "scheduler", "random", "sampler"}, id="no json"
    ),
]


@pytest.mark.parametrize(("change", "absent"), CHANGES)
def test_a_part_that_is_not_there_is_not_claimed(change, absent):
    """Each way of leaving something out takes away the parts that need it, and no other."""
    files = {name: data for name, data in {**whole(), **change}.items() if data is not None}
    assert {name for name, there in parts(files).items() if not there} == absent


@pytest.mark.parametrize(
    ("data", "word"),
    [
        pytest.param(b"[]", "format", id="no object"),
        pytest.param(learner(format=2), "format", id="another format"),
        pytest.param(b"{ }", "canonical", id="not canonical"),
        pytest.param(b" " * ((1 << 20) + 1), "bytes", id="too long"),
    ],
)
def test_a_broken_file_is_an_error(data, word):
    """What cannot be read is never taken for a part that is merely absent."""
    with pytest.raises(EvidenceError, match=word) as caught:
        parts({**whole(), "learner.json": data})
    assert caught.value.code == "STATE_MALFORMED"


def test_rows_are_counted_over_epochs():
    """Epochs that are over, and the rows of this one."""
    assert rows_read({"sampler": {"epoch": 3, "position": 4, "rows": 10}}) == 34
    assert rows_read({}) is None


def replayed(folder, files, **claim):
    """V18 on a checkpoint with these files, its record claiming everything, and more."""
    world = World()
    model = world.need("model.registered").body
    base = {"base_model_name_or_path": model["name"], "revision": model["revision"]}
    files = {**files, "adapter_config.json": encode(base)}
    state = file_state_digest(io.BytesIO(files["adapter_model.safetensors"]))
    after = {"scheme": "tensors", "value": state}
    world.add("update.acknowledged", after=after)
    entries = [FileEntry(name, len(data), sha256(data)) for name, data in sorted(files.items())]
    world.blobs.update({sha256(data): data for data in files.values()})
    listed = [{"path": e.path, "size": e.size, "digest": e.digest} for e in entries]
    record = world.add(
        "checkpoint.published", files=listed, tree=tree_digest(entries), state=after, **claim
    )
    with Ledger.read(world.write(folder)) as ledger:
        return checkpoint(record, View(ledger, ledger.blobs))


def test_an_honest_checkpoint_is_derived(tmp_path):
    """Tree, state, parts and the sampler's position are those of the record; what was to be trained its plan does not say."""
    assert replayed(tmp_path / "ledger", whole()) == "which tensors a run trains"


@pytest.mark.parametrize(
    ("change", "claim", "word"),
    [
        pytest.param({"learner.json": learner(scheduler="out")}, {}, "completeness", id="claimed"),
        pytest.param(
            {}, {"completeness": {**dict.fromkeys(PARTS, True), "random": False}},
            "completeness", id="denied",
        ),
        pytest.param(
            {"learner.json": learner(sampler={"epoch": 1, "position": 2, "rows": 10})},
            {}, "position", id="rows that no record accounts for",
        ),
    ],
)  # fmt: skip
def test_false_claims_are_found(tmp_path, change, claim, word):
    """A part claimed and not there, or there and denied, or a sampler elsewhere: the record is wrong."""
    with pytest.raises(EvidenceError, match=word) as caught:
        replayed(tmp_path / "ledger", {**whole(), **change}, **claim)
    assert caught.value.code == "CHECKPOINT_WRONG"
