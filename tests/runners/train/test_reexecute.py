"""Acknowledgements are checked by doing the work again: an honest run agrees to the last bit, a doctored figure is named."""

from __future__ import annotations

import pytest
from small_job import SFT
from test_resume import of_run
from test_supervisor import ended

from runners.train.supervised import Supervised

pytestmark = [pytest.mark.train, pytest.mark.slow]


@pytest.fixture
def doctored(person, monkeypatch):
    """A person whose run of four steps says another state after its second, and a better loss at its third."""
    honest = Supervised.answer

    def answer(self, event):
        lie = dict(event)
        if event["event"] == "update" and event["step"] == 2:
            lie["after"] = "sha256:" + "1" * 64
        if event["event"] == "checkpoint" and event["step"] == 2:
            lie["state"] = "sha256:" + "1" * 64
        if event["event"] == "update" and event["step"] == 3:
            lie |= {"before": "sha256:" + "1" * 64, "loss": "0.001"}
        return honest(self, lie)

    monkeypatch.setattr(Supervised, "answer", answer)
    settings = {
        "steps": 4,
        "save_steps": 1,
        "lora_dropout": 0.1,
        "accumulation": 2,
        "batch_size": 2,
    }
    assert person.plans(**settings, seed=80).code == 0
    person.types("run", "launch", person.ids["plan"], "--wait")
    ended(person)
    return person


def test_every_update_of_an_honest_run_agrees(person):
    """The whole job's run, executed again from its start: each state, loss and norm comes out as recorded."""
    updates = of_run(person, "update.acknowledged")
    found = person.gets("checkpoint", "reexecute", "--run", person.ids["run"], "--all")
    assert (found["updates"], found["agreed"], found["steps"]) == (len(updates),) * 3
    assert (found["disagreements"], found["changed"]) == ([], [])


def test_a_doctored_acknowledgement_is_named(doctored):
    """A checkpoint that has not the state it is said to have is refused; the rest is executed, and each lie named."""
    updates = {item.body["step"]: item for item in of_run(doctored, "update.acknowledged")}
    answer = doctored.types("checkpoint", "reexecute", "--run", doctored.ids["run"], "--all")
    assert (answer.code, answer.error["code"]) == (1, "REEXECUTION_DIFFERS")
    assert answer.error["record"] == updates[2].id
    lies = [(item["step"], item["field"]) for item in answer.result["disagreements"]]
    assert lies == [(2, "after"), (3, "before"), (3, "loss")]
    assert answer.result["agreed"] == len(updates) - 2


def test_one_update_from_the_nearest_checkpoint(doctored):
    """The third step begins at the checkpoint after the second, whose bytes are not the state acknowledged there."""
    third = next(item for item in of_run(doctored, "update.acknowledged") if item.body["step"] == 3)
    answer = doctored.types("checkpoint", "reexecute", third.id)
    assert answer.error["code"] == "REEXECUTION_FAILED"
    assert "STATE_DIFFERS" in answer.error["message"]


@pytest.mark.parametrize(
    "words",
    [(), ("aaaaaa", "--run", "bbbbbb"), ("aaaaaa", "--all")],
    ids=["none", "two", "all of one"],
)
def test_what_is_to_be_executed_is_named_once(person, words):
    """An update or a run, and all of it only of a run."""
    answer = person.types("checkpoint", "reexecute", *words)
    assert (answer.code, answer.error["code"]) == (2, "USAGE")


def test_weights_of_a_finished_run_start_another(person):
    """Only the adapter is taken; the run that begins there is executed again from there, and the ledger verifies."""
    named = {"split": person.ids["split"], "model": person.ids["model"]}
    config = person.writes("more.json", {**named, **SFT, "steps": 2, "seed": 9})
    plan = person.gets("plan", "sft", config, "--init-from", person.ids["checkpoint"])["plan"]
    found = person.gets("run", "launch", plan, "--wait")
    person.ids["run"] = found["run"]
    assert (found["state"], found["counters"]["updates"]) == ("completed", 2)
    assert [item.body["mode"] for item in of_run(person, "checkpoint.restored")] == ["weights"]
    done = person.gets("checkpoint", "reexecute", "--run", found["run"], "--all")
    assert (done["agreed"], done["updates"]) == (2, 2)
    assert person.verify().result["findings"] == []
