"""What a draw hits is run again from bytes by an auditor's key: honest evidence agrees, forged and re-signed evidence does not."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest
from small_job import SFT, Person, settle

from ledger.book import Ledger
from ledger.canonical import real
from ledger.ed25519 import PrivateKey
from runners.assess.asking import Place
from runners.assess.evaluate import complete, evaluate
from runners.assess.reviews import shown
from runners.prepare.data import put_lines
from runners.prepare.shelf import default_shelf
from verifiers.judgement import assemble
from verifiers.replay.view import View

pytestmark = pytest.mark.slow


def key_of(person: Person, role: str) -> Path:
    """The key file of somebody with one role."""
    path = person.folder / f"{role}.pem"
    if not path.exists():
        public = person.gets("key", "new", path)["public_key"]
        person.gets("key", "enroll", public, "--role", role, "--owner", f"somebody to {role}")
    return path


def states(person: Person, role: str, kind: str, body: dict, refs: dict) -> str:
    """Record something by the statement of somebody with a role."""
    signer = PrivateKey.load(key_of(person, role))
    with person.opens() as ledger:
        return ledger.append_stated(kind, body, refs, signer=signer, nonce=secrets.token_hex(16)).id


def do_the_test(person: Person) -> None:
    """A study of one seed: trained, compared, nominated, reviewed, both arms through the test."""
    ids = person.ids
    study = person.writes(
        "study.json",
        {"baseline": ids["model"], "plan": ids["plan"], "seeds": [77], "baseline_rate": 0.5},
    )
    ids["study"] = person.gets("study", "register", study, "--underpowered")["study"]
    named = {"split": ids["split"], "model": ids["model"], "seed": 77}
    config = person.writes("seed77.json", {**named, **SFT})
    ids["plan"] = person.gets("plan", "sft", config, "--study", ids["study"])["plan"]
    person.launches()
    evaluated = person.gets("eval", "run", ids["protocol"], ids["checkpoint"])["evaluation"]
    compared = person.gets("eval", "compare", ids["base"], evaluated)["comparison"]
    ids["nomination"] = states(
        person,
        "promote",
        "candidate.nominated",
        {"chosen": ids["checkpoint"], "why": "the only one"},
        {"study": ids["study"], "comparison": [compared], "checkpoint": [ids["checkpoint"]]},
    )
    named = {"split": ids["split"], "judge": ids["judge"], "role": "test"}
    config = {
        **named,
        "desk_cases": 4,
        "dialogue_cases": 2,
        "max_new_tokens": 24,
        "threads": 1,
        "batch_size": 2,
    }
    protocol = person.gets("eval", "register", person.writes("test.json", config))["protocol"]
    ids["test"] = protocol
    with person.opens() as ledger:
        _, derived = shown(ledger, ledger.get(protocol), ledger.get(ids["nomination"]))
    ids["review"] = states(
        person,
        "review",
        "test.reviewed",
        {**derived, "paraphrase": "none", "contamination": "none known"},
        {"nomination": ids["nomination"], "protocol": protocol},
    )
    place = Place(default_shelf(), person.ledger / "work" / "eval")
    with person.opens() as ledger:
        review = ledger.get(ids["review"])
        for name in ("model", "checkpoint"):
            done = evaluate(
                ledger, ledger.get(protocol), ledger.get(ids[name]), place, lambda *_: None, review
            )
            ids[f"tested {name}"] = done.id
    key_of(person, "audit")
    person.writes("ids.json", ids)


@pytest.fixture(scope="module")
def tested(finished: Person, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """The small job, and after it a study of one seed up to its test."""
    made = finished.copied_to(tmp_path_factory.mktemp("tested") / "person")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, made)
        do_the_test(made)
    return made


@pytest.fixture
def auditor(tested: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Somebody with a copy of it, who has the auditor's key."""
    copied = tested.copied_to(tmp_path / "person")
    settle(monkeypatch, copied)
    return copied


def draws(person: Person) -> dict:
    """Draw as the auditor does."""
    return person.gets("audit", "draw", person.ids["study"], "--key", key_of(person, "audit"))


def runs(person: Person, draw: str):
    """Run a draw again as the auditor does."""
    return person.types("audit", "run", draw, "--key", key_of(person, "audit"))


