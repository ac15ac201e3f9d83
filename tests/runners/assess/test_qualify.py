"""Judges on labelled cases: which are qualified, which are not and why, by real models that always say one thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_job import EVAL

from runners.assess import asking, evaluate
from runners.assess.qualify import SHIPPED, read_cases
from verifiers.judgement.qualification import labelled

pytest.importorskip("torch")
from parrots import make_letter_counter, make_parrot, verdict

pytestmark = pytest.mark.slow


def as_auditor(person) -> Path:
    """The key file of an auditor whom root enrolled."""
    path = person.folder / "auditor.pem"
    if not path.exists():
        public = person.gets("key", "new", path)["public_key"]
        person.gets("key", "enroll", public, "--role", "audit", "--owner", "an auditor")
    return path


def qualifies(person, folder, *words):
    """Register a model folder and qualify it as the auditor does."""
    model = person.gets("model", "add", folder, "--licence", "CC0-1.0")["model"]
    return person.gets("judge", "qualify", model, *words, "--key", as_auditor(person))


def test_the_shipped_set_is_whole():
    """It has at least 60 labelled cases, half of them right, all said to be synthetic."""
    rows = read_cases(SHIPPED)
    assert len(labelled(rows)) >= 60
    assert sum(row["label"] for row in rows) * 2 == len(rows)
    assert {row["origin"] for row in rows} == {"synthetic"}
    assert len({row["reply"] for row in rows}) == len(rows)


YES, NO = verdict(yes=True), verdict(yes=False)
PARROTS = {
    "always yes": ({"text": YES}, (32, 0, [0, 64]), ["accuracy"]),
    "always no": ({"text": NO}, (32, 0, [0, 64]), ["accuracy"]),
    "GRID: C": ({"text": "GRID: C"}, (0, 64, [0, 0]), ["accuracy"]),
    "never stops": ({"text": YES, "stops": False}, (0, 64, [0, 0]), ["accuracy"]),
    "by the order": ({"text": YES, "after": {".": NO}}, None, ["accuracy", "position"]),
}


@pytest.mark.parametrize("name", PARROTS)
def test_a_judge_that_says_one_thing_is_not_qualified(person, tmp_path, name):
    """Yes to all is right in half, what can't be read is undecided and never right, an answer by order is named."""
    made, figures, reasons = PARROTS[name]
    found = qualifies(person, make_parrot(tmp_path / "judge", **made), "--ask", "json")
    assert (found["qualified"], found["reasons"]) == (False, reasons)
    if figures is not None:
        assert (found["right"], found["undecided"], found["flips"]) == figures
    assert found["shipped"]
    assert person.verify().result["verdict"] == "verified"


def own_cases(path: Path) -> Path:
    """Sixty labelled cases that a counter of letters can tell apart: a right reply has the reference's letters."""
    words = ["abba", "cede", "noon", "sees", "mama", "lull"]
    rows = [
        {
            "id": f"own-{number}",
            "messages": [{"role": "user", "content": "?"}],
            "facts": [],
            "reference": " ".join([words[number % 6]] * 8),
            "reply": " ".join([words[number % 6] if number % 2 else "xyzzy"] * 8),
            "label": bool(number % 2),
        }
        for number in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def registers(person, judge: str, **more) -> str:
    """A protocol of the job's validation dialogues with another judge."""
    named = {"split": person.ids["split"], "judge": judge, **EVAL, "desk_cases": 0, **more}
    return person.gets("eval", "register", person.writes("with-judge.json", named))["protocol"]


def test_a_judge_that_qualified_makes_passes_that_count(person, tmp_path) -> None:
    """A real model that is right on a set of its own is qualified; its passes name the qualification, and verify agrees."""
    cases = own_cases(tmp_path / "own.jsonl")
    found = qualifies(person, make_letter_counter(tmp_path / "counter"), "--cases", cases)
    assert (found["right"], found["total"], found["shipped"]) == (60, 60, False)
    assert (found["qualified"], found["reasons"]) == (True, [])
    with person.opens() as ledger:
        judge = str(ledger.get(found["qualification"]).ref("model"))
    done = person.gets("eval", "run", registers(person, judge), person.ids["model"])
    with person.opens() as ledger:
        passes = [ledger.get(name) for name in ledger.get(done["evaluation"]).ref_list("pass")]
    assert {item.ref("qualification") for item in passes} == {found["qualification"]}
    assert all(item.body["qualified"] for item in passes)
    in_json = person.gets(
        "eval", "run", registers(person, judge, judging="json"), person.ids["model"]
    )
    with person.opens() as ledger:
        other = [ledger.get(name) for name in ledger.get(in_json["evaluation"]).ref_list("pass")]
    assert {item.body["pass_kind"] for item in other} == {"criteria_reversal"}
    assert not any(item.body["qualified"] for item in other)  # qualified by likelihood only
    assert in_json["undecided"] == 2
    assert person.verify().result["verdict"] == "verified"


def test_a_model_does_not_judge_itself(person) -> None:
    """The policy's own base as judge is refused before anything is asked, of the base and of an adapter on it."""
    protocol = registers(person, person.ids["model"])
    for subject in ("model", "checkpoint"):
        answer = person.types("eval", "run", protocol, person.ids[subject])
        assert (answer.code, answer.error["code"]) == (1, "JUDGE_IS_POLICY")
    with person.opens() as ledger:
        assert not ledger.referrers(protocol, "protocol", "arm.transcribed")


def test_an_evaluation_that_died_goes_on(person, monkeypatch) -> None:
    """Killed after a batch, then while judging, it goes on: no batch is answered twice and there is one arm."""
    protocol = registers(person, person.ids["judge"], desk_cases=4, batch_size=2)
    words = ("eval", "run", protocol, person.ids["model"])
    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "GENERATE", "tests.runners.children.half")
        assert person.types(*words).error["code"] == "EVALUATION_FAILED"
    (kept,) = (person.ledger / "work" / "eval").glob("*.jsonl")
    assert len(kept.read_bytes().splitlines()) == 2
    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "GENERATE", "tests.runners.children.half")
        assert person.types(*words).error["code"] == "EVALUATION_FAILED"
    assert len(kept.read_bytes().splitlines()) == 4
    with monkeypatch.context() as patch:
        patch.setattr(asking, "LIKELIHOOD", "tests.runners.children.behave")
        assert person.types(*words).error["code"] == "EVALUATION_FAILED"
    assert person.types(*words).result["cases"] == 6
    with person.opens() as ledger:
        arms = ledger.referrers(protocol, "protocol", "arm.transcribed")
    assert len(arms) == 1
    assert not list((person.ledger / "work" / "eval").glob("*.jsonl"))
    assert person.verify().result["verdict"] == "verified"


def test_a_set_that_is_too_small_is_refused(person, tmp_path) -> None:
    """Fewer than 60 labelled cases qualify nobody, and nothing is asked."""
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(SHIPPED.read_bytes().splitlines(keepends=True)[:59]))
    answer = person.types("judge", "qualify", person.ids["judge"], "--cases", few)
    assert (answer.code, answer.error["code"]) == (1, "CASES_TOO_FEW")
