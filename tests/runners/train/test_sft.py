"""Supervised training in a real child process on a tiny model: events, records' material, checkpoints, refusals."""

from __future__ import annotations

import json
import math
import shutil
from itertools import pairwise

import pytest
from sft_run import SETTINGS, Run, changed
from tiny import files_of, model_job, torch

from ledger.canonical import parse_real
from ledger.errors import EvidenceError, UsageError
from runners.train.checkpoints import FILES, adapter_state_digest, write_checkpoint
from runners.train.order import micro_batches
from runners.train.preflight import encode_rows, read_rows
from runners.train.tokens import load_tokenizer
from verifiers.learning.learner_state import ROLLOUTS_FILE

pytestmark = [pytest.mark.train, pytest.mark.slow]


@pytest.fixture(scope="module")
def finished(tiny_model, tmp_path_factory):
    """One run in a child process that went as planned, shared by the tests that only read it."""
    run = Run(tiny_model, tmp_path_factory.mktemp("run")).apart()
    assert run.ended.outcome == "completed", (run.ended, (run.folder / "log").read_text())
    return run


def test_events_come_in_order(finished):
    """A batch comes before its update, a checkpoint after it, and nothing is left out."""
    names = [event["event"] for event in finished.events]
    step = ["batch", "update"]
    assert names == ["start", *step, *step, "checkpoint", *step, *step, "checkpoint"]
    assert [event["step"] for event in finished.of("update")] == [1, 2, 3, 4]
    assert [event["step"] for event in finished.of("checkpoint")] == [2, 4]


def test_batches_are_those_of_the_plan(finished, tiny_model):
    """The rows that the child reads are the ones that the pure order gives, micro-batch by micro-batch."""
    encoded = encode_rows(load_tokenizer(tiny_model), read_rows(finished.rows), 1024)
    planned = micro_batches(encoded.rows, SETTINGS)
    read = [micro for event in finished.of("batch") for micro in event["micro_batches"]]
    assert read == [[encoded.rows[position].digest for position in micro] for micro in planned]
    for index, event in enumerate(finished.of("batch")):
        positions = [position for micro in planned[2 * index : 2 * index + 2] for position in micro]
        assert event["trainable_tokens"] == sum(
            encoded.rows[position].trainable for position in positions
        )


def test_updates_form_a_chain(finished):
    """Each update starts from the state where the last one ended, and changes it."""
    updates = finished.of("update")
    assert updates[0]["before"] == finished.of("start")[0]["state"]
    for left, right in pairwise(updates):
        assert left["after"] == right["before"]
    states = [update["before"] for update in updates] + [updates[-1]["after"]]
    assert len(set(states)) == 5
    assert finished.ended.end["state"] == updates[-1]["after"]


def test_figures_are_reals_of_the_step(finished):
    """Loss and norm are finite and positive, and the rate is the one used: linear from the first step."""
    updates = finished.of("update")
    assert [parse_real(update["learning_rate"]) for update in updates] == pytest.approx(
        [0.01, 0.0075, 0.005, 0.0025]
    )
    for update, batch in zip(updates, finished.of("batch"), strict=True):
        assert 0 < parse_real(update["loss"]) < 20
        assert 0 < parse_real(update["gradient_norm"]) < math.inf
        assert update["figures"]["labelled"] == batch["trainable_tokens"]
        assert 0 < update["figures"]["computed"] < batch["tokens"]


def test_it_learns(finished):
    """The loss falls: the gradient goes where the labels say."""
    losses = [parse_real(update["loss"]) for update in finished.of("update")]
    assert losses[-1] < losses[0]


def test_checkpoints_hold_five_files_and_the_acknowledged_state(finished):
    """A checkpoint has no pickle in it, and its bytes alone give the state of the update before it."""
    updates = {update["step"]: update["after"] for update in finished.of("update")}
    for event in finished.of("checkpoint"):
        folder = finished.folder / "out" / f"checkpoint-{event['step']:06d}"
        assert str(folder) == event["path"]
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            set(FILES) - {ROLLOUTS_FILE}
        )
        assert adapter_state_digest(folder) == event["state"] == updates[event["step"]]
    assert not list((finished.folder / "out").glob("*.partial"))


def test_no_path_of_this_machine_in_a_checkpoint(finished):
    """The adapter names its base model, not the folder it lay in."""
    text = (finished.folder / "out" / "checkpoint-000004" / "adapter_config.json").read_text()
    assert json.loads(text)["base_model_name_or_path"] == "tiny"
    assert str(finished.folder) not in text


def test_the_start_names_rows_weights_and_machine(finished):
    """The first event accounts for every row and says on what the run stands."""
    (start,) = finished.of("start")
    assert start["rows"] == {"input": 12, "effective": 12, "truncated": 0, "dropped": 0}
    assert start["trainable_parameters"] == 2 * (2 * (32 + 32) + 2 * (64 + 32))
    assert start["libraries"]["trl"]
    assert start["machine"]["processor"]
    assert start["threads"] == 1


def test_the_same_seed_gives_the_same_bits(finished, tiny_model, tmp_path):
    """Another process with the same plan reaches the same states and losses, step by step, to the last bit."""
    again = Run(tiny_model, tmp_path).here()
    assert [u["after"] for u in again.of("update")] == [u["after"] for u in finished.of("update")]
    assert [u["loss"] for u in again.of("update")] == [u["loss"] for u in finished.of("update")]


