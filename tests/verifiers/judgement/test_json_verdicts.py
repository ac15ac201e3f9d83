"""A judge's written verdict: strict, with one retry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.judgement.json_verdicts import parse, read_attempts

ASKED = ("policy.followed", "tone.respectful")
GOOD = '{"checks": {"tone.respectful": false, "policy.followed": true}}'
VERDICT = {"policy.followed": True, "tone.respectful": False}


@pytest.mark.parametrize(
    "text",
    [
        "GRID: C",
        "",
        "true",
        "[]",
        "{}",
        f"```json\n{GOOD}\n```",
        f"My verdict: {GOOD}",
        GOOD[:-1],
        '{"checks": {"policy.followed": true}}',
        '{"checks": {"policy.followed": true, "tone.respectful": false, "other": true}}',
        '{"checks": {"policy.followed": 1, "tone.respectful": false}}',
        '{"checks": {"policy.followed": "yes", "tone.respectful": false}}',
        '{"checks": {"policy.followed": false, "policy.followed": true, "tone.respectful": true}}',
        '{"checks": {"policy.followed": NaN, "tone.respectful": false}}',
        '{"checks": {"policy.followed": true, "tone.respectful": false}, "score": 10}',
        "[" * 3000,
        '{"checks": ' + "9" * 3900 + "}",
        GOOD + " " * 4000,
        "\ud800",
        None,
        7,
    ],
)
def test_what_is_not_the_exact_object_cannot_be_read(text: object) -> None:
    """Prose, fences, missing, extra, doubled or non-boolean checks are unreadable, never a verdict."""
    assert parse(text, ASKED) is None


def test_the_exact_object_is_read_in_the_order_asked() -> None:
    """White space around the object and the order of its keys do not matter."""
    assert parse(f"  {GOOD}\n", ASKED) == VERDICT
    assert list(parse(GOOD, ASKED)) == list(ASKED)


@pytest.mark.parametrize(
    ("attempts", "found"),
    [
        ([GOOD], VERDICT),
        (["GRID: C", GOOD], VERDICT),
        (["GRID: C"], "unreadable"),
        (["GRID: C", "GRID: C"], "unreadable"),
        ([GOOD, GOOD], "asked_again_after_a_verdict"),
        (["GRID: C", "GRID: C", GOOD], "attempts_malformed"),
        ([], "attempts_malformed"),
        (None, "attempts_malformed"),
        (GOOD, "attempts_malformed"),
    ],
)
def test_one_retry_and_only_after_an_unreadable_reply(attempts: object, found: object) -> None:
    """A second attempt after a readable verdict would be choosing, so it leaves the case undecided."""
    assert read_attempts(attempts, ASKED) == found


@given(
    st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner, max_size=3))
)
def test_no_attempts_value_crashes(value: object) -> None:
    """Whatever stands where attempts should be, the answer is a reason."""
    assert isinstance(read_attempts(value, ASKED), str)
