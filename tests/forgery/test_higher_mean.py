"""A higher mean hides nothing: one regressed family, one new violation or one new truncation refuses, and is named."""

from __future__ import annotations

import pytest
from study_data import Answers
from study_world import StudyWorld

from verifiers.judgement.assemble import comparison_of

# Of the baseline's wrong cases, 0 to 23 in the first three families; the fourth family is all right with it.
THREE_FAMILIES = Answers(frozenset((*range(4), *range(8, 12), *range(16, 20))))
LATER = {
    "a family falls": (Answers(frozenset({25})), "families", "FAMILY_REGRESSED", ("family3", "case25")),
    "one new violation": (Answers(forbidden=frozenset({13})), "violations", "NEW_VIOLATION", ("case13",)),
    "one new truncation": (Answers(cut=frozenset({14})), "truncations", "NEW_TRUNCATION", ("case14",)),
}  # fmt: skip


@pytest.mark.parametrize("name", LATER)
def test_a_higher_mean_is_refused_and_the_case_is_named(name) -> None:
    """Eleven cases better in every seed and one worse in some way: the gain passes, that line fails and names the case."""
    answers, line, code, named = LATER[name]
    made = StudyWorld(baseline_answers=THREE_FAMILIES, tested_answers=answers)
    gate = made.gate(made.here())
    lines = {item["name"]: item for item in gate.body["gates"]}
    assert lines["gain"]["passed"]
    assert lines["significance"]["passed"]
    assert [item["name"] for item in gate.body["gates"] if not item["passed"]] == [line]
    assert lines[line]["code"] == code
    for word in named:
        assert word in lines[line]["value"]


@pytest.mark.parametrize(
    ("answers", "guard", "case"),
    [
        (Answers(frozenset({25})), "lost_success", "validation25"),
        (Answers(forbidden=frozenset({13})), "new_violation", "validation13"),
        (Answers(cut=frozenset({14})), "new_truncation", "validation14"),
    ],
)
def test_on_validation_one_worse_case_makes_a_checkpoint_ineligible(answers, guard, case) -> None:
    """The guards of a comparison go case by case: the one that is worse is named, whatever the mean."""
    made = StudyWorld(seeds=(11,))
    protocol = made.register("validation")
    baseline = made.evaluate(protocol, made.baseline, THREE_FAMILIES)
    better = made.evaluate(protocol, made.checkpoints[0], answers)
    (found,) = comparison_of(baseline, [better], made.here())["candidates"]
    assert float(found["gain"]) > 0
    assert not found["eligible"]
    assert found["guards"][guard] == [case]
