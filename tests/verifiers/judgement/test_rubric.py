"""The rubric as data."""

from __future__ import annotations

import copy

import pytest

from ledger.canonical import encode
from ledger.digests import sha256
from ledger.errors import EvidenceError
from verifiers.judgement.rubric import ASKS, CODE_CHECKS, Rubric, default_rubric


@pytest.mark.parametrize("ask", ASKS)
def test_shipped_rubrics_are_well_formed(ask: str) -> None:
    """Both shipped rubrics read, decide all code checks, and have the digest of their canonical bytes."""
    data = default_rubric(ask)
    rubric = Rubric.read(data)
    assert rubric.ids("code") == CODE_CHECKS
    assert rubric.digest() == sha256(encode(data))
    assert {check.criterion for check in rubric.checks} >= {"resolution", "accuracy", "policy"}


def test_digest_sees_every_word() -> None:
    """Another wording of one question is another rubric."""
    data = default_rubric("json")
    other = copy.deepcopy(data)
    other["checks"][0]["question"] += "?"
    assert Rubric.read(data).digest() != Rubric.read(other).digest()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("ask",), "yes_or_no"),
        (("max_words",), 0),
        (("max_words",), True),
        (("checks",), []),
        (("checks",), {}),
        (("checks", 0), {"id": "policy.x"}),
        (("checks", 0, "id"), "manners.polite"),
        (("checks", 0, "id"), 7),
        (("checks", 0, "id"), "policy.must_avoid"),
        (("checks", 0, "decided_by"), "customer"),
        (("checks", 0, "decided_by"), "code"),
        (("checks", 0, "question"), None),
        (("checks", 0, "required"), 1),
        (("thresholds",), {"forward": "0.0"}),
        (("thresholds", "forward"), 0.0),
        (("thresholds", "forward"), "nan"),
        (("extra",), 1),
    ],
)
def test_malformed_rubrics_are_refused(path: tuple[str | int, ...], value: object) -> None:
    """Each field that is unknown or of another type is one clear error."""
    data = default_rubric("likelihood")
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(EvidenceError) as caught:
        Rubric.read(data)
    assert caught.value.code in ("RUBRIC_MALFORMED", "NOT_A_REAL")
