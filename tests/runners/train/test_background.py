"""A run in the background is claimed before its launch returns, once, whoever dies or tries again."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from away import LONG, Away, kills, until

from ledger.book import Ledger
from runners.train.logs import LOG_BYTES, child_log, work_folder

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def away(person, monkeypatch):
    """A person whose runs are done in the background by a child without a model."""
    made = Away(person, monkeypatch)
    yield made
    made.ends()


def claims(away, plan):
    """The launches of a plan."""
    with Ledger.read(away.person.ledger) as ledger:
        return [item.id for item in ledger.referrers(plan, "plan", "run.launched")]


def starting(away):
    """Logs of supervisors that have claimed nothing yet."""
    return sorted((away.person.ledger / "work" / "starting").glob("*"))


def test_a_launch_returns_with_its_claim_on_record_and_nothing_ties_the_run_to_it(away):
    """The supervisor has a session of its own and no terminal; its log lies among the run's files."""
    run = away.launches(**LONG)
    pid = away.supervisor()
    assert claims(away, away.person.ids["plan"]) == [run]
    assert os.getsid(pid) == pid
    terminal = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4]
    assert terminal == "0"
    away.updates(2)
    logs = away.person.gets("run", "logs", run, "--supervisor")
    assert "training on" in logs["lines"][0]
    assert starting(away) == []


MOMENTS = [
    *(("at once", wait_s) for wait_s in (0.0, 0.05, 0.1, 0.2, 0.4)),
    *(("supervisor started", wait_s) for wait_s in (0.0, 0.2, 0.5)),
    *(("claimed", wait_s) for wait_s in (0.0, 0.2)),
]


def test_a_client_that_dies_and_tries_again_gets_the_first_claim_ten_times_of_ten(away):
    """Killed before, while or after its supervisor claims the plan: there is one claim, and trying again answers with it."""
    for moment, wait_s in MOMENTS:
        plan = away.plans(steps=2)
        client = away.client("run", "launch", plan)
        if moment == "supervisor started":
            until(lambda: claims(away, plan) or starting(away))  # noqa: B023 - called before the next
        elif moment == "claimed":
            until(lambda: claims(away, plan))  # noqa: B023 - the same
        time.sleep(wait_s)
        kills(client.pid)
        client.communicate()
        again = away.person.types_apart("run", "launch", plan).result["run"]
        assert away.person.gets("run", "launch", plan)["run"] == again, (moment, wait_s)
        assert claims(away, plan) == [again], (moment, wait_s)
        away.person.ids["run"] = again
        away.person.waits(lambda found: found["state"] == "completed")


def test_two_launches_at_once_are_one_claim(away):
    """Both clients answer with the same run, and nothing of the other supervisor is left."""
    plan = away.plans(steps=2)
    clients = [away.client("run", "launch", plan) for _ in range(2)]
    answers = [json.loads(client.communicate()[0]) for client in clients]
    assert len({answer["result"]["run"] for answer in answers}) == 1
    assert claims(away, plan) == [answers[0]["result"]["run"]]
    until(lambda: starting(away) == [])


def test_what_refuses_the_supervisor_is_told_to_who_launched(away):
    """An equal plan beside a live run is refused by its own code, not by a word about a log."""
    person = away.person
    twins = [person.plans(steps=2000, seed=5).result["plan"] for _ in range(2)]
    away.scripts(step_s=0.3)
    person.ids["run"] = person.types_apart("run", "launch", twins[0]).result["run"]
    refused = person.types_apart("run", "launch", twins[1])
    assert (refused.code, refused.error["code"]) == (1, "TWIN_UNCONFIRMED")
    assert refused.error["actual"] == person.ids["run"]
    assert starting(away) == []


def test_waiting_for_a_run_that_another_launched_goes_to_its_end(away):
    """`run launch --wait` and `run wait` follow the first claim and answer with how it ended."""
    run = away.launches(steps=8, step_s=0.1)
    followed = away.person.gets("run", "launch", away.person.ids["plan"], "--wait")
    assert (followed["run"], followed["state"]) == (run, "completed")
    assert away.person.gets("run", "wait", run)["state"] == "completed"


def test_following_a_run_that_fails_is_a_failure(away):
    """Whoever waits learns of the failure by exit code and code."""
    away.launches(do="die", at=3, step_s=0.2)
    answer = away.person.types("run", "wait", away.person.ids["run"])
    assert (answer.code, answer.error["code"]) == (1, "RUN_FAILED")
    assert answer.result["state"] == "failed"


