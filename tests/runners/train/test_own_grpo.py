"""Group-relative reinforcement in a user's own script, with every group, batch, update and checkpoint on record."""

from __future__ import annotations

import importlib.util

import pytest
from rl_job import scenarios

from ledger.errors import UsageError

pytest.importorskip("trl", reason="needs the train extra")

from own_script import AutoTokenizer, Dataset, lora, torch, verified
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from runners.prepare.rewards import audit_reward
from runners.train.own_grpo import LedgerGRPOTrainer
from runners.train.reexecute import reexecute
from runners.train.sampled import Sampled

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries warn of one another
    pytest.mark.train,
]

REWARD = """
from verifiers.rewards import support


def reward(row, completion):
    return support.reward(row, completion)[0] + (len(completion) % 7) / 1000
"""
ARGUMENTS = {
    "max_steps": 3, "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 12, "beta": 0.05,
    "num_iterations": 2, "use_bias_correction_kl": False, "optim": "adamw_torch", "bf16": False, "learning_rate": 0.01,
    "gradient_checkpointing": False, "use_cpu": True, "report_to": [], "disable_tqdm": True, "seed": 5,
}  # fmt: skip


@pytest.fixture
def reward(ledger, tmp_path):
    """A function of a user's own file, which was audited."""
    path = tmp_path / "my_reward.py"
    path.write_text(REWARD, encoding="utf-8")
    audit_reward(ledger, str(path))
    return function_of(path)


def function_of(path):
    """The reward that a file defines."""
    spec = importlib.util.spec_from_file_location("my_reward", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reward


@pytest.fixture
def make(ledger, tmp_path, tiny_model):
    """A trainer in the test's ledger, on eight tasks, two held out."""
    rows = scenarios()
    apart = tmp_path / "apart.jsonl"
    Dataset.from_list(rows[8:]).to_json(apart)

    def trainer(reward, tasks=rows[:8], adapter=None, more=None, **changes):
        return LedgerGRPOTrainer(
            model=str(tiny_model),
            reward_funcs=reward,
            args=GRPOConfig(output_dir=str(tmp_path / "out"), **{**ARGUMENTS, **changes}),
            train_dataset=Dataset.from_list(tasks),
            processing_class=AutoTokenizer.from_pretrained(tiny_model),
            peft_config=adapter or lora(),
            ledger=ledger,
            held_out=apart,
            shelf=tmp_path / "shelf",
            more=more,
        )

    torch.set_num_threads(1)
    return trainer


def of_run(ledger, trainer, kind):
    """The records of a kind that belong to a trainer's run."""
    return ledger.referrers(trainer.run.id, "run", kind)


def test_groups_batches_updates_and_checkpoints_are_on_record(ledger, folder, make, reward):
    """Each update reads whole groups recorded before it, under the user's audited reward; the ledger verifies."""
    trainer = make(reward)
    trainer.train()
    kinds = [item.kind for item in ledger.records() if item.ref("run") == trainer.run.id]
    assert kinds[:4] == ["rollout.group", "rollout.group", "batch.built", "update.acknowledged"]
    assert trainer.ended.body["outcome"] == "completed"
    assert trainer.ended.body["counters"]["updates"] == 3
    assert trainer.ended.ref("checkpoint") == trainer.checkpoint.id
    assert trainer.plan.body["settings"]["trainer"] == "LedgerGRPOTrainer"
    audit = ledger.get(trainer.plan.ref("reward"))
    assert (audit.body["name"], audit.body["reward_version"]) == ("my_reward", 0)
    gaps = [item.body["figures"] for item in of_run(ledger, trainer, "update.acknowledged")]
    assert float(gaps[0]["sampler_gap"]) < 1e-3
    verified(folder)


@pytest.mark.slow
def test_updates_of_a_script_are_executed_again(ledger, make, reward, tmp_path, monkeypatch):
    """From the start and from within a generation every figure comes out again, and the one that was doctored is named."""
    honest = Sampled.answer

    def answer(self, event):
        lies = event["event"] == "update" and event["step"] == 2
        return honest(self, {**event, "loss": "0.001"} if lies else event)

    monkeypatch.setattr(Sampled, "answer", answer)
    trainer = make(reward, save_strategy="steps", save_steps=1)
    trainer.train()
    updates = of_run(ledger, trainer, "update.acknowledged")
    for number, (targets, steps) in enumerate(((updates, 3), (updates[1:2], 1))):
        scratch = tmp_path / f"again-{number}"
        scratch.mkdir()
        found = reexecute(ledger, targets, tmp_path / "shelf", scratch)
        lies = [(item.update.body["step"], item.field) for item in found.disagreements]
        assert (found.steps, lies, found.changed) == (steps, [(2, "loss")], [])


def test_a_reward_that_was_changed_after_its_audit_is_refused(make, reward, tmp_path):
    """The audit names the file's bytes; another file of that name has none."""
    path = tmp_path / "my_reward.py"
    path.write_text(REWARD + "# better\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        make(function_of(path))
    assert caught.value.code == "REWARD_NOT_AUDITED"
    assert caught.value.hint == "audit it first: evidence reward audit my_reward.py"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("args.beta", {"beta": 0.0}),
        ("args.use_bias_correction_kl", {"use_bias_correction_kl": True}),
        ("args.scale_rewards", {"scale_rewards": "batch"}),
        ("args.per_device_train_batch_size", {"num_generations": 8, "per_device_train_batch_size": 12, "generation_batch_size": 24}),
        ("args.max_steps", {"max_steps": -1}),
        ("args.gradient_accumulation_steps", {"gradient_accumulation_steps": 2}),
        ("args.loss_type", {"loss_type": "bnpo"}),
        ("args.repetition_penalty", {"repetition_penalty": 1.2}),
        ("args.delta", {"delta": 2.0}),
    ],
)  # fmt: skip
def test_an_argument_that_would_be_followed_otherwise_is_named(make, reward, ledger, field, change):
    """Nothing of the run is recorded where the plan could not say what the user's arguments say."""
    with pytest.raises(UsageError) as caught:
        make(reward, **change)
    assert (caught.value.code, caught.value.field) == ("ADOPTION_REFUSED", field)
    assert ledger.of_kind("plan.prepared") == []


