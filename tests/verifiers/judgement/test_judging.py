"""From a judge's raw output to verdicts."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judgement_rows import raw_pass, rubric_data

from ledger.errors import EvidenceError
from verifiers.judgement.judging import (
    Verdict,
    agreed,
    answers_by_position,
    flip_rate,
    flipped,
    json_line,
    likelihood_line,
    swapped,
    verdicts,
)
from verifiers.judgement.rubric import Rubric, default_rubric

RUBRIC = Rubric.read(rubric_data())
REPLY = "it is not refunded"


def changed(path: tuple[str, ...], value: Any) -> Verdict:
    """The verdict after one field of a good line is replaced."""
    raw = copy.deepcopy(raw_pass("forward", {"c": (REPLY, 0.5)}))
    place = raw["lines"][0]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return verdicts(RUBRIC, raw, {"c": REPLY})["c"]


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize(("margin", "satisfied"), [(0.5, True), (-0.5, False), (0.0, False)])
def test_margin_decides(order: str, margin: float, satisfied: bool) -> None:
    """The gain in mean log-probability decides, strictly above the rubric's threshold."""
    found = verdicts(RUBRIC, raw_pass(order, {"c": (REPLY, margin)}), {"c": REPLY})["c"]
    assert found.satisfied is satisfied
    assert found.margin == pytest.approx(margin)
    assert found.line()["checks"] == {"resolution.supports_reference": satisfied}


def test_each_order_has_its_own_threshold_and_parts() -> None:
    """A reversed pass reads the reference's likelihood, against the reversed threshold."""
    data = rubric_data() | {"thresholds": {"forward": "0.0", "reversed": "1.0"}}
    rubric = Rubric.read(data)
    for order, satisfied in (("forward", True), ("reversed", False)):
        raw = raw_pass(order, {"c": (REPLY, 0.5)})
        assert verdicts(rubric, raw, {"c": REPLY})["c"].satisfied is satisfied
    crossed = raw_pass("forward", {"c": (REPLY, 0.5)}) | {"order": "reversed"}
    assert verdicts(rubric, crossed, {"c": REPLY})["c"].reason == "part_missing"


GIVEN = ("parts", "reply_given_reference")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("reply_digest",), None, "other_reply"),
        (("reply_digest",), "sha256:" + "0" * 64, "other_reply"),
        (("parts",), None, "parts_missing"),
        (("parts",), [], "parts_missing"),
        (GIVEN, None, "part_missing"),
        ((*GIVEN, "tokens"), 0, "tokens_malformed"),
        ((*GIVEN, "tokens"), True, "tokens_malformed"),
        ((*GIVEN, "tokens"), "4", "tokens_malformed"),
        ((*GIVEN, "tokens"), 5, "tokens_differ"),
        ((*GIVEN, "logprob_sum"), "nan", "logprob_malformed"),
        ((*GIVEN, "logprob_sum"), "-inf", "logprob_malformed"),
        ((*GIVEN, "logprob_sum"), "-1", "logprob_malformed"),
        ((*GIVEN, "logprob_sum"), -1.0, "logprob_malformed"),
        ((*GIVEN, "logprob_sum"), None, "logprob_malformed"),
        ((*GIVEN, "logprob_sum"), "0.25", "logprob_positive"),
    ],
)
def test_what_cannot_be_read_is_undecided(path: tuple[str, ...], value: Any, reason: str) -> None:
    """Each malformed field leaves the case undecided for a named reason: never wrong, never a crash."""
    found = changed(path, value)
    assert (found.satisfied, found.margin, found.reason) == (None, None, reason)


@given(
    st.recursive(
        st.none() | st.text() | st.floats(), lambda x: st.dictionaries(st.text(), x), max_leaves=5
    )
)
def test_no_value_in_a_line_crashes(value: Any) -> None:
    """Any JSON value in place of a sum, a part or all parts is undecided."""
    for path in (("parts",), GIVEN, (*GIVEN, "logprob_sum")):
        assert changed(path, value).satisfied is None or value == "0.0"


def test_a_missing_line_is_undecided() -> None:
    """A case that the judge was not asked about, or failed on, is named as such."""
    assert verdicts(RUBRIC, raw_pass("forward", {}), {"c": REPLY})["c"].reason == "no_line"


