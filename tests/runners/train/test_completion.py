"""A run that completes binds the weights that it leaves; a checkpoint whose weights are worthless is not published."""

from __future__ import annotations

import pytest
from small_job import SFT
from test_resume import of_run
from test_supervisor import LEARNER, STEPS, ended, is_whole

from ledger.book import Ledger
from ledger.codes import CODES
from runners.prepare.data import read_lines
from runners.train import supervisor

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def scripted(person, monkeypatch):
    """A person whose runs are done by a child without a model, by a script."""
    monkeypatch.setattr(supervisor, "CHILD", LEARNER)
    monkeypatch.setenv("HOME", str(person.folder))

    def launch(**script):
        person.writes("script.json", script)
        assert person.plans(steps=STEPS, seed=79).code == 0
        return person.types("run", "launch", person.ids["plan"], "--wait")

    return launch


def test_a_completed_run_binds_its_tensors(person):
    """The end of the whole job's run lists each tensor of its last checkpoint with shape, type and norm."""
    with Ledger.read(person.ledger) as ledger:
        (end,) = ledger.referrers(person.ids["run"], "run", "run.ended")
        checkpoint = ledger.get(str(end.ref("checkpoint")))
        plan = ledger.get(person.ids["plan"])
        lines = read_lines(ledger, end.body["weights"]["tensors"])
    weights = end.body["weights"]
    assert checkpoint.ref("update") == end.ref("last_update")
    assert weights["state"] == checkpoint.body["state"]
    assert plan.body["trained"]["count"] == len(lines) == 28
    assert plan.body["trained"]["parameters"] == weights["parameters"]
    ranks = {line["shape"][0] for line in lines if line["name"].endswith("lora_A.weight")}
    assert ranks == {SFT["lora_rank"]}
    assert {line["dtype"] for line in lines} == {"F32"}
    assert all(float(line["norm"]) > 0 for line in lines)
    assert any("re-execution" in text for text in end.body["not_established"])


WORTHLESS = [
    pytest.param("no tensor", "WEIGHTS_EMPTY", id="an empty adapter"),
    pytest.param("zero B", "ADAPTER_UNTRAINED", id="every B zero"),
    pytest.param("a layer too few", "WEIGHTS_OTHER", id="a layer missing"),
    pytest.param("a B too few", "WEIGHTS_OTHER", id="a matrix missing"),
    pytest.param("not finite", "WEIGHTS_NOT_FINITE", id="not finite"),
    pytest.param("bytes behind", "TENSORS_INVALID", id="bytes behind the last tensor"),
]


@pytest.mark.parametrize(("saves", "code"), WORTHLESS)
def test_worthless_weights_are_not_published(scripted, person, saves, code):
    """The run fails by the code, nothing is published, and the ledger is whole; saved rightly the same run completes."""
    answer = scripted(saves=saves)
    body, counted = ended(person)
    assert (answer.code, answer.error["code"]) == (1, code)
    assert (body["outcome"], body["failure"], body.get("weights")) == ("failed", "refused", None)
    assert (counted["update.acknowledged"], counted["checkpoint.published"]) == (STEPS, 0)
    is_whole(person)
    person.writes("script.json", {})
    found = person.gets("run", "resume", person.ids["run"], "--wait")
    assert found["state"] == "completed"
    is_whole(person)


def test_an_adapter_of_another_base_is_not_published(scripted, person):
    """An adapter names its base model; one that names another is refused, with the file and what it should say."""
    answer = scripted(base="somebody/else")
    assert (answer.code, answer.error["code"]) == (1, "BASE_OTHER")
    assert answer.error["field"] == "adapter_config.json"
    assert answer.error["hint"] == CODES["BASE_OTHER"].hint
    assert ended(person)[1]["checkpoint.published"] == 0


def test_a_child_that_publishes_nothing_has_not_completed(scripted, person):
    """All steps taken and no checkpoint of the last: the run failed, whatever the child calls it."""
    answer = scripted(saves="nothing at the end")
    body, counted = ended(person)
    assert (answer.code, body["outcome"], body["failure"]) == (1, "failed", "protocol")
    assert "no checkpoint of the last update" in body["detail"]
    assert counted["checkpoint.published"] == 0
    is_whole(person)


def test_a_run_resumed_at_its_last_step_binds_the_checkpoint_it_came_from(scripted, person):
    """Killed between its last checkpoint and its end: nothing is left to train, and the end binds what is there."""
    assert scripted(do="die at the end").error["code"] == "RUN_FAILED"
    ended(person)
    person.writes("script.json", {})
    assert person.gets("run", "resume", person.ids["run"], "--wait")["state"] == "completed"
    (checkpoint,) = of_run(person, "checkpoint.published")
    first, last = of_run(person, "run.ended")
    assert (first.body.get("weights"), last.ref("checkpoint")) == (None, checkpoint.id)
    assert last.body["weights"]["state"] == checkpoint.body["state"]
    is_whole(person)
