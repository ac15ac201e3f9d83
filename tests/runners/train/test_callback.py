"""A user's own trainer with every step on record, by three lines."""

from __future__ import annotations

import pytest
from own_script import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Dataset,
    LedgerCallback,
    chats,
    dpo,
    held_out,
    kto,
    pairs,
    reward,
    said,
    sft,
    torch,
    verified,
)
from transformers import TrainerCallback
from world import key

from ledger.book import Ledger
from ledger.errors import UsageError
from runners.prepare.data import split_rows
from runners.prepare.shelf import model_folder
from runners.train.adopted_weights import LiveWeights
from runners.train.recovery import recover
from verifiers.data.identity import row_digest
from verifiers.learning.tensors import file_state_digest

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries warn of one another
    pytest.mark.train,
]


@pytest.fixture
def adopt(ledger, tmp_path):
    """Adopt a trainer into the test's ledger, with its held-out file and its own shelf."""

    def make(trainer, **options):
        named = {"held_out": held_out(tmp_path), "shelf": tmp_path / "shelf"}
        return LedgerCallback.adopt(trainer, ledger=ledger, **{**named, **options})

    return make


def of_run(ledger, callback, kind):
    """The records of a kind that belong to a callback's run."""
    return ledger.referrers(callback.run.id, "run", kind)


def test_a_supervised_run_is_on_record_step_by_step(ledger, folder, adopt, tiny_model, tmp_path):
    """Each step has its batch of rows in order and an update whose states follow one another; all of it verifies."""
    trainer = sft(tiny_model, tmp_path, save_strategy="steps", save_steps=2)
    callback = adopt(trainer)
    trainer.train()
    batches = of_run(ledger, callback, "batch.built")
    updates = of_run(ledger, callback, "update.acknowledged")
    assert [item.body["step"] for item in updates] == [1, 2, 3]
    assert [item.body["datums"] for item in batches] == [4, 4, 2]  # ten rows an epoch
    known = {row_digest(row) for row in chats()}
    assert {row for item in batches for row in item.body["rows"]} == known
    pairs_of_states = [(item.body["before"], item.body["after"]) for item in updates]
    assert pairs_of_states[0][1] == pairs_of_states[1][0] != pairs_of_states[0][0]
    assert callback.ended.body["outcome"] == "completed"
    assert callback.ended.body["counters"]["updates"] == 3
    assert callback.plan.body["method"] == "sft"
    assert ledger.get(callback.plan.ref("split")).body["roles"] == {"train": 10, "test": 10}
    verified(folder)


