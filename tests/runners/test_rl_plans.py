"""A reinforcement plan says every constant of its objective, and is refused where it would not be what it is called."""

from __future__ import annotations

import pytest
import rl_job
from small_job import Person, needs_torch, settle

from ledger.book import Ledger
from ledger.errors import UsageError
from runners.train.rl_config import PRESETS, RlSettings, warnings_of
from runners.train.tasks import drawn


@pytest.fixture(scope="module")
def asked(tmp_path_factory, tiny_model):
    """A ledger on which reinforcement can be planned."""
    needs_torch()
    folder = tmp_path_factory.mktemp("rl-plans")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, Person(folder))
        yield rl_job.begin(folder, tiny_model)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_expanded_into_every_constant(name):
    """What a name stands for is recorded field by field, and reading the record again gives the same settings."""
    settings = RlSettings.from_values({"objective": name})
    effective = settings.effective()
    assert all(effective[field] == _as_recorded(value) for field, value in PRESETS[name].items())
    assert RlSettings.from_values(effective) == settings


def _as_recorded(value):
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"top_p": 0.9}, "top_p"),
        ({"top_k": 50}, "top_k"),
        ({"min_p": 0.05}, "min_p"),
        ({"objective": "cispo", "clip_high": 0.2}, "clip_high"),
        ({"objective": "cispo", "clip_low": 0.8}, "clip_low"),
        ({"objective": "cispo", "aggregation": "sequence_mean"}, "aggregation"),
        ({"objective": "cispo", "ratio_level": "sequence"}, "ratio_level"),
        ({"clip_low": 1.1}, "clip_low"),
        ({"kl_estimator": "k1"}, "kl_estimator"),
        ({"aggregation": "sum"}, "aggregation"),
        ({"kl_coefficient": 0.0}, "kl_coefficient"),
        ({"lora_dropout": 0.1}, "lora_dropout"),
        ({"tuning": "full"}, "tuning"),
        ({"processes": 2}, "processes"),
        ({"engine": "other"}, "engine"),
        ({"objective": "ppo"}, "objective"),
        ({"steps_per_generation": 3}, "settings"),
        ({"overlong_buffer": 4}, "settings"),
        ({"overlong_buffer": 99, "overlong_penalty": 1.0}, "settings"),
        ({"warmup_steps": 100}, "settings"),
        ({"chat_template": "sha256:" + "0" * 64}, "settings"),
    ],
)  # fmt: skip
def test_what_would_be_another_objective_is_refused(change, field):
    """Each setting that the trainer or the sampler could not honour is refused by its name."""
    with pytest.raises(UsageError) as caught:
        RlSettings.from_values(change)
    assert (caught.value.code, caught.value.field) == ("SETTING_INVALID", field)


def test_a_method_that_can_never_act_is_told_so():
    """One update a batch makes every ratio 1, which the plan says; two make no such remark."""
    assert "every ratio is 1" in warnings_of(RlSettings.from_values({"num_iterations": 1}))[0]
    assert warnings_of(RlSettings.from_values({"num_iterations": 2})) == []
    assert (
        warnings_of(RlSettings.from_values({"num_iterations": 1, "steps_per_generation": 2})) == []
    )


def test_an_overlong_buffer_follows_the_length():
    """Where a preset penalises length, its buffer is a share of the longest completion."""
    settings = RlSettings.from_values({"objective": "dapo", "max_new_tokens": 100})
    assert (settings.overlong_buffer, settings.dynamic_sampling) == (20, True)


def test_each_epoch_asks_every_task_once():
    """Draws follow one another through the tasks without a break, and each epoch has an order of its own."""
    digests = [f"task-{number}" for number in range(6)]
    draws = [place for draw in range(6) for place in drawn(digests, 7, 2, draw)]
    first, second = draws[:6], draws[6:]
    assert sorted(first) == sorted(second) == list(range(6))
    assert first != second
    assert drawn(digests, 7, 2, 4) == draws[8:10]


def test_a_check_records_nothing_and_a_plan_everything(asked):
    """--check prints what the plan then records: settings, reward, budget, what the library makes of them."""
    path = rl_job.config(asked)
    checked = asked.gets("plan", "rl", path, "--check")
    assert checked["plan"] is None
    made = asked.gets("plan", "rl", path)
    with Ledger.read(asked.ledger) as ledger:
        plan = ledger.get(made["plan"])
    assert plan.body["method"] == "rl"
    assert plan.ref("reward") == asked.ids["reward"]
    assert plan.body["settings"] == checked["settings"]
    assert plan.body["settings"] == RlSettings.from_values(rl_job.RL).effective()
    assert (plan.body["budget_updates"], plan.body["budget_datums"]) == (4, 32)
    assert plan.body["library_settings"]["GRPOConfig.beta"] == "0.05"
    assert plan.body["rows"]["effective"] == checked["rows"]["effective"] > 0


def test_settings_are_taken_from_a_plan_of_the_same_method_only(asked):
    """--like takes every setting of a plan, and supervised planning refuses a reinforcement plan."""
    plan = rl_job.plans(asked, seed=11)
    again = asked.gets("plan", "rl", "--like", plan)
    assert again["settings"]["seed"] == 11
    refused = asked.types("plan", "sft", "--like", plan)
    assert (refused.code, refused.error["code"]) == (2, "SETTING_INVALID")
    assert refused.error["hint"].startswith("evidence plan rl --like")


def test_a_reward_is_audited_and_has_tasks_or_there_is_no_plan(asked):
    """A reward that was never audited is named with the command that audits it; one without rows with their kind."""
    answer = asked.types("plan", "rl", rl_job.config(asked, reward="desk"))
    assert answer.error["code"] == "REWARD_NOT_AUDITED"
    assert answer.error["hint"] == "audit it first: evidence reward audit desk"
    body = {**_audit(asked), "name": "desk", "reward_version": 1}
    with asked.opens() as ledger:
        ledger.append("reward.audited", {**body, "inversions": 1}, {})
    answer = asked.types("plan", "rl", rl_job.config(asked, reward="desk"))
    assert "orders 1 pairs wrongly" in answer.error["message"]
    with asked.opens() as ledger:
        ledger.append("reward.audited", body, {})
    answer = asked.types("plan", "rl", rl_job.config(asked, reward="desk"))
    assert answer.error["code"] == "ROW_UNTRAINABLE"
    assert "no desk rows" in answer.error["message"]


def _audit(person):
    with Ledger.read(person.ledger) as ledger:
        return ledger.get(person.ids["reward"]).body
