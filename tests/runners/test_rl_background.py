"""A reinforcement run in the background: claimed, asked to stop within a generation, gone on with to the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import rl_job
from away import until
from small_job import Person, needs_torch, settle

from ledger.book import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.train]
ROOT = Path(__file__).resolve().parents[2]
SHAPE = {"steps": 12, "group_size": 3, "groups_per_batch": 6, "steps_per_generation": 2}


@pytest.fixture
def person(tmp_path, tiny_model, monkeypatch):
    """Somebody with a plan of twelve updates, four to a generation."""
    needs_torch()
    folder = tmp_path / "person"
    settle(monkeypatch, Person(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made = rl_job.begin(folder, tiny_model)
    rl_job.plans(made, **SHAPE)
    return made


def updates(person):
    """How many updates were acknowledged."""
    with Ledger.read(person.ledger) as ledger:
        return len(ledger.of_kind("update.acknowledged"))


def test_a_run_in_the_background_is_stopped_and_goes_on(person):
    """The launch returns with the claim; the request is honoured and what was done is saved; a resumption completes it."""
    run = person.types_apart("run", "launch", person.ids["plan"]).result["run"]
    person.ids["run"] = run
    until(lambda: updates(person) >= 1)
    person.gets("run", "stop", run, "--why", "enough")
    stopped = person.gets("run", "wait", run)
    done = stopped["counters"]["updates"]
    assert (stopped["state"], 1 <= done < 12) == ("stopped", True)
    again = person.gets("run", "resume", run, "--wait")
    assert (again["state"], again["counters"]["updates"]) == ("completed", 12)
    [restored] = rl_job.of_run(person, "checkpoint.restored")
    last = rl_job.of_run(person, "update.acknowledged")[done - 1]
    assert (restored.body["mode"], restored.body["state"]) == ("exact", last.body["after"])
    assert person.verify().result["findings"] == []
