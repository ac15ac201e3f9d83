"""Group-relative reinforcement in a user's own script, with every group, batch, update and checkpoint on record."""

from __future__ import annotations

import importlib.util

import pytest
from rl_job import scenarios

pytest.importorskip("trl", reason="needs the train extra")

from own_script import AutoTokenizer, Dataset, lora, torch, verified
from trl.trainer.grpo_config import GRPOConfig

from runners.prepare.rewards import audit_reward
from runners.train.own_grpo import LedgerGRPOTrainer

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