def test_following_a_run_whose_supervisor_is_killed_ends(away):
    """Nobody will record an end: the follower says that the run is unconfirmed, and what to do."""
    away.launches(**LONG)
    away.updates(1)
    follower = away.client("run", "wait", away.person.ids["run"])
    time.sleep(1.0)
    kills(away.supervisor())
    answer = json.loads(follower.communicate()[0])
    assert (follower.returncode, answer["error"]["code"]) == (1, "RUN_UNCONFIRMED")
    assert "run reconcile" in answer["error"]["hint"]


@pytest.mark.parametrize("words", [("run", "wait"), ("run", "logs", "--follow")], ids=" ".join)
def test_ctrl_c_ends_the_following_and_not_the_run(away, words):
    """The follower says so and ends with 130; the run is still running."""
    run = away.launches(**LONG)
    away.updates(1)
    follower = away.client(*words, run, as_json=False)
    while b"following run" not in follower.stderr.readline():
        assert follower.poll() is None
    follower.send_signal(signal.SIGINT)
    _, told = follower.communicate()
    assert follower.returncode == 130
    assert b"the following was interrupted, the run was not" in told
    assert away.status()["state"] == "running"


def test_following_a_log_writes_what_comes_until_the_run_is_over(away):
    """What the child writes after the command began is shown too, and then the command ends."""
    run = away.launches(steps=6, step_s=0.3, says="line of the child")
    away.updates(1)
    follower = away.client("run", "logs", run, "--follow", as_json=False)
    out, _ = follower.communicate()
    assert follower.returncode == 0
    assert out.decode().splitlines() == [f"line of the child {step}" for step in range(1, 7)]
    refused = away.person.types("run", "logs", run, "--follow")
    assert refused.error["code"] == "USAGE"


def test_a_log_that_grows_beyond_its_bound_is_cut(away):
    """The supervisor cuts it while the run goes on; what was there before lies beside it."""
    run = away.launches(**LONG)
    away.updates(1)
    with Ledger.read(away.person.ledger) as ledger:
        work = work_folder(away.person.ledger, ledger.get(run))
    log = child_log(work)
    with log.open("ab") as stream:
        stream.write(b"x" * (LOG_BYTES + 1))
    until(lambda: log.stat().st_size < LOG_BYTES)
    assert (work / "child.log.older").stat().st_size > LOG_BYTES


def broken(away):
    """A run whose child was killed at its third step, and which would go on for long; its launch."""
    run = away.launches(do="die", at=3, steps=LONG["steps"])
    away.person.waits(lambda found: found["state"] == "failed")
    away.scripts(step_s=LONG["step_s"])
    return run


def test_a_resumption_goes_on_in_the_background_too(away):
    """It returns with its claim; resuming what goes on already begins nothing, and with --wait follows it to its end."""
    run = broken(away)
    words = ("run", "resume", run)
    begun = away.person.types_apart(*words).result
    again = away.person.types_apart(*words).result
    assert (begun["state"], again["state"]) == ("running", "running")
    assert (begun["attempts"], again["attempts"]) == (2, 2)
    follower = away.client(*words, "--wait", as_json=False)
    while b"following run" not in follower.stderr.readline():
        assert follower.poll() is None
    away.person.gets("run", "stop", run)
    assert b"stopped" in follower.communicate()[0]
    assert len(away.records("run.resumed")) == 1
    assert starting(away) == []


def test_what_refuses_a_resumption_is_told_to_who_asked_for_it(away):
    """A completed run is over: the supervisor's refusal is the client's own."""
    run = away.launches(steps=2)
    away.person.waits(lambda found: found["state"] == "completed")
    refused = away.person.types_apart("run", "resume", run)
    assert (refused.code, refused.error["code"]) == (1, "RUN_STILL_OPEN")
    assert starting(away) == []


def test_two_resumptions_at_once_are_one_attempt(away):
    """One of them claims the attempt; the other answers with it and begins nothing."""
    run = broken(away)
    clients = [away.client("run", "resume", run) for _ in range(2)]
    answers = [json.loads(client.communicate()[0]) for client in clients]
    assert [answer["result"]["attempts"] for answer in answers] == [2, 2]
    assert len(away.records("run.resumed")) == 1
