"""Killed by signal 9 at whatever moment, twice in a row too, a reinforcement run comes to the same bits as one left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import rl_job
from away import children, kills, until
from small_job import Person, needs_torch, settle

from ledger.book import Ledger
from runners.train.status import claims

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SHAPE = {
    "steps": 8, "group_size": 3, "groups_per_batch": 6, "num_iterations": 2, "steps_per_generation": 2,
    "save_steps": 2, "learning_rate": 0.05,
}  # fmt: skip
"""Each draw asks all six tasks, so every generation is an epoch."""


@pytest.fixture(scope="module", params=["grpo", "cispo"])
def planned(request, tmp_path_factory, tiny_model):
    """Somebody with a plan, and the states that its run comes to where nobody disturbs it."""
    needs_torch()
    folder = tmp_path_factory.mktemp(f"crash-{request.param}")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, Person(folder / "person"))
        person = rl_job.begin(folder / "person", tiny_model)
        rl_job.plans(person, **SHAPE, objective=request.param)
        alone = person.copied_to(folder / "alone")
        settle(patch, alone)
        alone.ids["run"] = alone.gets("run", "launch", alone.ids["plan"], "--wait")["run"]
        yield person, states(alone)


@pytest.fixture
def person(planned, tmp_path, monkeypatch):
    """A copy of somebody whose plan was not launched yet."""
    copied = planned[0].copied_to(tmp_path / "person")
    settle(monkeypatch, copied)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return copied


def states(person):
    """What the updates that count came to, and what each read."""
    with Ledger.read(person.ledger) as ledger:
        run = ledger.get(person.ids["run"])
        ended = ledger.referrers(run.id, "run", "run.ended")[-1]
        update, found = ended.ref("last_update"), []
        while update is not None:
            record = ledger.get(update)
            batch = ledger.get(record.ref_list("batch")[0])
            read = [ledger.get(name).body["samples"]["digest"] for name in batch.ref_list("group")]
            found.append((record.body["step"], record.body["after"]["value"], read))
            update = record.ref("previous")
    return found[::-1]


def draws(person):
    """The draws in the run's journal."""
    return [path for path in person.ledger.glob("work/*/rollouts/draw-*") if path.suffix == ""]


def updates(person):
    """How many updates were acknowledged, those that no longer count included."""
    with Ledger.read(person.ledger) as ledger:
        return len(ledger.of_kind("update.acknowledged"))


MOMENTS = {
    "sampled and not recorded": lambda person: len(draws(person)) >= 2,
    "in the middle of a generation": lambda person: updates(person) >= 3,
    "before the first update": lambda person: len(draws(person)) >= 1,
}


def killed(person, words, condition):
    """A command that is killed, and the child with it, as soon as something is so; its run is then reconciled."""
    command = [sys.executable, "-P", "-m", "runners.cli.main", *words, "--wait", "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        until(lambda: condition(person) or client.poll() is not None)
        assert client.poll() is None
        for pid in [client.pid, *children(client.pid)]:
            kills(pid)
    with Ledger.read(person.ledger) as ledger:
        person.ids["run"] = ledger.of_kind("run.launched")[-1].id
    person.gets("run", "reconcile", person.ids["run"])


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_comes_to_the_same_bits(planned, person, moment):
    """Reconciled and resumed, it has the states and the completions of the run that nobody disturbed, and verifies."""
    killed(person, ("run", "launch", person.ids["plan"]), MOMENTS[moment])
    again = person.gets("run", "resume", person.ids["run"], "--wait")
    assert (again["state"], again["counters"]["updates"]) == ("completed", 8)
    assert states(person) == planned[1]
    assert person.verify().result["findings"] == []


def test_a_run_killed_twice_comes_to_the_same_bits(planned, person):
    """Killed again in its second attempt, before that has done more than the first, it still goes on exactly."""
    killed(person, ("run", "launch", person.ids["plan"]), lambda one: updates(one) >= 3)
    before = updates(person)
    killed(person, ("run", "resume", person.ids["run"]), lambda one: updates(one) > before)
    person.gets("run", "resume", person.ids["run"], "--wait")
    assert states(person) == planned[1]
    with Ledger.read(person.ledger) as ledger:
        assert len(claims(ledger, ledger.get(person.ids["run"]))) == 3
        groups = [item.body["samples"]["digest"] for item in ledger.of_kind("rollout.group")]
    assert len(groups) == len(set(groups))
