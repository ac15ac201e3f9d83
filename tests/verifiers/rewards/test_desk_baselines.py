"""The answerers that stand beside a score."""

from __future__ import annotations

from desk_world import CANCEL, GIVE_BACK, desk_case, order, refusal

from verifiers.rewards.desk import outcome
from verifiers.rewards.desk_baselines import (
    best_constant,
    record_ignored,
    refusals,
    right_refusals,
    take_cases,
    twin_accuracy,
)

DELIVERED = order(status="delivered")
CASES = [
    desk_case("a", twin="one"),
    desk_case("b", of=DELIVERED, twin="one"),
    desk_case("c", of=DELIVERED, wanted=GIVE_BACK, twin="two"),
    desk_case("d", wanted=GIVE_BACK, twin="two"),
    desk_case("e", of=DELIVERED),
]


def test_the_best_constant_is_the_commonest_right_call():
    """Three of the five cases are rightly refused for their status, so that one answer is right thrice."""
    assert best_constant(CASES) == (refusal("wrong_status").text(), 3)
    assert best_constant([]) == ("", 0)


def test_whoever_ignores_the_record_is_right_where_it_may_act():
    """Acting always is right for one case of each twin and never for both."""
    right = record_ignored(CASES)
    assert right == {"a": True, "b": False, "c": True, "d": False, "e": False}
    assert twin_accuracy(CASES, right) == (0, 2)


def test_a_twin_counts_whole():
    """A twin is right when all its cases are, and half a twin is not counted at all."""
    success = {"a": True, "b": True, "c": True, "d": False}
    assert twin_accuracy(CASES, success) == (1, 2)
    assert twin_accuracy(CASES[:3], success) == (1, 1)


def test_refusals_are_counted_as_given_and_as_right():
    """Refusals that a model gave and refusals that were right are two figures."""
    answers = [
        CANCEL.text(),
        refusal("not_owner").text(),
        "prose",
        refusal("wrong_status").text(),
        "",
    ]
    given = [outcome(case, text) for case, text in zip(CASES, answers, strict=True)]
    assert (refusals(given), right_refusals(CASES)) == (2, 3)


def test_a_sample_keeps_twins_whole():
    """Fewer cases are taken without ever breaking a twin, and the same ones each time."""
    for count in range(len(CASES) + 1):
        taken = take_cases(CASES, count)
        twins = [case["twin"] for case in taken if case["twin"]]
        assert len(taken) <= count
        assert all(twins.count(twin) == 2 for twin in twins)
        assert take_cases(CASES, count) == taken
    assert {case["id"] for case in take_cases(CASES, 5)} == {"a", "b", "c", "d", "e"}
