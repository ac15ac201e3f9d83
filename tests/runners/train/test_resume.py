"""A run that broke off goes on as the same run: reconciled where nobody ended it, its lost updates kept and redone."""

from __future__ import annotations

import os
import platform
import shutil

import pytest
from test_supervisor import LEARNER, STEPS, apart, ended, is_whole

from ledger.blobs import BlobStore
from ledger.book import Ledger
from runners.train import supervisor
from runners.train.processes import start_token

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def scripted(person, monkeypatch):
    """A person whose runs are done by a child without a model; a script that may be written again."""
    monkeypatch.setattr(supervisor, "CHILD", LEARNER)
    monkeypatch.setenv("HOME", str(person.folder))

    def write(**script):
        person.writes("script.json", script)
        assert person.plans(steps=script.pop("steps", STEPS), seed=78).code == 0
        return person

    return write


def broken(scripted, **script):
    """A run whose child was killed at its third step, and the person; the script then lets it go on."""
    person = scripted(do="die", at=3, **script)
    assert person.types("run", "launch", person.ids["plan"], "--wait").code == 1
    ended_body, _ = ended(person)
    assert ended_body["failure"] == "child_died"
    script.pop("save_at", None)
    person.writes("script.json", script)
    return person


def of_run(person, kind):
    """The run's records of a kind."""
    with Ledger.read(person.ledger) as ledger:
        return ledger.referrers(person.ids["run"], "run", kind)


def test_a_killed_run_goes_on_from_its_checkpoint(scripted):
    """Saved after one step and killed at the third: the second is redone, named, and counts once."""
    person = broken(scripted, save_at=1)
    found = person.gets("run", "resume", person.ids["run"], "--wait")
    assert (found["state"], found["attempts"], found["superseded"]) == ("completed", 2, 1)
    assert found["counters"]["updates"] == STEPS
    first, second, *redone = of_run(person, "update.acknowledged")
    assert [item.body["step"] for item in redone] == [2, 3, 4]
    assert [item.ref("replays") for item in redone] == [second.id, None, None]
    assert redone[0].ref("previous") == first.id
    (restored,) = of_run(person, "checkpoint.restored")
    assert restored.body["mode"] == "exact"
    assert len(restored.body["digests"]) == 3
    is_whole(person)
    assert (
        person.types("run", "resume", person.ids["run"], "--wait").error["code"] == "RUN_STILL_OPEN"
    )


def test_without_a_checkpoint_a_run_begins_again(scripted):
    """Killed before anything was saved: every step is redone and named."""
    person = broken(scripted)
    found = person.gets("run", "resume", person.ids["run"], "--wait")
    assert (found["state"], found["superseded"]) == ("completed", 2)
    updates = of_run(person, "update.acknowledged")
    assert [item.ref("replays") for item in updates[2:4]] == [item.id for item in updates[:2]]
    is_whole(person)


def test_a_run_may_go_back_further(scripted):
    """From an earlier checkpoint that is named; the later one is then off the live path and refused."""
    person = scripted(save_at=1, do="die", at=4)
    person.types("run", "launch", person.ids["plan"], "--wait")
    ended(person)
    person.writes("script.json", {"save_at": 2, "do": "die", "at": 3})
    person.types("run", "resume", person.ids["run"], "--wait")
    first, second = of_run(person, "checkpoint.published")
    words = ("run", "resume", person.ids["run"], "--wait", "--from")
    assert person.types(*words, first.id).code == 1  # the script still kills it at 3
    assert person.types(*words, second.id).error["code"] == "CHECKPOINT_SUPERSEDED"
    person.writes("script.json", {})
    found = person.gets("run", "resume", person.ids["run"], "--wait")
    assert found["state"] == "completed"
    is_whole(person)


