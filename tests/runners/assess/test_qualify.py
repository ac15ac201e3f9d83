"""Judges on labelled cases: which are qualified, which are not and why, by real models that always say one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.book import Ledger
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