def test_honest_evidence_comes_out_again(auditor: Person) -> None:
    """Three updates, a case of each arm and one of each pass agree; the gate counts them, verify derives the draw."""
    drawn = draws(auditor)
    roles = [item["role"] for item in drawn["targets"]]
    assert (roles.count("update"), roles.count("arm"), roles.count("pass")) == (3, 2, 4)
    answer = runs(auditor, drawn["draw"])
    assert answer.code == 0, answer.object
    assert (answer.result["checks"], answer.result["agreed"]) == (9, 9)
    assert runs(auditor, drawn["draw"]).result["checks"] == 9  # nothing is run twice
    gate = auditor.types("study", "decide", auditor.ids["study"]).object
    lines = {line["name"]: line for line in _lines(gate)}
    assert lines["reruns"]["passed"]
    assert lines["reproduced"]["passed"]
    verified = auditor.verify().object
    assert verified["result"]["verdict"] == "verified", verified
    assert verified["result"]["replayed"]["check.reproduced"] == 9


def _lines(answer: dict) -> list[dict]:
    return answer["result"]["gates"]


def forge_passes(person: Person) -> str:
    """The judge's own key writes other log-probabilities over the candidate's test arm, and signs all that follows."""
    with person.opens() as ledger:
        view = View(ledger, ledger.blobs)
        honest = ledger.get(person.ids["tested checkpoint"])
        arm = ledger.get(honest.ref_list("arm")[0])
        protocol = ledger.get(person.ids["test"])
        made = []
        for item in map(ledger.get, honest.ref_list("pass")):
            raw = assemble.raw_pass(item, view)
            for line in raw["lines"]:
                for name, part in line["parts"].items():
                    gained = "given" in name
                    part["logprob_sum"] = real(-0.5 * part["tokens"] * (1 if gained else 2))
            verdicts, undecided = assemble.verdicts_of(protocol, arm, raw, view)
            body = {
                **item.body,
                "raw_output": put_lines(ledger, raw["lines"]).model_dump(),
                "verdicts": put_lines(ledger, verdicts).model_dump(),
                "undecided": undecided,
            }
            made.append(ledger.append("judge.passed", body, dict(item.refs)))
        return complete(ledger, protocol, arm, made).id


def test_judge_output_signed_anew_is_caught_where_it_is_run_again(auditor: Person) -> None:
    """Verify finds nothing wrong with a forgery by the judge's own key; the re-run does, and the gate's line fails."""
    forged = forge_passes(auditor)
    assert auditor.verify().result["verdict"] == "verified"
    drawn = draws(auditor)
    answer = runs(auditor, drawn["draw"])
    assert (answer.code, answer.error["code"]) == (1, "NOT_REPRODUCED")
    wrong = answer.result["disagreed"] if "result" in answer.object else []
    with auditor.opens() as ledger:
        passes = set(ledger.get(forged).ref_list("pass"))
    assert {item["target"] for item in wrong} == passes
    gate = auditor.types("study", "decide", auditor.ids["study"]).object
    lines = {line["name"]: line for line in _lines(gate)}
    assert (lines["reproduced"]["passed"], lines["reproduced"]["code"]) == (False, "NOT_REPRODUCED")
    assert auditor.verify().result["verdict"] == "verified"


def test_a_key_that_judges_cannot_audit(auditor: Person) -> None:
    """The writer, who trains and judges, neither draws nor runs again."""
    answer = auditor.types("audit", "draw", auditor.ids["nomination"])
    assert (answer.code, answer.error["code"]) == (1, "ROLE_MISSING")


def test_a_check_of_something_else_is_found(auditor: Person) -> None:
    """An auditor who writes down a re-run of a case that was not drawn is found by verify."""
    drawn = draws(auditor)
    one = next(item for item in drawn["targets"] if item["role"] == "arm")
    body = {
        "drawn_from": drawn["drawn_from"],
        "index": one["index"],
        "case": "another case",
        "agreed": True,
        "detail": "what was recorded came out again",
        "changed": [],
        "processor": "a processor",
    }
    key = PrivateKey.load(key_of(auditor, "audit"))
    state = auditor.folder / "state" / "evidence-ledger"
    with Ledger.open(auditor.ledger, key=key, state_dir=state) as ledger:
        ledger.append("check.reproduced", body, {"draw": drawn["draw"], "arm": one["record"]})
    answer = auditor.verify()
    assert json.dumps(answer.object).count("CHECK_UNDRAWN")
    assert answer.code == 1


def test_nothing_is_run_again_before_it_is_drawn(auditor: Person) -> None:
    """Without a draw there is nothing to run, and the command that makes one is named."""
    answer = runs(auditor, auditor.ids["nomination"])
    assert (answer.code, answer.error["code"]) == (1, "DRAW_MISSING")
    assert "evidence audit draw" in answer.error["hint"]