def test_another_seed_gives_other_weights(finished, tiny_model, tmp_path):
    """The seed decides the adapter's first values and the order of the rows."""
    other = Run(tiny_model, tmp_path, changed(seed=6, steps=1)).here()
    assert other.of("start")[0]["state"] != finished.of("start")[0]["state"]
    assert other.of("batch")[0]["micro_batches"] != finished.of("batch")[0]["micro_batches"]


def test_the_librarys_own_loss_gives_the_same_run(finished, tiny_model, tmp_path):
    """With the library's loss every step has the same loss and gradient, to rounding."""
    stock = Run(tiny_model, tmp_path, changed(loss="stock")).here()
    for ours, theirs in zip(finished.of("update"), stock.of("update"), strict=True):
        for name in ("loss", "gradient_norm"):
            assert parse_real(ours[name]) == pytest.approx(parse_real(theirs[name]), rel=1e-2)


def test_a_refused_batch_changes_nothing(tiny_model, tmp_path):
    """Where the record of a batch cannot be written, its step does not happen and nothing is saved."""

    def answer(event):
        refused = event["event"] == "batch" and event["step"] == 2
        return {"ok": False, "message": "the disk is full"} if refused else {}

    run = Run(tiny_model, tmp_path, answer=answer)
    with pytest.raises(UsageError, match="disk is full") as caught:
        run.here()
    assert caught.value.code == "CHILD_REFUSED"
    assert [event["event"] for event in run.events] == ["start", "batch", "update", "batch"]
    assert not list(tmp_path.glob("out/checkpoint*"))


def test_a_stop_ends_at_a_checkpoint(tiny_model, tmp_path):
    """A run that is asked to stop finishes its step, writes a checkpoint and says it was stopped."""
    run = Run(
        tiny_model, tmp_path, answer=lambda event: {"stop": event["event"] == "update"}
    ).here()
    assert (run.end["outcome"], run.end["steps"]) == ("stopped", 1)
    assert [event["event"] for event in run.events] == ["start", "batch", "update", "checkpoint"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"max_length": 8}, "ROW_UNTRAINABLE", id="no label left"),
        pytest.param({"first_layer": 2}, "SETTING_INVALID", id="no layer to train"),
        pytest.param({"lora_targets": ("no_proj",)}, "SETTING_INVALID", id="no such module"),
    ],
)
def test_runs_that_cannot_start(tiny_model, tmp_path, change, code):
    """A run whose settings do not fit model or rows fails before its first batch, by code."""
    run = Run(tiny_model, tmp_path, changed(**change))
    with pytest.raises(UsageError) as caught:
        run.here()
    assert caught.value.code == code
    assert run.events == []


def test_upper_layers_only(tiny_model, tmp_path):
    """With `first_layer` the layers below carry no adapter, and the run still learns."""
    run = Run(tiny_model, tmp_path, changed(first_layer=1, steps=1)).here()
    assert run.of("start")[0]["trainable_parameters"] == 2 * (32 + 32) + 2 * (64 + 32)


def test_changed_weights_are_not_trained_on(tiny_model, tmp_path):
    """A model folder with one flipped bit is refused before it is loaded, and the file is named."""
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    raw = bytearray((copy / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (copy / "model.safetensors").write_bytes(raw)
    run = Run(tiny_model, tmp_path / "run", model={**model_job(tiny_model), "path": str(copy)})
    with pytest.raises(EvidenceError, match=r"model\.safetensors") as caught:
        run.here()
    assert caught.value.code == "MODEL_FILES_CHANGED"
    assert run.events == []


def test_no_gradient_no_update(tiny_model, tmp_path):
    """A step whose gradient is not finite fails before the optimizer moves, and is never acknowledged."""
    files = pytest.importorskip("safetensors.torch")
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    tensors = files.load_file(broken / "model.safetensors")
    tensors["model.norm.weight"] = torch.full_like(tensors["model.norm.weight"], math.inf)
    files.save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    run = Run(tiny_model, tmp_path / "run", model=model_job(broken))
    with pytest.raises(UsageError) as caught:
        run.here()
    assert caught.value.code == "BAD_GRADIENT"
    assert [event["event"] for event in run.events] == ["start", "batch"]


def test_a_checkpoint_of_another_state_is_not_published(finished, tmp_path):
    """If the bytes on disk are not the acknowledged weights, no checkpoint appears."""
    source = finished.folder / "out" / "checkpoint-000004"
    target = tmp_path / "checkpoint-000004"
    with pytest.raises(EvidenceError) as caught:
        write_checkpoint(
            target,
            lambda folder: [shutil.copy(path, folder) for path in source.iterdir()],
            "sha256:" + "0" * 64,
        )
    assert caught.value.code == "CHECKPOINT_CHANGED"
    assert not target.exists()


def test_a_checkpoint_is_never_overwritten(finished, tmp_path):
    """A folder that exists is left as it is."""
    source = finished.folder / "out" / "checkpoint-000004"
    target = tmp_path / "checkpoint-000004"
    target.mkdir()
    with pytest.raises(FileExistsError):
        write_checkpoint(
            target,
            lambda folder: [shutil.copy(path, folder) for path in source.iterdir()],
            adapter_state_digest(source),
        )
    assert files_of(target) == []
