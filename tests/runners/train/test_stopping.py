"""A run is stopped from another terminal within one step, told to break off, or there is a plain answer that it is over."""

from __future__ import annotations

import signal
import threading

import pytest
from away import LONG, Away, as_in_a_terminal, kills, until

from ledger.book import Ledger

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def away(person, monkeypatch):
    """A person whose runs are done in the background by a child without a model."""
    made = Away(person, monkeypatch)
    yield made
    made.ends()


def after(away, seq):
    """The run's updates after a seq."""
    return [item for item in away.records("update.acknowledged") if item.seq > seq]


def test_a_request_is_honoured_within_one_step_while_others_write(away):
    """Another process fills the ledger with notes; at most the step that goes on is acknowledged after the request."""
    run = away.launches(**LONG)
    away.updates(2)
    over = threading.Event()

    def writes():
        while not over.is_set():
            with away.person.opens() as ledger:
                for _ in range(20):
                    ledger.append("note.added", {"text": "noise"}, {"about": [run]})

    writer = threading.Thread(target=writes)
    writer.start()
    try:
        asked = away.person.types_apart("run", "stop", run, "--why", "enough").result
        ended = away.person.gets("run", "wait", run)
    finally:
        over.set()
        writer.join()
    with Ledger.read(away.person.ledger) as ledger:
        request = ledger.get(asked["request"])
    assert ended["state"] == "stopped"
    assert len(after(away, request.seq)) <= 1
    (saved,) = away.records("checkpoint.published")
    assert saved.body["step"] == ended["counters"]["updates"]


def test_a_request_is_made_once(away):
    """Whoever asks again is answered with the first request."""
    run = away.launches(**LONG)
    away.updates(1)
    kills(away.supervisor(), signal.SIGSTOP)  # so that it reads neither before the second
    first, second = (away.person.gets("run", "stop", run) for _ in range(2))
    kills(away.supervisor(), signal.SIGCONT)
    assert first["request"] == second["request"]
    assert len(away.records("run.stop_requested")) == 1
    assert away.person.gets("run", "wait", run)["state"] == "stopped"


def test_told_to_break_off_a_run_records_its_end_at_once(away):
    """In a step of an hour: the child is killed, the end says so and nothing is saved; it can be resumed."""
    run = away.launches(steps=4, step_s=3600.0)
    away.person.gets("run", "stop", run, "--now")
    ended = away.person.gets("run", "wait", run)
    assert ended["state"] == "stopped"
    assert "killed" in ended["detail"]
    away.scripts()
    assert away.person.gets("run", "resume", run, "--wait")["state"] == "completed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_supervisor_is_a_request(away, number):
    """SIGTERM, as at a shutdown, and a terminal that closes: the run saves and ends stopped."""
    with as_in_a_terminal():
        away.launches(**LONG)
    away.updates(1)
    kills(away.supervisor(), number)
    ended = away.person.gets("run", "wait", away.person.ids["run"])
    assert ended["state"] == "stopped"
    assert ended["checkpoint_step"] == ended["counters"]["updates"]


def test_what_does_not_go_on_is_not_stopped(away):
    """A plan never launched, a run that ended, a run whose supervisor is gone: each has its answer, and nothing is recorded."""
    person = away.person
    prepared = away.plans()
    run = away.launches(steps=2)
    person.waits(lambda found: found["state"] == "completed")
    answers = [person.types("run", "stop", name) for name in (prepared, run)]
    assert [answer.error["code"] for answer in answers] == ["RUN_NOT_OPEN"] * 2
    assert "never launched" in answers[0].error["message"]
    assert "completed" in answers[1].error["message"]
    away.launches(**LONG)
    away.updates(1)
    kills(away.supervisor())
    refused = person.types("run", "stop", person.ids["run"])
    assert refused.error["code"] == "RUN_UNCONFIRMED"
    assert away.records("run.stop_requested") == []


def test_a_run_elsewhere_can_be_asked_and_not_killed(away):
    """Whether it reads the request is not seen from here; a process of another machine is no number of this one."""
    person = away.person
    plan = away.plans()
    with person.opens() as ledger:
        there = {"host": "elsewhere", "process": 1, "start_token": "1"}
        body = {**there, "seen": ledger.seen().model_dump()}
        run = ledger.append("run.launched", body, {"plan": plan}).id
    assert person.types("run", "stop", run, "--now").error["code"] == "HOST_OTHER"
    assert person.types("run", "stop", run).code == 0
    until(lambda: person.gets("run", "status", run)["state"] == "unconfirmed")
