"""However a run goes on or breaks off, the ledger says how, with its own counts, and stays whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_job import WAIT_S

from ledger.book import Ledger
from runners.cli.render import short
from runners.train import supervisor
from runners.train.status import STATES, run_status
from runners.train.supervisor import start_token

pytestmark = pytest.mark.slow  # whoever comes first waits for the job
LEARNER = "tests.runners.children.learner"
LAUNCH = (
    "import sys; from runners.train import supervisor; from runners.cli.main import main; "
    f"supervisor.CHILD = {LEARNER!r}; sys.exit(main(sys.argv[1:]))"
)
STEPS = 4


@pytest.fixture
def scripted(person, monkeypatch):
    """A person whose runs are done by a child without a model, by a script."""
    monkeypatch.setattr(supervisor, "CHILD", LEARNER)
    monkeypatch.setenv("HOME", str(person.folder))

    def write(**script):
        person.writes("script.json", script)
        assert person.plans(steps=script.pop("steps", STEPS), seed=77).code == 0
        return person

    return write


def launched(person):
    """Launch the newest plan here; the answer, and the run's end."""
    answer = person.types("run", "launch", person.ids["plan"], "--wait")
    return answer, ended(person)


def ended(person):
    """The newest run's end, the run's counted records beside it."""
    with Ledger.read(person.ledger) as ledger:
        run = ledger.of_kind("run.launched")[-1]
        ends = ledger.referrers(run.id, "run", "run.ended")
        counted = {
            kind: len(ledger.referrers(run.id, "run", kind))
            for kind in ("batch.built", "update.acknowledged", "checkpoint.published")
        }
    person.ids["run"] = run.id
    assert len(ends) <= 1
    return (ends[0].body if ends else None), counted


def is_whole(person):
    """The ledger verifies, and goes on: a note can be appended."""
    assert person.verify().result["findings"] == []
    assert person.types("note", person.ids["run"], "looked at it").code == 0


@contextmanager
def apart(person, updates):
    """The newest plan launched in a process of its own, once the run has so many updates."""
    before = person.ids["run"]
    command = [
        sys.executable,
        "-c",
        LAUNCH,
        "run",
        "launch",
        person.ids["plan"],
        "--wait",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + WAIT_S
            while person.ids["run"] == before or ended(person)[1]["update.acknowledged"] < updates:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.1)
                ended(person)
            yield process
        finally:
            process.kill()


def test_a_run_that_takes_all_its_steps_is_completed(scripted):
    """Each step is a batch and an update, the last one is published, and the answer says so."""
    person = scripted()
    answer, (body, counted) = launched(person)
    assert (answer.code, answer.result["state"]) == (0, "completed")
    assert counted == {
        "batch.built": STEPS,
        "update.acknowledged": STEPS,
        "checkpoint.published": 1,
    }
    assert body["counters"] == {"groups": 0, "datums": 2 * STEPS, "updates": STEPS, "outcomes": 0}
    assert body["failure"] is None
    assert body["not_established"]


def test_a_child_that_is_killed_leaves_a_failed_run_with_true_counts(scripted):
    """Killed by signal 9 before its third step: two updates count, and no checkpoint is claimed."""
    person = scripted(do="die", at=3)
    answer, (body, counted) = launched(person)
    assert (answer.code, answer.error["code"]) == (1, "RUN_FAILED")
    assert (body["outcome"], body["failure"]) == ("failed", "child_died")
    assert "signal 9" in body["detail"]
    assert body["counters"] == {"groups": 0, "datums": 4, "updates": 2, "outcomes": 0}
    assert (counted["update.acknowledged"], counted["checkpoint.published"]) == (2, 0)
    is_whole(person)


NONSENSE = [
    pytest.param({"do": "say", "event": "boast", "fields": {}}, "unknown", id="an unknown event"),
    pytest.param({"do": "say", "event": "batch", "fields": {"step": 2}}, "micro_batches", id="a field left out"),
    pytest.param(
        {"do": "say", "event": "batch", "fields": {"step": 2, "micro_batches": [7], "trainable_tokens": 1}},
        "micro-batch", id="a number for a batch",
    ),
    pytest.param(
        {"do": "say", "event": "batch", "fields": {"step": "two", "micro_batches": [], "trainable_tokens": 1}},
        "step", id="a word for a step",
    ),
    pytest.param({"do": "say", "event": "start", "fields": {"rows": {"input": "many"}}}, "rows", id="rows not counted"),
    pytest.param({"do": "read a stranger"}, "not given", id="a row it was not given"),
    pytest.param(
        {"do": "say", "event": "checkpoint", "fields": {"step": 1, "path": "/etc", "state": "x"}},
        "no folder in", id="files that are not its own",
    ),
    pytest.param(
        {"do": "say", "event": "checkpoint", "fields": {"step": 1, "path": "nowhere", "state": "x"}},
        "no folder in", id="files that are not there",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("script", "word"), NONSENSE)
def test_nonsense_from_the_child_ends_the_run_as_such(scripted, script, word):
    """Whatever a child says that is no event of a run, the run failed by protocol and nothing of it is recorded."""
    person = scripted(at=2, **script)
    answer, (body, counted) = launched(person)
    assert (answer.code, body["outcome"], body["failure"]) == (1, "failed", "protocol")
    assert word in body["detail"]
    assert counted == {"batch.built": 1, "update.acknowledged": 1, "checkpoint.published": 0}
    is_whole(person)


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        pytest.param("update", {"figures": {}}, id="an update before its batch"),
        pytest.param("checkpoint", {"path": "x"}, id="a checkpoint before any update"),
    ],
)
def test_what_comes_too_early_is_nonsense_too(scripted, event, fields):
    """At the very first step there is no batch to acknowledge and no update to publish."""
    texts = ("learning_rate", "loss", "gradient_norm", "before", "after", "state")
    said = {"step": 1, **dict.fromkeys(texts, "1.0"), **fields}
    person = scripted(at=1, do="say", event=event, fields=said)
    _, (body, counted) = launched(person)
    assert (body["failure"], set(counted.values())) == ("protocol", {0})
    assert "came before" in body["detail"]


