"""What a plan says of its rows, on the record and on the screen, and that looking leaves nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys

import chat_templates as t
import pytest
from small_job import SFT, WORDINGS, small_rows

from ledger.book import Ledger
from ledger.digests import sha256
from runners.cli.main import main
from runners.prepare.data import read_lines

pytestmark = pytest.mark.slow  # whoever comes first waits for the job

DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE = 24, 1


def plan_of(person, answer):
    """The record of a plan that was made."""
    with Ledger.read(person.ledger) as ledger:
        return ledger.get(answer.result["plan"])


def dealt_to_train(person):
    """How many rows of the split are training rows, of whatever kind."""
    with Ledger.read(person.ledger) as ledger:
        return ledger.get(person.ids["split"]).body["roles"]["train"]


def blob(person, named):
    """A blob's bytes."""
    with Ledger.read(person.ledger) as ledger:
        return ledger.blobs.read(named["digest"])


def tree(folder):
    """Every file below a folder with its bytes and time, every folder with its permissions: looking changes its time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        if path.is_file()
        else path.stat().st_mode
        for path in sorted(folder.rglob("*"))
    }


def screen(*words):
    """What a person sees who types a command: exit code, and both streams."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, words)])
    return code, out.getvalue(), err.getvalue()


def test_a_plan_names_template_tokenizer_and_encoding(person):
    """The template's text is a blob of the digest that the model's record names, and so is the tokenizer's digest."""
    reading = plan_of(person, person.plans(seed=21)).body["reading"]
    with Ledger.read(person.ledger) as ledger:
        model = ledger.get(person.ids["model"]).body
    assert reading["tokenizer"] == model["tokenizer"]
    assert (
        reading["template"]["digest"]
        == model["chat_template"]
        == sha256(blob(person, reading["template"]))
    )
    assert (reading["reasons"], reading["listed"]) == ({}, None)
    other = plan_of(person, person.plans(seed=21, max_length=100)).body["reading"]
    assert other["encoding"] != reading["encoding"]


def test_rows_that_are_cut_stand_in_a_blob_and_in_the_answer(person):
    """The list on the record is the one that the answer gives, its counts are the plan's, and verify derives them."""
    answer = person.plans(max_length=100)
    body = plan_of(person, answer).body
    with Ledger.read(person.ledger) as ledger:
        lines = read_lines(ledger, body["reading"]["listed"])
    assert lines == answer.result["listed"]
    assert len(lines) == sum(answer.result["reasons"].values()) > 0
    assert body["reading"]["reasons"] == answer.result["reasons"]
    ids = {row["id"] for row in small_rows()}
    assert {line["id"] for line in lines} <= ids
    assert person.verify().result["verdict"] == "verified"


def test_texts_beside_the_dialogues_are_not_counted(person):
    """A supervised plan reads dialogues alone, and verify counts what was read: texts in the same split change nothing."""
    alone = plan_of(person, person.plans(seed=23)).body["rows"]
    before = dealt_to_train(person)
    texts = [
        {"text": f"{WORDINGS[n]}.", "customer_id": f"customer-{n}"} for n in range(len(WORDINGS))
    ]
    person.ingests([*small_rows(), *texts])
    person.splits()
    person.gets("data", "audit", person.ids["split"])
    both = plan_of(person, person.plans(seed=23)).body["rows"]
    assert both == alone
    assert dealt_to_train(person) > before
    assert person.verify().result["verdict"] == "verified"


def test_the_first_ten_rows_are_shown_and_how_to_see_the_others(person):
    """A person reads ten rows with their reasons and the command that lists all of them."""
    config = person.writes(
        "sft.json",
        {"split": person.ids["split"], "model": person.ids["model"], **SFT, "max_length": 100},
    )
    _, out, _ = screen("plan", "sft", config, "--check")
    answer = person.types("plan", "sft", config, "--check")
    listed = answer.result["listed"]
    shown = [row["id"] for row in listed if f"{row['id']} " in out]
    assert shown == [row["id"] for row in listed[:10]]
    assert f"and {len(listed) - 10} more row" in out
    assert f"evidence plan sft {config} --check --json" in out


def test_a_template_of_the_users_own_is_kept_and_used(person):
    """A file named by the configuration is hashed, kept and used by the run, and settings taken over name it by digest."""
    (person.folder / "mine.jinja").write_text(t.MARKED)
    made = person.plans(chat_template="mine.jinja", seed=22)
    plan = plan_of(person, made)
    assert plan.body["settings"]["chat_template"] == sha256(t.MARKED.encode())
    assert blob(person, plan.body["reading"]["template"]) == t.MARKED.encode()
    (person.folder / "mine.jinja").unlink()
    like = person.gets("plan", "sft", "--like", plan.id, "--check")
    assert like["settings"] == made.result["settings"]
    launched = person.types("run", "launch", plan.id, "--wait")
    assert launched.result["state"] == "completed"
    again = person.gets("checkpoint", "reexecute", "--run", launched.result["run"], "--all")
    assert again["updates"] == again["agreed"] == SFT["steps"]
    assert person.verify().result["verdict"] == "verified"


