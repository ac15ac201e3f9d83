"""Whoever is killed at whatever moment: the ledger says what is known, an equal plan waits, and the run goes on to its end."""

from __future__ import annotations

import signal
from dataclasses import dataclass

import pytest
from away import Away, children, kills, until

from ledger.book import Ledger
from runners.train.processes import start_token

pytestmark = pytest.mark.slow  # whoever comes first waits for the job
STEPS = 40


@pytest.fixture
def away(person, monkeypatch):
    """A person whose runs are done in the background by a child without a model."""
    made = Away(person, monkeypatch)
    yield made
    made.ends()


@dataclass(frozen=True)
class Crash:
    """Who is killed by signal 9 two updates into a run, and what is then true.

    Attributes:
        killed: of `child`, `supervisor`, `client`.
        state: what `run status` comes to say.
        reconcile: what `run reconcile` finds, or the code with which it refuses.
        twin: the code that an equal plan is refused with, None where it is not.
    """

    killed: tuple[str, ...]
    state: str
    reconcile: str
    twin: str | None


CRASHES = [
    Crash(("child",), "failed", "RUN_NOT_OPEN", None),
    Crash(("supervisor",), "unconfirmed", "dead", "TWIN_UNCONFIRMED"),
    Crash(("supervisor", "child"), "unconfirmed", "dead", "TWIN_UNCONFIRMED"),
    Crash(("child", "supervisor"), "unconfirmed", "dead", "TWIN_UNCONFIRMED"),
    Crash(("client",), "running", "RUN_ALIVE", "TWIN_UNCONFIRMED"),
]


@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: " and ".join(crash.killed))
def test_a_crash_leaves_what_is_known_and_a_way_on(away, crash):
    """State, refusals and counts are the table's; reconciled where need be, the run is resumed and completes, whole."""
    person = away.person
    run = away.launches(STEPS, step_s=1.0)
    client = away.client("run", "wait", run)
    away.updates(2)
    pid = away.supervisor()
    at_work = {"supervisor": [pid], "child": children(pid), "client": [client.pid]}
    if crash.killed == ("child", "supervisor"):
        kills(pid, signal.SIGSTOP)  # so that it records nothing of its child's end
    for name in crash.killed:
        assert at_work[name], name
        for number in at_work[name]:
            kills(number)
    found = person.waits(lambda status: status["state"] == crash.state)
    assert found["counters"]["updates"] == len(away.records("update.acknowledged")) >= 2
    twin = person.plans(steps=STEPS, seed=away.seed)
    assert (twin.error["code"] if twin.code else None) == crash.twin
    looked = person.types("run", "reconcile", run)
    assert (looked.error["code"] if looked.code else looked.result["found"]) == crash.reconcile
    away.scripts()
    if crash.state == "running":
        person.gets("run", "stop", run)
        person.gets("run", "wait", run)
    ended = person.gets("run", "resume", run, "--wait")
    assert (ended["state"], ended["counters"]["updates"]) == ("completed", STEPS)
    client.communicate()
    assert person.verify().result["findings"] == []


@pytest.mark.train
def test_a_real_learner_and_its_supervisor_are_killed_and_the_run_completes(person, monkeypatch):
    """With the tiny model: unconfirmed, dead, resumed from its newest checkpoint, completed, whole; each update counts once."""
    away = Away(person, monkeypatch, model=True)
    try:
        run = away.launches(STEPS, settings={"save_steps": 2})
        person.waits(lambda status: status["checkpoint"] is not None)
        pid = away.supervisor()
        for number in (*children(pid), pid):
            kills(pid, signal.SIGSTOP)
            kills(number)
        found = away.status()
        assert (found["state"], person.gets("run", "reconcile", run)["found"]) == (
            "unconfirmed",
            "dead",
        )
        begun = person.types_apart("run", "resume", run).result
        assert (begun["state"], begun["checkpoint"] is not None) == ("running", True)
        ended = person.gets("run", "wait", run)
    finally:
        away.ends()
    updates = len(away.records("update.acknowledged"))
    assert (ended["state"], ended["counters"]["updates"]) == ("completed", STEPS)
    assert updates - ended["superseded"] == STEPS
    assert person.verify().result["findings"] == []


def strikes(name):
    """A script by which the supervisor is killed before it calls a function of its own."""
    return {"strike": {"before": name}}


@pytest.mark.parametrize("point", ["write_rows", "run_child"])
def test_killed_while_an_attempt_is_prepared_a_run_is_unconfirmed(away, point):
    """The claim is on record and no child ever started: nothing counts; reconciled, the run begins again."""
    person = away.person
    run = away.launches(STEPS, **strikes(point))
    found = person.waits(lambda status: status["state"] == "unconfirmed")
    assert (found["counters"]["updates"], found["checkpoint"]) == (0, None)
    assert person.types("run", "resume", run).error["code"] == "RUN_STILL_OPEN"
    assert person.gets("run", "reconcile", run)["found"] == "dead"
    away.scripts()
    assert person.gets("run", "resume", run, "--wait")["state"] == "completed"
    assert person.verify().result["findings"] == []


def test_killed_while_a_checkpoint_is_put_back_a_run_loses_nothing(away):
    """The resumption is on record and its child never started: reconciled again, the run goes on from the same checkpoint."""
    person = away.person
    run = away.launches(STEPS, save_at=2, do="die", at=4)
    person.waits(lambda status: status["state"] == "failed")
    away.scripts(**strikes("recover"))
    begun = person.types_apart("run", "resume", run).result
    person.waits(lambda status: status["state"] == "unconfirmed")
    assert (begun["attempts"], person.gets("run", "reconcile", run)["found"]) == (2, "dead")
    away.scripts()
    ended = person.gets("run", "resume", run, "--wait")
    assert (ended["state"], ended["attempts"]) == ("completed", 3)
    first, second = away.records("run.resumed")
    assert first.ref("checkpoint") == second.ref("checkpoint") is not None
    assert person.verify().result["findings"] == []


def test_no_room_for_the_childs_folder_is_an_end_that_says_so(away):
    """The machine refuses the rows' file: the run failed by it, no step is claimed, and with room again it goes on."""
    person = away.person
    run = away.launches(STEPS, strike={"no_room_for": "write_rows"})
    found = person.waits(lambda status: status["state"] == "failed")
    assert "the machine refused a file" in found["detail"]
    assert away.records("run.ended")[0].body["failure"] == "internal"
    away.scripts()
    assert person.gets("run", "resume", run, "--wait")["state"] == "completed"


def test_no_room_for_what_the_child_writes_is_an_end_with_true_counts(away):
    """The child meets the full disk at its third step: two updates count, no checkpoint is claimed, its log says why."""
    person = away.person
    run = away.launches(STEPS, do="find no room", at=3)
    found = person.waits(lambda status: status["state"] == "failed")
    assert (found["counters"]["updates"], found["checkpoint"]) == (2, None)
    assert away.records("run.ended")[0].body["failure"] == "child_died"
    assert "File too large" in person.gets("run", "logs", run)["lines"][-1]


def test_a_zombie_works_at_nothing(away):
    """A supervisor that was killed and not yet asked for its exit code has no start token: it is gone."""
    client = away.client("run", "wait", away.person.ids["run"])
    until(lambda: start_token(client.pid) != "gone")
    client.kill()
    until(lambda: start_token(client.pid) == "gone")
    assert client.returncode is None  # nobody has asked yet
    client.communicate()
    with Ledger.read(away.person.ledger) as ledger:
        assert ledger.size