def test_a_killed_supervisor_is_reconciled_and_resumed(scripted):
    """Nobody ended the run: resuming is refused until somebody looked and recorded that the process is gone."""
    person = scripted(step_s=0.1, steps=30)
    with apart(person, updates=2) as process:
        alive = person.types("run", "reconcile", person.ids["run"])
        process.kill()
    assert alive.error["code"] == "RUN_ALIVE"
    assert (
        person.types("run", "resume", person.ids["run"], "--wait").error["code"] == "RUN_STILL_OPEN"
    )
    found = person.gets("run", "reconcile", person.ids["run"])
    assert (found["found"], found["by"]) == ("dead", "observation")
    assert person.gets("run", "status", person.ids["run"])["state"] == "dead"
    assert person.types("run", "reconcile", person.ids["run"]).error["code"] == "RUN_NOT_OPEN"
    person.writes("script.json", {})
    assert person.gets("run", "resume", person.ids["run"], "--wait")["state"] == "completed"
    is_whole(person)


def test_a_run_on_another_machine_needs_somebodys_word(person):
    """What happened elsewhere is not seen from here: it is recorded as the operator's word, with how they know."""
    plan = person.plans(seed=5).result["plan"]
    with person.opens() as ledger:
        there = {
            "host": "elsewhere",
            "process": os.getpid(),
            "start_token": start_token(os.getpid()),
        }
        body = {**there, "seen": ledger.seen().model_dump()}
        run = ledger.append("run.launched", body, {"plan": plan}).id
    assert platform.node() != "elsewhere"
    assert person.types("run", "reconcile", run).error["code"] == "HOST_OTHER"
    found = person.gets("run", "reconcile", run, "--dead-on-other-host", "the machine was scrapped")
    assert (found["found"], found["by"]) == ("dead", "operator")
    assert "the machine was scrapped" in found["evidence"]


def test_an_old_request_does_not_stop_a_resumed_run(scripted):
    """A stop is for the attempt that was going on when it was asked for."""
    person = scripted(step_s=0.1, steps=30)
    with apart(person, updates=2) as process:
        person.gets("run", "stop", person.ids["run"])
        process.communicate()
    assert ended(person)[0]["outcome"] == "stopped"
    person.writes("script.json", {})
    assert person.gets("run", "resume", person.ids["run"], "--wait")["state"] == "completed"


def test_a_child_that_does_not_restore_is_refused(scripted):
    """A batch before the state was put back is no event of a resumed run."""
    person = broken(scripted, save_at=1, restores=False)
    assert person.types("run", "resume", person.ids["run"], "--wait").code == 1
    bodies = [item.body for item in of_run(person, "run.ended")]
    assert bodies[-1]["failure"] == "protocol"
    assert "before the state was restored" in bodies[-1]["detail"]


def test_a_changed_blob_is_noticed_before_anything_is_claimed(scripted):
    """A checkpoint whose optimizer has another byte now: no resumption is recorded, the run stays as it was."""
    person = broken(scripted, save_at=1)
    (checkpoint,) = of_run(person, "checkpoint.published")
    digest = {f["path"]: f["digest"] for f in checkpoint.body["files"]}["optimizer.safetensors"]
    path = BlobStore(person.ledger / "blobs").path(digest)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(raw)
    for words in (
        ("run", "resume", person.ids["run"], "--wait"),
        ("checkpoint", "recover", checkpoint.id, person.folder / "x"),
    ):
        assert person.types(*words).error["code"] == "BLOB_WRONG"
    assert not list(person.folder.glob("x*"))
    path.unlink()
    assert (
        person.types("run", "resume", person.ids["run"], "--wait").error["code"] == "BLOB_MISSING"
    )
    assert of_run(person, "run.resumed") == []


def test_a_checkpoint_comes_back_after_the_runs_folder_is_gone(scripted):
    """Record and blobs are enough: the folder has the files of the record, and nothing is overwritten."""
    person = broken(scripted, save_at=1)
    (checkpoint,) = of_run(person, "checkpoint.published")
    shutil.rmtree(person.ledger / "work")
    target = person.folder / "back"
    found = person.gets("checkpoint", "recover", checkpoint.id, target)
    assert sorted(found["files"]) == sorted(path.name for path in target.iterdir())
    assert (found["absent"], found["bytes"]) == (
        [],
        sum(p.stat().st_size for p in target.iterdir()),
    )
    words = ("checkpoint", "recover", checkpoint.id)
    assert person.types(*words, target).error["code"] == "FOLDER_EXISTS"
    assert person.types(*words, person.folder / "no" / "where").error["code"] == "INPUT_MISSING"
    assert person.gets("run", "resume", person.ids["run"], "--wait")["state"] == "completed"
