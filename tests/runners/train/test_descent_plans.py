"""Three ways to use what is there, kept apart: the settings, the weights, the whole state."""

from __future__ import annotations

import pytest
from test_resume import of_run
from test_supervisor import LEARNER, ended, is_whole

from ledger.book import Ledger
from runners.train import supervisor

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def stopped(person, monkeypatch):
    """A person with a run of four steps that was killed at its third; saved after two."""
    monkeypatch.setattr(supervisor, "CHILD", LEARNER)
    monkeypatch.setenv("HOME", str(person.folder))
    person.writes("script.json", {"save_at": 2, "do": "die", "at": 3})
    assert person.plans(steps=4, seed=79).code == 0
    assert person.types("run", "launch", person.ids["plan"], "--wait").code == 1
    ended(person)
    person.ids["saved"] = of_run(person, "checkpoint.published")[0].id
    person.writes("script.json", {})
    return person


def planned(person, *words):
    """A plan's record."""
    made = person.gets("plan", "sft", *words)["plan"]
    with Ledger.read(person.ledger) as ledger:
        return ledger.get(made)


def launch(person, plan):
    """A plan's run; how it stands at its end."""
    return person.gets("run", "launch", plan.id, "--wait")


def test_settings_only(stopped):
    """`--like` takes every setting from a run or its plan, starts fresh, and says which plan it is like."""
    for name in (stopped.ids["run"], stopped.ids["plan"]):
        plan = planned(stopped, "--like", name)
        assert (plan.body["start"], plan.ref("like"), plan.ref("parent")) == (
            "fresh",
            stopped.ids["plan"],
            None,
        )
    with Ledger.read(stopped.ledger) as ledger:
        assert plan.body["settings"] == ledger.get(stopped.ids["plan"]).body["settings"]
    assert launch(stopped, plan)["counters"]["updates"] == 4


def test_weights_only(stopped):
    """`--init-from` takes the weights: other settings, a budget of its own, steps counted from one."""
    named = {"split": stopped.ids["split"], "model": stopped.ids["model"]}
    config = stopped.writes("more.json", {**named, "steps": 3, "seed": 9, "threads": 1})
    plan = planned(stopped, config, "--init-from", stopped.ids["saved"])
    assert (plan.body["start"], plan.body["budget_updates"]) == ("weights", 3)
    answer = stopped.types("run", "launch", plan.id, "--wait")
    # the scripted child counts its weights from 0, which are not the parent's
    assert answer.error["code"] == "STATE_BROKEN"


def test_exactly(stopped):
    """`--continue` goes on within the first budget, and the parent's run is then not resumed any more."""
    plan = planned(stopped, "--continue", stopped.ids["saved"])
    assert (plan.body["start"], plan.body["budget_updates"], "fork" in plan.body) == (
        "exact",
        4,
        False,
    )
    second = planned(stopped, "--continue", stopped.ids["saved"])
    found = launch(stopped, plan)
    assert (found["state"], found["counters"]["updates"], found["superseded"]) == (
        "completed",
        4,
        0,
    )
    with Ledger.read(stopped.ledger) as ledger:
        updates = ledger.referrers(found["run"], "run", "update.acknowledged")
        saved = ledger.get(stopped.ids["saved"])
    assert [item.body["step"] for item in updates] == [3, 4]
    assert updates[0].ref("previous") == saved.ref("update")
    assert (
        stopped.types("run", "resume", stopped.ids["run"], "--wait").error["code"] == "HEIR_EXISTS"
    )
    assert stopped.types("run", "launch", second.id, "--wait").error["code"] == "BUDGET_EXCEEDED"
    is_whole(stopped)


def test_forks_share_the_budget(stopped):
    """After two of four updates a fork from the checkpoint may take two; then the lineage has none left."""
    fork = planned(stopped, "--continue", stopped.ids["saved"], "--fork")
    assert (fork.body["fork"], fork.body["budget_updates"]) == (True, 4)
    found = launch(stopped, fork)
    assert found["state"] == "completed"
    again = stopped.types("plan", "sft", "--continue", stopped.ids["saved"], "--fork")
    assert again.error["code"] == "BUDGET_EXCEEDED"
    with Ledger.read(stopped.ledger) as ledger:
        (restored,) = ledger.referrers(found["run"], "run", "checkpoint.restored")
    assert restored.body["fork"] is True
    is_whole(stopped)


def test_exactly_means_the_same_settings(stopped):
    """A configuration that differs from the parent's in one setting is no exact continuation."""
    config = stopped.writes("other.json", {
        "split": stopped.ids["split"], "model": stopped.ids["model"], "steps": 5, "threads": 1,
    })  # fmt: skip
    answer = stopped.types("plan", "sft", config, "--continue", stopped.ids["saved"])
    assert answer.error["code"] == "PARENT_DIFFERS"
    assert answer.error["field"] == "body.settings"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="nothing named"),
        pytest.param(("--like", "aaaaaa", "--continue", "bbbbbb"), id="two at once"),
        pytest.param(("x.json", "--like", "aaaaaa"), id="settings twice"),
        pytest.param(("x.json", "--fork"), id="a fork of nothing"),
    ],
)
def test_choices_that_exclude_one_another(person, words):
    """One of the three at most, and a fork only of a checkpoint."""
    answer = person.types("plan", "sft", *words)
    assert (answer.code, answer.error["code"]) == (2, "USAGE")