def test_what_the_rules_refuse_ends_the_run(scripted):
    """An update for a step that is not the next is refused by its rule, and the run says it was refused."""
    person = scripted(at=2, do="jump")
    answer, (body, counted) = launched(person)
    assert (answer.code, body["failure"]) == (1, "refused")
    assert body["detail"].startswith(f"{answer.error['code']}: ")
    assert counted["update.acknowledged"] == 1
    is_whole(person)


def test_a_child_that_ends_early_has_failed(scripted):
    """A child may call itself completed; with fewer updates than planned it is a short run."""
    person = scripted(at=3, do="end early")
    answer, (body, _) = launched(person)
    assert (answer.code, body["failure"]) == (1, "short_run")
    assert body["detail"] == f"2 of {STEPS} updates"


def test_a_run_is_stopped_from_another_process(scripted):
    """`run stop` is read at the next event: the child saves first, and the run ended stopped."""
    person = scripted(step_s=0.15, steps=200)
    with apart(person, updates=2) as process:
        person.gets("run", "stop", person.ids["run"], "--why", "enough seen")
        answer = json.loads(process.communicate(timeout=WAIT_S)[0])
    body, counted = ended(person)
    assert (process.returncode, answer["result"]["state"]) == (0, "stopped")
    assert (body["outcome"], body["failure"]) == ("stopped", None)
    assert body["counters"]["updates"] == counted["update.acknowledged"] < 200
    assert counted["checkpoint.published"] == 1
    is_whole(person)


def test_ctrl_c_stops_a_run_like_a_request(scripted):
    """SIGINT to the launching process: the child saves, the run ended stopped, the command answers."""
    person = scripted(step_s=0.05, steps=200)
    with apart(person, updates=1) as process:
        process.send_signal(signal.SIGINT)
        answer = json.loads(process.communicate(timeout=WAIT_S)[0])
    body, counted = ended(person)
    assert (answer["result"]["state"], body["outcome"]) == ("stopped", "stopped")
    assert counted["checkpoint.published"] == 1
    assert body["counters"]["updates"] == counted["update.acknowledged"] < 200
    is_whole(person)


def test_a_killed_supervisor_leaves_an_unconfirmed_run(scripted):
    """Killed by signal 9 it records no end: the run is unconfirmed, an equal plan is refused, the ledger is whole."""
    person = scripted(step_s=0.15, steps=200)
    with apart(person, updates=2) as process:
        process.kill()
    status = person.gets("run", "status", person.ids["run"])
    body, counted = ended(person)
    assert (status["state"], body) == ("unconfirmed", None)
    assert "gone" in status["detail"]
    assert status["counters"]["updates"] == counted["update.acknowledged"]
    assert person.plans(steps=200, seed=77).error["code"] == "TWIN_UNCONFIRMED"
    is_whole(person)


def test_an_equal_plan_waits_for_the_live_run(person):
    """While a run is live, no plan of the same settings is prepared, and none prepared before is launched."""
    first = person.plans(seed=5).result["plan"]
    second = person.plans(seed=5).result["plan"]
    with person.opens() as ledger:
        honest = ledger.get(person.ids["run"]).body
        mine = {"process": os.getpid(), "start_token": start_token(os.getpid())}
        seen = ledger.seen().model_dump()
        run = ledger.append("run.launched", {**honest, **mine, "seen": seen}, {"plan": first})
        assert run_status(ledger, run).state == "running"
    for answer in (person.plans(seed=5), person.types("run", "launch", second, "--wait")):
        assert (answer.code, answer.error["code"]) == (1, "TWIN_UNCONFIRMED")
        assert answer.error["actual"] == run.id
        name = short(run.id)
        assert answer.error["hint"] == (
            f"wait for it or stop it: evidence run stop {name}; see it: evidence run status {name}"
        )
    assert person.plans(seed=6).code == 0


def test_a_run_on_another_machine_cannot_be_confirmed(person):
    """Whether a process elsewhere still lives is not known here, whatever its number."""
    plan = person.plans(seed=5).result["plan"]
    with person.opens() as ledger:
        honest = ledger.get(person.ids["run"]).body
        there = {"host": "elsewhere", "process": os.getpid(), "seen": ledger.seen().model_dump()}
        run = ledger.append("run.launched", {**honest, **there}, {"plan": plan})
        found = run_status(ledger, run)
    assert found.state == "unconfirmed"
    assert "elsewhere" in found.detail
    assert found.state in STATES


def test_nothing_is_claimed_where_the_run_cannot_start(person):
    """A model that is gone from the shelf is noticed before the plan is spent."""
    plan = person.plans(seed=5).result["plan"]
    for note in (person.folder / "shelf").glob("*.path"):
        note.unlink()
    for words in (["--wait"], []):
        answer = person.types("run", "launch", plan, *words)
        assert answer.code == 1
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("run.launched")) == 1
        assert ledger.state().plans.keys() == {plan}


def test_start_tokens_tell_processes_apart():
    """The token is this process's start, the same each time, and a number that nobody has is gone."""
    assert start_token(os.getpid()) == start_token(os.getpid())
    assert start_token(os.getpid()).isdecimal()
    assert start_token(2**22 + 1) == "gone"
    assert Path("/proc/1").exists()
