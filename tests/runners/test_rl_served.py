"""A reinforcement run whose completions a server samples: what it records, when it is refused, how it goes on."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
import rl_job
from away import until
from loopback_sampler import LoopbackSampler, serving
from rl_run import RlRun, settings
from small_job import Person, needs_torch, settle
from tiny import make_model

from ledger.book import Ledger
from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from runners.train.serving.place import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
SERVED = ROOT / "tests" / "runners" / "children" / "served.py"
VLLM_PYTHON = os.environ.get("EVIDENCE_VLLM_PYTHON")
GROUPS_A_DRAW, MEMBERS = 2, 4


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch):
    """No server of the user's is named."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def asked(tmp_path_factory, tiny_model):
    """A ledger on which reinforcement can be planned."""
    needs_torch()
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, Person(folder))
        yield rl_job.begin(folder, tiny_model)


@pytest.fixture
def person(asked, tmp_path, monkeypatch):
    """Somebody with a copy of it."""
    copied = asked.copied_to(tmp_path / "person")
    settle(monkeypatch, copied)
    return copied


@pytest.fixture
def sampler(tiny_model):
    """The model behind a server that is not there yet."""
    return LoopbackSampler(tiny_model)


def python_in(folder: Path, dies_after: int | None = None) -> Path:
    """What the runner takes for an interpreter that has vLLM."""
    path = folder / "python"
    dies = "" if dies_after is None else f"SERVED_DIES_AFTER={dies_after} "
    path.write_text(f'#!/bin/sh\n{dies}exec {sys.executable} {SERVED} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def records(person, kind):
    """The records of a kind."""
    with Ledger.read(person.ledger) as ledger:
        return list(ledger.of_kind(kind))


def processes(word: str) -> list[int]:
    """Processes with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:  # it has just ended
            continue
        if word.encode() in text:
            found.append(int(path.parent.name))
    return found


def test_a_served_run_says_whose_completions_they_are(person, sampler):
    """Each group names the weights it was sampled under, each generation's first update gap and probe; it verifies."""
    with serving(sampler) as url:
        result = rl_job.runs(person, engine="vllm", vllm_url=url)
    assert result["state"] == "completed"
    plan = records(person, "plan.prepared")[-1].body["settings"]
    groups = records(person, "rollout.group")
    figures = [item.body["figures"] for item in records(person, "update.acknowledged")]
    assert (plan["engine"], plan["vllm_server"], plan["vllm_version"]) == (
        "vllm", "addressed", "0.0.loopback",
    )  # fmt: skip
    by_state = {group.body["state"]["value"]: group.body["weights"] for group in groups}
    assert len(by_state) == len(set(by_state.values())) == sampler.reloads == 2
    assert all(group.body["sampler"]["engine"] == "vllm" for group in groups)
    assert [("sampler_probe" in item, "sampler_gap" in item) for item in figures] == [
        (True, True), (False, False), (True, True), (False, False),
    ]  # fmt: skip
    assert all(parse_real(figures[0][name]) < 1e-4 for name in ("sampler_gap", "sampler_probe"))
    assert parse_real(figures[2]["sampler_moved"]) > 10 * parse_real(figures[2]["sampler_probe"])
    answer = person.types("verify", "--level", "blobs", "--workers", 1)
    assert (answer.code, answer.result["findings"]) == (0, [])


def test_paths_and_addresses_are_not_recorded(person, sampler):
    """No record names where the server was; the ledger's folder keeps it beside, for its owner alone."""
    with serving(sampler) as url:
        plan = rl_job.plans(person, engine="vllm", vllm_url=url)
        again = person.gets("plan", "rl", "--like", plan)["plan"]
    with Ledger.read(person.ledger) as ledger:
        assert not [item for item in ledger.records() if url.encode() in item.entry]
    kept = sorted((person.ledger / "work" / "samplers").iterdir())
    assert {path.stem for path in kept} == {plan[7:23], again[7:23]}
    assert all(url in path.read_text() and path.stat().st_mode & 0o077 == 0 for path in kept)


def served_run(tiny_model, folder, url, **change):
    """A run of the child alone, on a server."""
    of = settings(engine="vllm", vllm_server="addressed", vllm_version="0", **change)
    return RlRun(tiny_model, folder, of, sampler={"vllm_url": url})


def test_each_completion_has_a_seed_of_its_own(tiny_model, tmp_path, sampler):
    """No two of a run's completions are asked for under one seed, and what a draw asks is the same in another run."""
    asked_for = []
    answer = sampler.answer

    def listening(path, body):
        if "seed" in body:
            asked_for[-1].append(body["seed"])
        return answer(path, body)

    sampler.answer = listening
    with serving(sampler) as url:
        for name in ("one", "other"):
            asked_for.append([])
            served_run(tiny_model, tmp_path / name, url, steps=2).here()
    first, second = map(sorted, asked_for)
    assert first == second
    assert len(first) == len(set(first)) >= GROUPS_A_DRAW * MEMBERS


def test_a_draw_in_the_journal_needs_no_server(tiny_model, tmp_path, sampler):
    """What was sampled before a crash is read again with what was seen of the server, though that is gone."""
    with serving(sampler) as url:
        first = served_run(tiny_model, tmp_path / "first", url, steps=2)
        first.here()
    again = served_run(tiny_model, tmp_path / "again", url, steps=2)
    shutil.copytree(tmp_path / "first" / "journal", tmp_path / "again" / "journal")
    again.here()
    left_out = {"n", "path"}
    said, before = (
        [{name: event[name] for name in event.keys() - left_out} for event in run.events[1:]]
        for run in (again, first)
    )
    assert said == before
    assert "sampler_probe" in again.of("update")[0]["figures"]


@pytest.mark.parametrize(
    ("fault", "code", "updates"),
    [("keeps its weights", "SAMPLER_STALE", 2), ("no log-probabilities", "SAMPLER_REPLY", 0)],
)
def test_a_server_that_cannot_be_believed_ends_the_run(
    tiny_model, tmp_path, sampler, fault, code, updates
):
    """One that never gets new weights is seen before it samples under them; one without log-probabilities after the stated draws."""
    sampler.faults.add(fault)
    with serving(sampler) as url:
        run = served_run(tiny_model, tmp_path, url, redraw_limit=1)
        with pytest.raises(EvidenceError) as caught:
            run.here()
    assert caught.value.code == code
    assert len(run.of("update")) == updates
    assert len({event["state"] for event in run.of("groups")}) == 1
    assert not list(tmp_path.glob("**/sampler-weights"))


def test_a_reply_without_log_probabilities_rejects_its_group(person, sampler):
    """Its group is a rejection that says why, no number stands in for it, and the batch is drawn again."""
    sampler.faults.add("one reply without log-probabilities")
    with serving(sampler) as url:
        result = rl_job.runs(person, engine="vllm", vllm_url=url, steps=2)
    assert result["state"] == "completed"
    [rejected] = records(person, "rollout.rejected")
    assert rejected.body["code"] == "SAMPLER_REPLY"
    assert "logprobs" in rejected.body["detail"] or "number of them" in rejected.body["detail"]
    first = records(person, "update.acknowledged")[0].body["figures"]
    assert (first["groups_rejected"], first["redrawn"]) == (1, 1)


def test_a_server_that_dies_ends_the_attempt_and_the_journal_goes_on(person, sampler):
    """The attempt names the server; resumed, with the server there again, no recorded group is sampled anew."""
    sampler.most_completions = 3 * GROUPS_A_DRAW * MEMBERS // 2  # in the second generation
    with serving(sampler) as url:
        rl_job.plans(person, engine="vllm", vllm_url=url)
        answer = person.types("run", "launch", person.ids["plan"], "--wait")
        assert answer.error["code"] == "RUN_FAILED"
        [ended] = records(person, "run.ended")
        assert (ended.body["failure"], ended.body["counters"]["updates"]) == ("child_died", 2)
        assert ended.body["detail"].startswith("SAMPLER_UNREACHABLE")
        before = [item.id for item in records(person, "rollout.group")]
        sampler.most_completions = 10**9
        again = person.gets("run", "resume", str(ended.ref("run")), "--wait")
    assert (again["state"], again["counters"]["updates"]) == ("completed", 4)
    groups = records(person, "rollout.group")
    assert [item.id for item in groups][: len(before)] == before
    assert len({item.body["samples"]["digest"] for item in groups}) == len(groups)
    assert person.verify().result["findings"] == []


def test_a_started_server_ends_with_its_run(person, tmp_path):
    """The runner starts it where an interpreter is named, and nothing of it is left behind."""
    python = python_in(tmp_path)
    result = rl_job.runs(person, engine="vllm", vllm_python=str(python), steps=2)
    assert result["state"] == "completed"
    assert records(person, "plan.prepared")[-1].body["settings"]["vllm_server"] == "started"
    until(lambda: not processes(str(person.ledger)))
    assert not list(person.ledger.glob("work/*/sampler-weights"))


@pytest.mark.slow
def test_a_started_server_that_dies_says_how(person, tmp_path):
    """Its exit status and the end of its log are in the record of the run's end."""
    python = python_in(tmp_path, dies_after=GROUPS_A_DRAW * MEMBERS)
    rl_job.plans(person, engine="vllm", vllm_python=str(python), num_iterations=1)
    answer = person.types("run", "launch", person.ids["plan"], "--wait")
    assert answer.error["code"] == "RUN_FAILED"
    [ended] = records(person, "run.ended")
    assert ended.body["detail"].startswith("SAMPLER_FAILED: the server ended with 7")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"engine": "vllm"}, "settings"),
        ({"engine": "vllm", "vllm_python": "/usr/bin/env", "vllm_url": "http://127.0.0.1:1"}, "vllm_url"),
        ({"engine": "vllm", "vllm_url": "http://user:secret@127.0.0.1:1"}, "vllm_url"),
        ({"engine": "vllm", "vllm_url": "ftp://127.0.0.1"}, "vllm_url"),
        ({"engine": "vllm", "vllm_python": "python"}, "vllm_python"),
        ({"engine": "vllm", "vllm_weights": "/tmp/x"}, "vllm_weights"),
        ({"vllm_url": "http://127.0.0.1:1"}, "engine"),
    ],
)  # fmt: skip
def test_a_server_is_named_in_one_way(asked, change, field):
    """Each configuration that does not say plainly which server samples is refused by the setting's name."""
    answer = asked.types("plan", "rl", rl_job.config(asked, **change))
    assert (answer.error["code"], answer.error["field"]) == ("SETTING_INVALID", field)


