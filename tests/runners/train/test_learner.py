"""A learner's state comes back byte for byte, and one that is not whole does not come back at all."""

from __future__ import annotations

import json
import random
import shutil

import pytest
from sft_run import Run, changed, going_on
from tiny import files_of, torch

from ledger.canonical import decode, encode
from ledger.errors import EvidenceError
from runners.train.learner import packed, random_state, restore_random, unpacked
from verifiers.learning.learner_state import (
    LEARNER_FILE,
    OPTIMIZER_FILE,
    PARTS,
    RANDOM_FILE,
    parts_of_folder,
)

pytestmark = [pytest.mark.train, pytest.mark.slow]

LAST = "checkpoint-000006"
TWO_EPOCHS = {
    "steps": 6,
    "save_steps": 1,
    "lora_dropout": 0.2,
    "schedule": "cosine",
    "warmup_steps": 2,
}


def settings(**change):
    """Two epochs of three steps with dropout and a schedule that bends."""
    return changed(**TWO_EPOCHS, **change)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def whole(request, tiny_model, tmp_path_factory):
    """A run that nobody interrupted, in each precision of the matrix products."""
    folder = tmp_path_factory.mktemp("whole")
    return Run(tiny_model, folder, settings(matmul=request.param)).here()


@pytest.fixture
def third(whole, tmp_path):
    """A copy of the uninterrupted run's third checkpoint, at the end of its first epoch."""
    return shutil.copytree(
        whole.folder / "out" / "checkpoint-000003", tmp_path / "checkpoint-000003"
    )


def precision(run):
    """The settings of a run."""
    return settings(matmul=run.job["settings"]["matmul"])


@pytest.mark.parametrize("step", [1, 3, 5])
def test_going_on_gives_the_bytes_of_the_uninterrupted_run(whole, tiny_model, tmp_path, step):
    """From any step of either epoch: the same batches, the same states, and a last checkpoint of the same bytes."""
    at = whole.folder / "out" / f"checkpoint-{step:06d}"
    run = Run(tiny_model, tmp_path, precision(whole), start=going_on(at)).here()
    for name in ("batch", "update"):
        left, right = whole.of(name)[step:], run.of(name)
        assert [drop_number(event) for event in left] == [drop_number(event) for event in right]
    assert files_of(tmp_path / "out" / LAST) == files_of(whole.folder / "out" / LAST)
    (restored,) = run.of("restored")
    digests = {file["path"]: file["digest"] for file in files_of(at)}
    assert restored["digests"].items() <= digests.items()
    assert set(restored["digests"]) == {OPTIMIZER_FILE, RANDOM_FILE, LEARNER_FILE}


def drop_number(event):
    """An event without its number in the conversation."""
    return {name: value for name, value in event.items() if name != "n"}


def test_a_stopped_run_goes_on_as_if_it_had_not_been(whole, tiny_model, tmp_path):
    """A cooperative stop saves at the next boundary; what goes on from there ends in the same bytes."""
    asked = {"stop": False}

    def answer(event):
        asked["stop"] = event["event"] == "update" and event["step"] == 2
        return asked

    unsaved = precision(whole).model_copy(update={"save_steps": 0})
    first = Run(tiny_model, tmp_path / "first", unsaved, answer=answer).here()
    assert first.end["outcome"] == "stopped"
    (saved,) = first.of("checkpoint")
    assert saved["step"] == 2
    start = going_on(tmp_path / "first" / "out" / "checkpoint-000002")
    Run(tiny_model, tmp_path / "second", unsaved, start=start).here()
    assert files_of(tmp_path / "second" / "out" / LAST) == files_of(whole.folder / "out" / LAST)


def test_every_part_is_found_in_the_bytes(whole):
    """What a checkpoint holds is derived from its files, and each of the five parts is there."""
    for event in whole.of("checkpoint"):
        folder = whole.folder / "out" / f"checkpoint-{event['step']:06d}"
        assert parts_of_folder(folder, event["step"]) == dict.fromkeys(PARTS, True)
        assert not parts_of_folder(folder, event["step"] + 1)["scheduler"]


def altered(name, change):
    """Change the value of a JSON file, still in canonical form."""

    def alter(folder):
        value = decode((folder / name).read_bytes())
        change(value)
        (folder / name).write_bytes(encode(value))

    return alter


