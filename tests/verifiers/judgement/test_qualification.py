"""A judge's accuracy on labelled cases: counted from raw output, held against the floor, by the lower end."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from verifiers.judgement.judging import json_line, likelihood_line
from verifiers.judgement.qualification import items, labelled, qualification
from verifiers.judgement.rubric import JUDGE_QUESTIONS, Rubric, default_rubric

JSON, LIKELIHOOD = Rubric.read(default_rubric("json")), Rubric.read(default_rubric("likelihood"))


def cases(count: int = 64) -> list[dict]:
    """Labelled cases, every other one right."""
    return [
        {
            "id": f"q{number}",
            "messages": [{"role": "user", "content": "May I?"}],
            "facts": ["You may."],
            "reference": "Yes.",
            "reply": f"Reply {number}",
            "label": number % 2 == 0,
        }
        for number in range(count)
    ]


def said(rows: list[dict], forward, backward) -> dict:
    """Raw passes in which a judge says of each row what two functions give: true, false, or a text."""

    def text(answer) -> str:
        if isinstance(answer, str):
            return answer
        checks = ", ".join(f'"{name}": {str(answer).lower()}' for name, _, _ in JUDGE_QUESTIONS)
        return f'{{"checks": {{{checks}}}}}'

    return {
        order: {
            "pass_kind": "criteria_reversal",
            "order": order,
            "lines": [json_line(row["id"], row["reply"], [text(say(row))]) for row in rows],
        }
        for order, say in (("forward", forward), ("reversed", backward))
    }


def judged(forward, backward=None, count: int = 64, floor: str = "0.8") -> dict:
    """The figures of a judge."""
    rows = cases(count)
    return qualification(rows, said(rows, forward, backward or forward), JSON, floor)


def wrong_in(number: int):
    """A judge that errs in the first so many cases."""
    return lambda row: row["label"] != (int(row["id"][1:]) < number)


TABLE = {
    "never wrong": (judged, (wrong_in(0),), (64, 0, [0, 64]), []),
    "five wrong": (judged, (wrong_in(5),), (59, 0, [0, 64]), []),
    "seven wrong, lower end below the floor": (judged, (wrong_in(7),), (57, 0, [0, 64]), ["accuracy"]),
    "always yes": (judged, (lambda _: True,), (32, 0, [0, 64]), ["accuracy"]),
    "always the first": (judged, (lambda _: True, lambda _: False), (32, 0, [64, 64]), ["accuracy", "position"]),
    "GRID: C": (judged, (lambda _: "GRID: C",), (0, 64, [0, 0]), ["accuracy"]),
    "unreadable in one order": (judged, (wrong_in(0), lambda _: "well"), (0, 64, [0, 0]), ["accuracy"]),
    "too few": (judged, (wrong_in(0), None, 59, "0.5"), (59, 0, [0, 59]), ["cases"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_judge_is_qualified_by_what_it_said(name: str) -> None:
    """Right, undecided and flips are counted; each reason against a judge is named."""
    make, arguments, figures, reasons = TABLE[name]
    found = make(*arguments)
    assert (found["right"], found["undecided"], found["flips"]) == figures
    assert (found["reasons"], found["qualified"]) == (reasons, not reasons)


def test_a_contradiction_that_follows_the_order_disqualifies_a_good_judge() -> None:
    """Nine flips one way are no chance, even where the accuracy would do on another floor; both ways they may be."""
    one_way = judged(
        wrong_in(0), lambda row: row["label"] and int(row["id"][1:]) >= 18, floor="0.5"
    )
    assert (one_way["flips"], one_way["reasons"]) == ([9, 64], ["position"])
    both = judged(wrong_in(4), wrong_in(0), floor="0.5")
    assert (both["flips"], both["reasons"]) == ([4, 64], [])


def test_the_interval_is_wilsons() -> None:
    """Both ends agree with SciPy's."""
    found = judged(wrong_in(5))
    theirs = binomtest(59, 64).proportion_ci(method="wilson")
    assert parse_real(found["lower"]) == pytest.approx(theirs.low)
    assert parse_real(found["upper"]) == pytest.approx(theirs.high)


def test_a_likelihood_judge_is_counted_by_both_directions() -> None:
    """A gain in one direction only is no yes."""
    rows = cases()

    def passes(gain: float) -> dict:
        parts = {
            "forward": ("reply_alone", "reply_given_reference"),
            "reversed": ("reference_alone", "reference_given_reply"),
        }
        return {
            order: {
                "pass_kind": "direction",
                "order": order,
                "lines": [
                    likelihood_line(
                        row["id"],
                        row["reply"],
                        {alone: (-9.0, 3), given: (-9.0 + (1 if row["label"] else gain), 3)},
                    )
                    for row in rows
                ],
            }
            for order, (alone, given) in parts.items()
        }

    assert qualification(rows, passes(-1), LIKELIHOOD, "0.8")["right"] == 64
    mixed = passes(-1) | {"forward": passes(1)["forward"]}
    found = qualification(rows, mixed, LIKELIHOOD, "0.8")
    assert (found["right"], found["flips"], found["reasons"]) == (64, [32, 64], ["position"])


BROKEN = {
    "no object": lambda rows: [7, *rows],
    "no label": lambda rows: [{**rows[0], "label": "yes"}, *rows[1:]],
    "twice": lambda rows: [rows[0], *rows],
    "no reply": lambda rows: [{**rows[0], "reply": " "}, *rows[1:]],
    "a fact that is no text": lambda rows: [{**rows[0], "facts": [3]}, *rows[1:]],
    "a turn without content": lambda rows: [{**rows[0], "messages": [{"role": "user"}]}, *rows[1:]],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_set_that_is_none_is_refused(name: str) -> None:
    """Rows from somebody else may be anything; each wrong one ends in its code."""
    with pytest.raises(EvidenceError) as caught:
        labelled(BROKEN[name](cases()))
    assert caught.value.code == "CASE_BROKEN"


def test_a_judge_is_not_shown_the_label() -> None:
    """What a judge is asked holds everything of a case but the label and what is wrong."""
    shown = items(labelled([{**row, "fault": "a lie"} for row in cases()]))
    assert set(shown[0]) == {"item", "messages", "facts", "reference", "reply"}