def test_a_server_that_is_another_than_planned_is_refused_before_launch(person, sampler):
    """Where it is gone, or of another version, nothing is claimed."""
    with serving(sampler) as url:
        plan = rl_job.plans(person, engine="vllm", vllm_url=url)
    gone = person.types("run", "launch", plan, "--wait")
    assert gone.error["code"] == "SAMPLER_UNREACHABLE"
    (person.ledger / "work" / "samplers" / f"{plan[7:23]}.json").unlink()
    unsaid = person.types("run", "launch", plan, "--wait")
    assert unsaid.error["code"] == "SAMPLER_UNREACHABLE"
    assert VARIABLES[0] in unsaid.error["hint"]
    assert records(person, "run.launched") == []


def test_a_started_server_is_not_an_addressed_one(person, sampler, tmp_path, monkeypatch):
    """A plan for an address does not run on a server that is started here instead: its settings would be others."""
    with serving(sampler) as url:
        plan = rl_job.plans(person, engine="vllm", vllm_url=url)
        monkeypatch.setenv(VARIABLES[0], str(python_in(tmp_path)))
        answer = person.types("run", "launch", plan, "--wait")
    assert (answer.error["code"], answer.error["field"]) == ("PLAN_STALE", "vllm_version")
    assert records(person, "run.launched") == []


@pytest.mark.slow
@pytest.mark.skipif(
    VLLM_PYTHON is None, reason="EVIDENCE_VLLM_PYTHON names no interpreter with vLLM"
)
def test_vllm_itself_samples_a_run(tmp_path, monkeypatch):
    """vLLM, started by the runner, samples a whole run; learner and sampler agree, and the ledger verifies."""
    model = make_model(tmp_path / "model", width=256)  # its attention knows no heads of 8
    person = Person(tmp_path / "person")
    person.folder.mkdir()
    settle(monkeypatch, person)
    person = rl_job.begin(person.folder, model)
    result = rl_job.runs(person, engine="vllm", vllm_python=VLLM_PYTHON, redraw_limit=20)
    assert result["state"] == "completed"
    figures = [item.body["figures"] for item in records(person, "update.acknowledged")]
    gaps = [parse_real(item["sampler_gap"]) for item in figures if "sampler_gap" in item]
    assert len(gaps) == 2
    assert max(gaps) < 1e-3
    assert parse_real(figures[2]["sampler_moved"]) > 2 * parse_real(figures[2]["sampler_probe"])
    assert person.verify().result["findings"] == []
    until(lambda: not processes(str(person.ledger)))
