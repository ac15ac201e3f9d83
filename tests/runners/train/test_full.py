"""Every weight of a model is trained: saved once each, loadable by the library, gone on from to the last bit."""

from __future__ import annotations

import json

import pytest
from sft_run import Run, changed, going_on
from small_job import SFT
from test_resume import of_run
from tiny import AutoModelForCausalLM, files_of, torch

from ledger.book import Ledger
from ledger.canonical import parse_real
from ledger.errors import EvidenceError, UsageError
from runners.loading import load_model, merge_adapter, tensors_digest
from runners.train.checkpoints import adapter_state_digest
from runners.train.config import ADAPTER_SETTINGS, SftSettings, settings_from
from runners.train.trained import check_whole
from verifiers.learning.learner_state import MODEL_FILE, PARTS, parts_of_folder

pytestmark = [pytest.mark.train, pytest.mark.slow]

LAST = "checkpoint-000004"
FULL = SftSettings.from_values(
    {
        "tuning": "full", "steps": 4, "batch_size": 2, "accumulation": 2, "learning_rate": 0.01,
        "save_steps": 1, "seed": 5, "threads": 1, "schedule": "cosine", "warmup_steps": 1,
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tiny_model, tmp_path_factory):
    """A run that trained every weight and was not interrupted."""
    return Run(tiny_model, tmp_path_factory.mktemp("full"), FULL).here()


def test_every_weight_moves_and_tied_ones_stand_once(whole, tiny_model):
    """The file has the names of the base's file, each tensor of another value after a step with a positive rate."""
    files = pytest.importorskip("safetensors.torch")
    before = files.load_file(tiny_model / MODEL_FILE)
    after = files.load_file(whole.folder / "out" / LAST / MODEL_FILE)
    assert set(after) == set(before)
    assert "lm_head.weight" not in after
    assert not [name for name in after if torch.equal(before[name], after[name])]
    (start,) = whole.of("start")
    assert start["trainable_parameters"] == sum(value.numel() for value in before.values())
    losses = [parse_real(event["loss"]) for event in whole.of("update")]
    assert losses[-1] < losses[0]


def test_the_librarys_own_loss_gives_the_same_run(whole, tiny_model, tmp_path):
    """With the library's loss every step has the same loss and gradient, to rounding."""
    stock = Run(tiny_model, tmp_path, FULL.model_copy(update={"loss": "stock"})).here()
    for ours, theirs in zip(whole.of("update"), stock.of("update"), strict=True):
        for name in ("loss", "gradient_norm"):
            assert parse_real(ours[name]) == pytest.approx(parse_real(theirs[name]), rel=1e-2)


def test_the_library_loads_a_checkpoint(whole):
    """`from_pretrained` takes the folder as it lies, in the type that it was trained in, output layer tied."""
    folder = whole.folder / "out" / LAST
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    assert tensors_digest(model.named_parameters()) == whole.of("update")[-1]["after"]
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert str(whole.folder) not in (folder / "config.json").read_text()
    assert (folder / "tokenizer.json").exists()


@pytest.mark.parametrize("settings", [changed(steps=1), FULL.model_copy(update={"steps": 1})])
def test_activations_computed_again_give_the_same_step(tiny_model, tmp_path, settings):
    """With gradient checkpointing a step has the same loss and gradient, to rounding: no row loses its opening."""
    settings = settings.model_copy(update={"warmup_steps": 0})
    left = Run(tiny_model, tmp_path / "a", settings).here().of("update")[0]
    again = settings.model_copy(update={"gradient_checkpointing": True})
    right = Run(tiny_model, tmp_path / "b", again).here().of("update")[0]
    assert left["figures"]["labelled"] == right["figures"]["labelled"]
    for name in ("loss", "gradient_norm"):
        assert parse_real(left[name]) == pytest.approx(parse_real(right[name]), rel=1e-4)


@pytest.mark.parametrize("step", [1, 3])
def test_going_on_gives_the_bytes_of_the_uninterrupted_run(whole, tiny_model, tmp_path, step):
    """From a checkpoint of all weights: the same states, and a last checkpoint of the same bytes."""
    at = whole.folder / "out" / f"checkpoint-{step:06d}"
    assert parts_of_folder(at, step) == dict.fromkeys(PARTS, True)
    run = Run(tiny_model, tmp_path, FULL, start=going_on(at)).here()
    assert files_of(tmp_path / "out" / LAST) == files_of(whole.folder / "out" / LAST)
    assert [event["mode"] for event in run.of("restored")] == ["exact"]


def test_only_the_weights_are_taken_where_only_they_are_asked_for(whole, tiny_model, tmp_path):
    """With `weights` the model is the checkpoint's, and everything else begins anew."""
    start = going_on(whole.folder / "out" / LAST, "weights")
    run = Run(tiny_model, tmp_path, FULL, start=start).here()
    assert run.of("update")[0]["before"] == start["checkpoint"]["state"]


def test_an_adapter_is_no_start_for_a_whole_model(whole, tiny_model, tmp_path):
    """A checkpoint of the other way of training is refused by code before a step."""
    run = Run(
        tiny_model, tmp_path, changed(), start=going_on(whole.folder / "out" / LAST, "weights")
    )
    with pytest.raises(EvidenceError) as caught:
        run.here()
    assert caught.value.code == "STATE_DIFFERS"


def test_a_checkpoint_answers_in_the_place_of_its_base(whole, tiny_model):
    """For an evaluation the weights take the place of the base's, after their digest was compared."""
    folder = whole.folder / "out" / LAST
    job = {"path": str(tiny_model), "files": files_of(tiny_model)}
    adapter = {
        "path": str(folder), "files": files_of(folder), "state": adapter_state_digest(folder),
    }  # fmt: skip
    model = merge_adapter(load_model(job, "float32"), adapter)
    assert not model.training
    assert tensors_digest(model.named_parameters()) == adapter["state"]
    with pytest.raises(EvidenceError) as caught:
        merge_adapter(load_model(job, "float32"), {**adapter, "state": "sha256:" + "0" * 64})
    assert caught.value.code == "CHECKPOINT_CHANGED"


def test_settings_of_an_adapter_are_absent():
    """Where every weight is trained they are recorded as null, come back as such, and are refused where given."""
    effective = FULL.effective()
    assert [effective[name] for name in ADAPTER_SETTINGS] == [None] * len(ADAPTER_SETTINGS)
    assert SftSettings.from_values(effective) == FULL
    for name, value in (("lora_rank", 8), ("first_layer", 1), ("lora_targets", ["q_proj"])):
        with pytest.raises(UsageError, match=f"{name} is a setting of an adapter") as caught:
            settings_from({"tuning": "full", name: value})
        assert caught.value.code == "SETTING_INVALID"


def test_a_model_with_numbers_that_are_no_weights_is_refused(tiny_model):
    """What is kept beside the weights would be missing from a file of trained tensors."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model, local_files_only=True)
    check_whole(model)
    model.register_buffer("steps_seen", torch.zeros(1))
    with pytest.raises(UsageError, match="steps_seen") as caught:
        check_whole(model)
    assert caught.value.field == "tuning"


def test_a_whole_job_with_every_weight(person):
    """Planned, run, recovered, executed again, evaluated and verified, by the commands."""
    adapter = [name for name in SFT if name in ADAPTER_SETTINGS]
    settings = {name: value for name, value in SFT.items() if name not in adapter}
    named = {"split": person.ids["split"], "model": person.ids["model"]}
    config = person.writes(
        "full.json", {**named, **settings, "tuning": "full", "steps": 2, "save_steps": 1}
    )
    plan = person.gets("plan", "sft", config)
    assert plan["settings"]["lora_rank"] is None
    found = person.gets("run", "launch", plan["plan"], "--wait")
    person.ids["run"] = found["run"]
    assert found["state"] == "completed"
    done = person.gets("checkpoint", "reexecute", "--run", found["run"], "--all")
    assert (done["agreed"], done["disagreements"]) == (2, [])
    recovered = person.folder / "whole"
    person.gets("checkpoint", "recover", found["checkpoint"], recovered)
    model = AutoModelForCausalLM.from_pretrained(recovered, local_files_only=True)
    with Ledger.read(person.ledger) as ledger:
        checkpoint = ledger.get(found["checkpoint"])
        assert ledger.get(plan["plan"]).body["trained"]["count"] == len(list(model.parameters()))
    assert tensors_digest(model.named_parameters()) == checkpoint.body["state"]["value"]
    assert json.loads((recovered / "config.json").read_bytes())["model_type"] == "llama"
    person.gets("eval", "run", person.ids["protocol"], found["checkpoint"])
    arm = Ledger.read(person.ledger)
    with arm as ledger:
        spoke = ledger.of_kind("arm.transcribed")[-1].body["weights"]
    assert spoke == checkpoint.body["state"]["value"]
    (end,) = of_run(person, "run.ended")
    assert end.body["weights"]["parameters"] == sum(p.numel() for p in model.parameters())
    assert person.verify().result["findings"] == []


def test_an_adapter_does_not_start_from_a_whole_model(person):
    """A plan that takes weights of the other way of training is refused before anything is recorded."""
    named = {"split": person.ids["split"], "model": person.ids["model"]}
    config = person.writes("full.json", {**named, "tuning": "full", "steps": 2, "threads": 1})
    answer = person.types("plan", "sft", config, "--init-from", person.ids["checkpoint"])
    assert (answer.code, answer.error["code"], answer.error["field"]) == (
        2, "SETTING_INVALID", "tuning",
    )  # fmt: skip