def test_a_run_on_preferences_is_on_record_too(ledger, folder, adopt, tiny_model, tmp_path):
    """A DPO run has a plan of its method, and its batches name the pairs."""
    trainer = dpo(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.train()
    rows = [{**row, "kind": "preference"} for row in pairs()]
    batches = of_run(ledger, callback, "batch.built")
    read = {row for item in batches for row in item.body["rows"]}
    assert read == {row_digest(row) for row in rows}
    assert callback.plan.body["method"] == "dpo"
    assert callback.plan.body["settings"]["beta"] == "0.1"
    assert callback.ended.body["outcome"] == "completed"
    verified(folder)


@pytest.mark.parametrize(("make", "kind"), [(kto, "feedback"), (reward, "preference")])
def test_other_trainers_of_the_library_are_on_record(
    ledger, folder, adopt, tiny_model, tmp_path, make, kind
):
    """KTO reads feedback and a reward model preferences, each under the method of its own name."""
    trainer = make(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.train()
    assert callback.plan.body["method"] == make.__name__
    assert callback.ended.body["outcome"] == "completed"
    split = ledger.get(callback.plan.ref("split"))
    rows = {row_digest(row): row["kind"] for row in split_rows(ledger, split) if "kind" in row}
    for batch in of_run(ledger, callback, "batch.built"):
        assert {rows[row] for row in batch.body["rows"]} == {kind}
    verified(folder)


def test_the_callback_changes_nothing_of_the_training(adopt, tiny_model, tmp_path):
    """With shuffled rows, accumulation and two epochs the weights are those of the same script without it."""
    changes = {"max_steps": -1, "num_train_epochs": 2}
    plain = sft(tiny_model, tmp_path, **changes)
    plain.train()
    watched = sft(tiny_model, tmp_path, **changes)
    callback = adopt(watched)
    watched.train()
    assert LiveWeights(plain.model).digest() == LiveWeights(watched.model).digest()
    assert callback.plan.body["budget_updates"] == plain.state.global_step == 6


class Meanwhile(TrainerCallback):
    """Does something while the first step is taken."""

    def __init__(self, work):
        self.work = work

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        """Within the step, once."""
        if state.global_step == 0:
            self.work()


def test_a_run_that_is_asked_to_stop_saves_and_stops(ledger, folder, adopt, tiny_model, tmp_path):
    """A request from elsewhere within step 1: the library saves at its end, no step follows, the run is stopped."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)

    def asks():
        with Ledger.open(folder, key=key("writer")) as other:
            other.append("run.stop_requested", {"why": "enough"}, {"run": callback.run.id})

    trainer.add_callback(Meanwhile(asks))
    trainer.train()
    assert callback.ended.body["outcome"] == "stopped"
    assert "asked to stop" in callback.ended.body["detail"]
    assert len(of_run(ledger, callback, "update.acknowledged")) == 1
    (saved,) = of_run(ledger, callback, "checkpoint.published")
    assert saved.body["step"] == 1
    assert (tmp_path / "out" / "checkpoint-1").is_dir()
    verified(folder)


def test_a_checkpoint_is_weights_only_and_comes_back(ledger, adopt, tiny_model, tmp_path):
    """The record says that optimizer, schedule, random and sampler state are not there, and nothing of this machine."""
    trainer = sft(tiny_model, tmp_path, save_strategy="steps", save_steps=2)
    callback = adopt(trainer)
    trainer.train()
    first, last = of_run(ledger, callback, "checkpoint.published")
    assert (first.body["step"], last.body["step"]) == (2, 3)
    assert {name for name, there in last.body["completeness"].items() if there} == {"weights"}
    back = recover(ledger, last, tmp_path / "back").folder
    with (back / "adapter_model.safetensors").open("rb") as stream:
        assert file_state_digest(stream) == last.body["state"]["value"]
    config = (back / "adapter_config.json").read_text()
    assert str(tiny_model.parent) not in config
    assert callback.checkpoint == last


def test_the_base_is_the_folder_that_it_came_from(ledger, adopt, tiny_model, tmp_path):
    """A model from a folder is registered by that folder, byte for byte, and found on the shelf."""
    callback = adopt(sft(tiny_model, tmp_path))
    model = ledger.get(callback.plan.ref("model"))
    assert model_folder(tmp_path / "shelf", model) == tiny_model
    assert model.body["name"] == tiny_model.name


def test_a_base_from_memory_is_kept(ledger, adopt, tiny_model, tmp_path):
    """A base that the script changed is none of the folder: it is written to the shelf and registered from there."""
    live = AutoModelForCausalLM.from_pretrained(tiny_model)
    with torch.no_grad():
        live.model.norm.weight.mul_(2)
    trainer = sft(tiny_model, tmp_path, live=live)
    callback = adopt(trainer)
    model = ledger.get(callback.plan.ref("model"))
    assert model_folder(tmp_path / "shelf", model).is_relative_to(tmp_path / "shelf")
    trainer.train()
    assert callback.ended.body["outcome"] == "completed"


def test_the_plan_holds_settings_and_no_places(adopt, tiny_model, tmp_path):
    """Every argument that has meaning, the adapter's too; no folder, no account, no display."""
    body = adopt(sft(tiny_model, tmp_path)).plan.body
    settings = body["settings"]
    assert settings["learning_rate"] == "0.01"
    assert settings["adapter.r"] == 2
    assert settings["adapter.target_modules"] == ["down_proj", "q_proj"]
    assert settings["gradient_accumulation_steps"] == 2
    assert body["seeds"] == {"training": 5}
    assert str(tmp_path) not in str(body)
    assert str(tiny_model) not in str(body)
    assert not [name for name in settings if "token" in name.split("_") or "hub" in name]


def test_two_lines_for_those_who_planned_before(ledger, folder, tiny_model, tmp_path):
    """A plan that was prepared is launched by a callback that is attached later."""
    trainer = sft(tiny_model, tmp_path)
    plan = LedgerCallback.prepare(
        trainer, ledger=ledger, held_out=held_out(tmp_path), shelf=tmp_path / "shelf"
    )
    callback = LedgerCallback(ledger, plan=plan).attach(trainer)
    trainer.train()
    assert callback.run.ref("plan") == plan.id
    assert callback.ended.body["outcome"] == "completed"
    verified(folder)


def test_evaluations_in_between_are_the_users_own(ledger, adopt, tiny_model, tmp_path):
    """The trainer evaluates as it would, and its evaluation rows are held out where nothing else is named."""
    rows = [{"messages": [said("user", "Is there a shop in Ghent?"), said("assistant", "No.")]}]
    trainer = sft(
        tiny_model,
        tmp_path,
        eval_dataset=Dataset.from_list(rows),
        eval_strategy="steps",
        eval_steps=1,
    )
    callback = adopt(trainer, held_out=None)
    trainer.train()
    assert ledger.get(callback.plan.ref("split")).body["roles"] == {"train": 10, "test": 1}
    assert callback.ended.body["outcome"] == "completed"


def test_the_same_data_is_taken_again(ledger, adopt, tiny_model, tmp_path):
    """A second adoption of the same rows records another plan and nothing else twice."""
    first, second = (adopt(sft(tiny_model, tmp_path)).plan for _ in range(2))
    assert first.ref("split") == second.ref("split")
    assert first.ref("audit") == second.ref("audit")
    assert first.ref("model") == second.ref("model")
    assert first.body["settings_digest"] == second.body["settings_digest"]


def test_a_split_that_is_named_is_the_runs_own(ledger, folder, adopt, tiny_model, tmp_path):
    """Where all rows are training rows of the split that is named, nothing is ingested."""
    split = ledger.get(adopt(sft(tiny_model, tmp_path)).plan.ref("split"))
    before = len(ledger.of_kind("dataset.parsed"))
    trainer = sft(tiny_model, tmp_path, rows=chats()[:6])
    callback = adopt(trainer, held_out=split.id[7:19])
    trainer.train()
    assert callback.plan.ref("split") == split.id
    assert len(ledger.of_kind("dataset.parsed")) == before
    verified(folder)


def test_a_run_begins_with_the_weights_of_a_checkpoint(ledger, folder, adopt, tiny_model, tmp_path):
    """`init_from` names the checkpoint whose weights the model has; other weights are refused."""
    trainer = sft(tiny_model, tmp_path, save_strategy="steps", save_steps=3)
    first = adopt(trainer)
    trainer.train()
    again = adopt(trainer, init_from=first.checkpoint.id)
    trainer.train()
    assert again.plan.body["start"] == "weights"
    (restored,) = of_run(ledger, again, "checkpoint.restored")
    assert restored.body["state"] == first.checkpoint.body["state"]
    verified(folder)
    with pytest.raises(UsageError) as refusal:
        adopt(sft(tiny_model, tmp_path), init_from=first.checkpoint.id)
    assert refusal.value.code == "STATE_DIFFERS"


def test_a_whole_model_is_on_record_too(ledger, folder, adopt, tiny_model, tmp_path):
    """Without an adapter the state is that of all weights, and the checkpoint's file gives it."""
    trainer = sft(tiny_model, tmp_path, adapter=None, save_strategy="steps", save_steps=3)
    callback = adopt(trainer)
    trainer.train()
    back = recover(ledger, callback.checkpoint, tmp_path / "back").folder
    with (back / "model.safetensors").open("rb") as stream:
        assert file_state_digest(stream) == callback.checkpoint.body["state"]["value"]
    assert str(tiny_model.parent) not in (back / "config.json").read_text()
    verified(folder)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_are_known_whatever_the_loader_does(ledger, adopt, tiny_model, tmp_path, workers):
    """Workers, dropped last batches and columns that are kept make no difference: each epoch reads each row once."""
    trainer = sft(
        tiny_model, tmp_path, max_steps=4, gradient_accumulation_steps=1, per_device_train_batch_size=4,
        dataloader_num_workers=workers, dataloader_drop_last=True, remove_unused_columns=False,
    )  # fmt: skip
    callback = adopt(trainer)
    trainer.train()
    rows = [item.body["rows"] for item in of_run(ledger, callback, "batch.built")]
    assert [len(batch) for batch in rows] == [4, 4, 4, 4]
    assert len({*rows[0], *rows[1]}) == len({*rows[2], *rows[3]}) == 8
    assert rows[:2] != rows[2:]


def test_rows_of_tokens_only_are_read_back_as_texts(ledger, folder, adopt, tiny_model, tmp_path):
    """The plan warns of it, and the end says that those texts were not established."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    texts = [row["messages"][0]["content"] for row in chats()]
    data = Dataset.from_list([{"input_ids": tokenizer(text)["input_ids"]} for text in texts])
    trainer = sft(tiny_model, tmp_path, rows=data)
    callback = adopt(trainer)
    trainer.train()
    assert "decoded from tokens" in callback.plan.body["warnings"][-1]
    assert [item for item in callback.ended.body["not_established"] if "decoded" in item]
    (batch, *_) = of_run(ledger, callback, "batch.built")
    assert set(batch.body["rows"]) < {row_digest({"kind": "text", "text": text}) for text in texts}
    verified(folder)