def test_a_checkpoint_is_put_to_prompts_of_its_own_template_only(person):
    """A protocol that renders otherwise than the plan is refused for the checkpoint; one that renders alike is not."""
    (person.folder / "mine.jinja").write_text(t.CHATML_TOOLS)
    plan = person.plans(chat_template="mine.jinja", seed=23, steps=1).result["plan"]
    checkpoint = person.gets("run", "launch", plan, "--wait")["checkpoint"]
    refused = person.types("eval", "run", person.ids["protocol"], checkpoint)
    assert (refused.code, refused.error["code"], refused.error["field"]) == (
        1,
        "TEMPLATE_OTHER",
        "chat_template",
    )
    named = {
        "name": "mine",
        "split": person.ids["split"],
        "desk_cases": 2,
        "max_new_tokens": 4,
        "threads": 1,
    }
    config = person.writes("mine.json", {**named, "chat_template": "mine.jinja"})
    protocol = person.gets("eval", "register", config)["protocol"]
    for subject in (checkpoint, person.ids["model"]):
        assert person.gets("eval", "run", protocol, subject)["cases"] == 2
    assert person.verify().result["verdict"] == "verified"


def test_a_day_is_told_and_recorded(person):
    """A template that asks for the date is refused; with a day it is planned, and another day gives other tokens."""
    (person.folder / "dated.jinja").write_text(t.DATED)
    refused = person.plans(chat_template="dated.jinja")
    assert (refused.code, refused.error["code"], refused.error["field"]) == (
        1,
        "TEMPLATE_UNSTABLE",
        "template_date",
    )
    plans = [
        plan_of(person, person.plans(chat_template="dated.jinja", template_date=day)).body
        for day in ("2026-11-30", "2026-12-01")
    ]
    assert plans[0]["reading"]["template"] == plans[1]["reading"]["template"]
    assert plans[0]["reading"]["encoding"] != plans[1]["reading"]["encoding"]
    assert plans[0]["settings"]["template_date"] == "2026-11-30"


def test_an_encoding_that_does_not_come_again_is_no_run(person):
    """Where the child's rows are not those planned on, no batch is read, and the run's end says why."""
    honest = plan_of(person, person.plans(seed=24))
    with person.opens() as ledger:
        reading = {**honest.body["reading"], "encoding": "sha256:" + "0" * 64}
        forged = ledger.append(
            "plan.prepared", {**honest.body, "reading": reading}, dict(honest.refs)
        )
    answer = person.types("run", "launch", forged.id, "--wait")
    assert answer.code == 1
    with Ledger.read(person.ledger) as ledger:
        (run,) = ledger.referrers(forged.id, "plan", "run.launched")
        (ended,) = ledger.referrers(run.id, "run", "run.ended")
        assert not ledger.referrers(run.id, "run", "batch.built")
    assert (ended.body["outcome"], ended.body["failure"]) == ("failed", "bad_input")
    assert ended.body["detail"].startswith("ENCODING_DIFFERS")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        pytest.param({}, 0, id="nothing to say"),
        pytest.param({"max_length": 100}, 0, id="rows to list"),
        pytest.param({"chat_template": "mine.jinja"}, 0, id="a template to keep"),
        pytest.param({"max_length": 8}, 1, id="refused"),
    ],
)
def test_a_look_leaves_nothing_behind(person, tmp_path, monkeypatch, settings, code):
    """With --check no file appears, vanishes or changes: not in the ledger, the user's folders or the scratch folder."""
    (person.folder / "mine.jinja").write_text(t.MARKED)
    config = person.writes(
        "sft.json", {"split": person.ids["split"], "model": person.ids["model"], **SFT, **settings}
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = tree(person.folder)
    assert person.types("plan", "sft", config, "--check").code == code
    assert tree(person.folder) == before
    assert list(scratch.iterdir()) == []


def without_privileges():
    """In a child before its program: root's right to write where permissions forbid it is given up."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE, 0, 0, 0)


def typed(person, *words):
    """A command of a process that may not write where it is not allowed to: exit code and answer."""
    command = [sys.executable, "-P", "-m", "runners.cli.main", *map(str, words), "--json"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, check=False, preexec_fn=without_privileges
    )
    return done.returncode, json.loads(done.stdout)


def test_a_look_needs_no_right_to_write(person):
    """On a ledger folder that cannot be written --check gives the same figures; the plan itself is refused."""
    config = person.writes(
        "sft.json", {"split": person.ids["split"], "model": person.ids["model"], **SFT}
    )
    expected = person.types("plan", "sft", config, "--check").result
    folders = [person.ledger, *(path for path in person.ledger.rglob("*") if path.is_dir())]
    files = [path for path in person.ledger.rglob("*") if path.is_file()]
    modes = {path: path.stat().st_mode for path in (*folders, *files)}
    try:
        for path in (*files, *folders):
            path.chmod(0o555 if path in folders else 0o444)
        code, answer = typed(person, "plan", "sft", config, "--check")
        assert (code, answer.get("result")) == (0, expected), answer
        code, answer = typed(person, "plan", "sft", config)
        assert (code, answer["error"]["code"]) == (2, "LEDGER_READ_ONLY")
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