def left_out(name):
    """Take a file away."""
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(left_out(OPTIMIZER_FILE), "STATE_INCOMPLETE", id="no optimizer"),
        pytest.param(left_out(RANDOM_FILE), "STATE_INCOMPLETE", id="no random state"),
        pytest.param(left_out(LEARNER_FILE), "STATE_INCOMPLETE", id="no schedule"),
        pytest.param(
            altered(LEARNER_FILE, lambda value: value.pop("scheduler")),
            "STATE_INCOMPLETE",
            id="schedule left out",
        ),
        pytest.param(
            altered(LEARNER_FILE, lambda value: value["scheduler"].update(last_epoch=2)),
            "STATE_INCOMPLETE",
            id="schedule of another step",
        ),
        pytest.param(
            altered(LEARNER_FILE, lambda value: value["sampler"].update(position=4)),
            "STATE_DIFFERS",
            id="sampler elsewhere",
        ),
        pytest.param(
            altered(LEARNER_FILE, lambda value: value["optimizer"]["groups"].reverse()),
            "STATE_DIFFERS",
            id="groups in another order",
        ),
        pytest.param(
            altered(LEARNER_FILE, lambda value: value.update(format=2)),
            "STATE_MALFORMED",
            id="another format",
        ),
        pytest.param(
            lambda folder: (folder / LEARNER_FILE).write_bytes(b"{"),
            "STATE_MALFORMED",
            id="no JSON",
        ),
        pytest.param(
            lambda folder: (folder / OPTIMIZER_FILE).write_bytes(b"\0" * 8),
            "TENSORS_INVALID",
            id="no tensors",
        ),
    ],
)
def test_a_state_that_is_not_whole_is_refused(whole, third, tiny_model, tmp_path, spoil, code):
    """A part that is missing or of another place is refused by code before any step, and nothing is fed."""
    spoil(third)
    run = Run(tiny_model, tmp_path / "run", precision(whole), start=going_on(third))
    with pytest.raises(EvidenceError) as caught:
        run.here()
    assert caught.value.code == code
    assert run.of("batch") == []


@pytest.mark.parametrize("name", [OPTIMIZER_FILE, RANDOM_FILE, LEARNER_FILE])
def test_a_changed_byte_is_refused(whole, third, tiny_model, tmp_path, name):
    """A file that is not the checkpoint's any more is noticed by its digest, whatever it holds now."""
    start = going_on(third)
    raw = bytearray((third / name).read_bytes())
    raw[-2] ^= 1
    (third / name).write_bytes(raw)
    run = Run(tiny_model, tmp_path / "run", precision(whole), start=start)
    with pytest.raises(EvidenceError, match=name) as caught:
        run.here()
    assert caught.value.code == "MODEL_FILES_CHANGED"


def test_only_the_weights_are_taken_where_only_they_are_asked_for(
    whole, third, tiny_model, tmp_path
):
    """With `weights` the adapter is the checkpoint's; optimizer, schedule and order begin anew."""
    start = going_on(third, "weights")
    run = Run(tiny_model, tmp_path / "run", precision(whole), start=start).here()
    first = run.of("update")[0]
    assert run.of("start")[0]["state"] == start["checkpoint"]["state"] == first["before"]
    assert first["learning_rate"] == whole.of("update")[0]["learning_rate"]
    assert [event["mode"] for event in run.of("restored")] == ["weights"]
    assert run.of("batch")[0]["micro_batches"] == whole.of("batch")[0]["micro_batches"]


def test_an_adapter_of_other_settings_does_not_fit(whole, third, tiny_model, tmp_path):
    """Weights of another rank are no start for these settings."""
    other = precision(whole).model_copy(update={"lora_rank": 4})
    run = Run(tiny_model, tmp_path / "run", other, start=going_on(third, "weights"))
    with pytest.raises(EvidenceError) as caught:
        run.here()
    assert caught.value.code == "STATE_DIFFERS"


def test_random_states_come_back(whole, third):
    """Python, NumPy and torch draw the same numbers again after their states were put back."""
    numpy = pytest.importorskip("numpy")
    drawn = []
    for _ in range(2):
        restore_random(third)
        drawn.append((random.random(), numpy.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]
    before = random_state()[1]
    assert json.loads(encode(before)) == before


@pytest.mark.parametrize("value", [0.1, (1, 2.5), [1, None, True], {"a": (0.5,), "b": "text"}, 3])
def test_plain_values_are_packed_without_loss(value):
    """Real numbers and tuples come back as what they were, through canonical JSON."""
    assert unpacked(decode(encode({"v": packed(value)}))["v"]) == value
