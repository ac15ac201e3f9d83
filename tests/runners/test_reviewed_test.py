"""A test set is read for real: a reviewer signs, the nominated arms answer, the gate says what one seed is worth."""

from __future__ import annotations

import secrets

import pytest
from small_job import SFT, Person, made_models, small_rows

from ledger.ed25519 import PrivateKey

pytestmark = pytest.mark.slow  # a real run and real answers

DESIGN = {
    "seeds": [7], "baseline_rate": 0.5, "cases": 6, "families": 2, "effect": 0.4, "minimum_gain": 0.03,
}  # fmt: skip


def enrols(person: Person, role: str) -> PrivateKey:
    """A key of an office, its file beside the ledger."""
    file = person.folder / f"{role}.pem"
    made = person.gets("key", "new", file)
    person.gets("key", "enroll", made["public_key"], "--role", role, "--owner", role)
    return PrivateKey.load(file)


def trains_for_a_study(person: Person) -> None:
    """A study of one seed, registered as descriptive before its run."""
    assert person.plans(seed=7).code == 0
    named = {"baseline": person.ids["model"], "plan": person.ids["plan"]}
    file = person.writes("study.json", {**named, **DESIGN})
    study = person.gets("study", "register", file, "--underpowered")
    assert study["descriptive"]
    person.ids["study"] = study["study"]
    config = person.writes(
        "of-study.json",
        {"split": person.ids["split"], "model": person.ids["model"], **SFT, "seed": 7},
    )
    person.ids["plan"] = person.gets("plan", "sft", config, "--study", person.ids["study"])["plan"]
    person.launches()


def nominates(person: Person, promoter: PrivateKey) -> None:
    """The one checkpoint, though it may be no better: the command would refuse that."""
    with person.opens() as ledger:
        record = ledger.append_stated(
            "candidate.nominated",
            {"chosen": person.ids["checkpoint"], "why": "the only one"},
            {
                "study": person.ids["study"],
                "comparison": [person.ids["comparison"]],
                "checkpoint": [person.ids["checkpoint"]],
            },
            signer=promoter,
            nonce=secrets.token_hex(16),
        )
    person.ids["nomination"] = record.id


def test_a_reviewed_test_is_read_once(tmp_path, monkeypatch):
    """Base and checkpoint read the test under the review, going on makes no second look, and the refusal rests on the gate."""
    person = Person(tmp_path)
    for name, value in person.environment().items():
        monkeypatch.setenv(name, value)
    person.begins(*made_models(tmp_path / "models"))
    person.ingests(small_rows())
    person.splits()
    person.gets("data", "audit", person.ids["split"])
    promoter, _ = enrols(person, "promote"), enrols(person, "review")
    trains_for_a_study(person)
    person.judges()
    nominates(person, promoter)
    config = {"name": "test", "role": "test", "split": person.ids["split"], "desk_cases": 4}
    file = person.writes("test.json", {**config, "max_new_tokens": 24, "threads": 1})
    protocol = person.gets("eval", "register", file)["protocol"]
    unread = person.types("eval", "run", protocol, person.ids["model"])
    assert unread.error["code"] == "TEST_NOT_REVIEWED"
    said = ("--paraphrase", "none", "--contamination", "none")
    words = ("review", "test", person.ids["nomination"], protocol, *said)
    review = person.gets(*words, "--review-key", tmp_path / "review.pem")
    assert review["look"] == 1
    read = person.gets("eval", "test", review["review"])["evaluations"]
    assert set(read) == {person.ids["model"], person.ids["checkpoint"]}
    again = person.gets("eval", "test", review["review"])["evaluations"]
    assert again == read
    stranger = person.types(
        "eval", "run", protocol, person.ids["judge"], "--review", review["review"]
    )
    assert stranger.error["code"] == "TEST_OTHER_ARM"
    gate = person.types("study", "decide", person.ids["study"])
    lines = {line["name"]: line for line in gate.result["gates"]}
    assert gate.code == 1
    assert lines["looks"]["passed"]
    refused = person.types("promote", person.ids["checkpoint"])
    codes = [item["code"] for item in refused.result["reasons"]]
    assert {"STUDY_DESCRIPTIVE", "SEEDS_TOO_FEW", "APPROVAL_MISSING"} <= set(codes)
    assert "STUDY_MISSING" not in codes
    assert person.verify().result["verdict"] == "verified"