@pytest.mark.parametrize(
    "lines", [["c", "c"], ["d"], [None]], ids=["twice", "unknown case", "no object"]
)
def test_lines_about_no_answer_are_refused(lines: list[str | None]) -> None:
    """Output that was not asked for is an error of the evidence, not a verdict."""
    good = raw_pass("forward", {"c": (REPLY, 0.5)})["lines"][0]
    made = [None if case is None else good | {"case": case} for case in lines]
    raw = {"pass_kind": "direction", "order": "forward", "lines": made}
    with pytest.raises(EvidenceError) as caught:
        verdicts(RUBRIC, raw, {"c": REPLY})
    assert caught.value.code == "JUDGE_LINE_UNPLANNED"


@pytest.mark.parametrize(
    ("ask", "kind", "order"),
    [
        ("likelihood", "criteria_reversal", "forward"),
        ("likelihood", "position_swap", "forward"),
        ("json", "direction", "forward"),
        ("json", "position_swap", "forward"),
        ("likelihood", "direction", "sideways"),
    ],
)
def test_kinds_of_pass_are_never_mixed(ask: str, kind: str, order: str) -> None:
    """A pass of another kind than the way of asking, or of no known order, is refused."""
    with pytest.raises(EvidenceError) as caught:
        verdicts(
            Rubric.read(default_rubric(ask)), {"pass_kind": kind, "order": order, "lines": []}, {}
        )
    assert caught.value.code == "JUDGE_PASS_MIXED"


def test_a_line_with_a_sum_that_is_not_finite_is_not_written() -> None:
    """The writer refuses NaN, so a runner leaves such a line out."""
    with pytest.raises(EvidenceError, match="no place in a record"):
        likelihood_line("c", REPLY, {"reply_alone": (math.nan, 3)})


def test_written_verdicts_are_strict() -> None:
    """All required checks make a satisfied pass; `GRID: C` leaves it undecided."""
    rubric = Rubric.read(default_rubric("json"))
    checks = dict.fromkeys(rubric.ids("judge"), True)
    good = json.dumps({"checks": checks})
    rude = good.replace('"tone.respectful": true', '"tone.respectful": false')
    wrong = good.replace('"policy.followed": true', '"policy.followed": false')
    replies = {"good": "a", "rude": "b", "wrong": "c", "none": "d"}
    said = {"good": [good], "rude": [rude], "wrong": ["GRID: C", wrong], "none": ["GRID: C"]}
    lines = [json_line(case, replies[case], said[case]) for case in replies]
    raw = {"pass_kind": "criteria_reversal", "order": "reversed", "lines": lines}
    found = verdicts(rubric, raw, replies)
    assert {case: verdict.satisfied for case, verdict in found.items()} == {
        "good": True,
        "rude": True,
        "wrong": False,
        "none": None,
    }
    assert found["none"].reason == "unreadable"


@pytest.mark.parametrize(
    ("forward", "backward", "together", "flip"),
    [
        (True, True, True, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, False, False),
        (None, True, None, None),
        (False, None, None, None),
    ],
)
def test_two_passes_together(forward, backward, together, flip) -> None:
    """A success needs both passes; an unreadable one leaves the case undecided and no flip is counted."""
    pair = Verdict("c", forward), Verdict("c", backward)
    assert (agreed(*pair), flipped(*pair)) == (together, flip)


def test_flip_rate_has_an_interval() -> None:
    """12.9 % of 2,999 published verdicts flip: the interval is narrow around it."""
    found = flip_rate(387, 2999)
    assert (round(found.lower, 3), round(found.upper, 3)) == (0.118, 0.142)


@pytest.mark.parametrize(
    ("forward", "backward", "winner"),
    [("A", "A", "A"), ("B", "B", "B"), ("A", "B", "tie"), (None, "A", None), ("tie", "tie", "tie")],
)
def test_a_position_swap_is_won_in_both_orders(forward, backward, winner) -> None:
    """An answer wins only if both orders name it."""
    assert swapped(forward, backward) == winner


def test_a_judge_that_answers_by_position_is_refused() -> None:
    """Always the first answer is refused after 8 cases; a judge without the habit at most 1 time in 100."""
    assert answers_by_position(8, 0)
    assert answers_by_position(0, 60)
    assert not answers_by_position(7, 0)
    assert not answers_by_position(30, 30)
    assert not answers_by_position(0, 0)
    wrongly = sum(
        math.comb(60, first) / 2**60
        for first in range(61)
        if answers_by_position(first, 60 - first)
    )
    assert wrongly <= 0.01