@pytest.mark.parametrize(
    "tasks",
    [
        [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]}],
        [{**scenarios()[0], "turns": ["And now?"]}],
    ],
    ids=["answered", "scripted"],
)  # fmt: skip
def test_rows_that_ask_nothing_that_can_be_on_record_are_refused(make, reward, tasks):
    """A conversation is no task, and a customer who speaks again needs more turns than an episode here has."""
    with pytest.raises(UsageError) as caught:
        make(reward, tasks=tasks)
    assert (caught.value.code, caught.value.field) == ("ADOPTION_REFUSED", "train_dataset[0]")


@pytest.mark.slow
def test_a_reward_that_raises_gives_no_zero(ledger, folder, make, tmp_path):
    """A group with a failed member is recorded as rejected, and where every group is the run fails without an update."""
    path = tmp_path / "moody.py"
    raises = "    if row['id'].startswith('scenario-'):\n        raise ValueError('no')\n"
    told = REWARD.replace("    return", f"{raises}    return")
    path.write_text(told, encoding="utf-8")
    audit_reward(ledger, str(path))
    trainer = make(function_of(path), more={"redraw_limit": 0})
    with pytest.raises(UsageError) as caught:
        trainer.train()
    assert caught.value.code == "NO_SIGNAL"
    assert (trainer.ended.body["outcome"], trainer.ended.body["failure"]) == ("failed", "no_signal")
    rejected = of_run(ledger, trainer, "rollout.rejected")
    assert {item.body["code"] for item in rejected} == {"GROUP_FAILED"}
    assert len(rejected) == 2
    verified(folder)


@pytest.mark.slow
def test_weights_that_something_else_changed_end_the_run(ledger, make, reward):
    """A callback that moves the weights between two updates is noticed before the next step is taken."""

    class Meddles(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            for parameter in kwargs["model"].parameters():
                if parameter.requires_grad:
                    parameter.data.add_(0.001)

    trainer = make(reward)
    trainer.add_callback(Meddles())
    with pytest.raises(UsageError) as caught:
        trainer.train()
    assert caught.value.code == "STATE_BROKEN"
    assert len(of_run(ledger, trainer, "update.acknowledged")) == 1
    assert trainer.ended.body["outcome"] == "failed"
