"""Checks that code decides on an answer's text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.judgement.rubric import Rubric, default_rubric
from verifiers.judgement.text_checks import (
    asserted_phrases,
    decide,
    invented_figures,
    plain,
    repeats_earlier,
    repeats_itself,
)

FACTS = [
    "Order #W7736708 was delivered.",
    "The refund is $1,299.00 to the gift card.",
    "3 to 5 days",
]


@pytest.mark.parametrize(
    "reply",
    [
        "You get a full refund.",
        "Of course, a FULL   refund is on its way!",
        "\uff26ull\u00a0refund granted.",
        "I can't change the address, but you get a full refund.",
        "I'm sorry you're not happy, we will give you a full refund.",
        "No problem, we will give you a full refund.",
        "Not only a full refund but a voucher too.",
        "I won't hesitate to give you a full refund.",
        "We can't offer a full refund. Well, here is a full refund.",
        "A full refund is not a problem.",
        "You cannot return it. Full refund approved.",
        "No, a full refund is coming.",
    ],
)
def test_an_asserted_phrase_is_found(reply: str) -> None:
    """A forbidden phrase that the reply grants is found, however it is dressed."""
    assert asserted_phrases(reply, ["full refund"]) == ["full refund"]


@pytest.mark.parametrize(
    "reply",
    [
        "I can't offer a full refund.",
        "I can\u2019t, under our policy, offer a full refund.",
        "Unfortunately we are unable to give you a full refund for this order.",
        "A full refund is not possible here.",
        "A full refund for this order isn't possible.",
        "A full refund is excluded.",
        "We don't do full refund requests on final sale items.",
        "You asked for money back.",
    ],
)
def test_a_refusal_that_quotes_the_phrase_is_no_assertion(reply: str) -> None:
    """The right refusal may name what it refuses."""
    assert asserted_phrases(reply, ["full refund"]) == []


def test_phrases_are_reported_in_the_order_given() -> None:
    """Only asserted phrases come back, an empty phrase never, one across a clause's end does."""
    reply = "Yes, you may. I can't waive the fee."
    assert asserted_phrases(reply, ["waive the fee", "", "yes, you may"]) == ["yes, you may"]


def test_a_negative_phrase_is_asserted_by_being_said() -> None:
    """A forbidden phrase that is itself a negation needs no further one."""
    assert asserted_phrases("There is no refund at all.", ["no refund"]) == ["no refund"]


@pytest.mark.parametrize(
    ("reply", "invented"),
    [
        ("You get $1299 back on w7736708 in 3-5 days.", []),
        ("You get 1,299.0 back within 5 days.", []),
        ("You get $1,300.00 back.", ["1300"]),
        ("Your order W7736709 is there in 14 days.", ["w7736709", "14"]),
        ("You get \uff11\uff12\uff19\uff19 dollars.", []),
        ("You get \u0661\u0663\u0660\u0660 dollars.", ["1300"]),
        ("1. Pack it.\n2. Send it.", []),
        ("It takes 3\u20137 days.", ["7"]),
        ("Nothing to count here.", []),
    ],
)
def test_invented_figures(reply: str, invented: list[str]) -> None:
    """A figure counts as invented if its value stands in no fact, in whatever script it is written."""
    assert invented_figures(reply, FACTS) == invented


@pytest.mark.parametrize("figure", ["0.50", "00.5", ".50 or 0.5", "0", "000", "1" * 40])
def test_numbers_compare_by_value_at_any_length(figure: str) -> None:
    """Leading and trailing zeros do not matter, and the last of forty digits does."""
    assert invented_figures(f"pay {figure}", ["0.5 50 0", "1" * 40]) == []
    assert invented_figures("pay " + "1" * 39 + "2", ["1" * 40]) == ["1" * 39 + "2"]


def test_repetition_inside_a_reply() -> None:
    """A sentence said twice or a loop of words is repetition; a short phrase said twice is not."""
    assert repeats_itself("Your order is on its way. Thanks. Your order is on its way.")
    assert repeats_itself("we will send it to you now " * 3)
    assert not repeats_itself("Thank you. We cancelled it. Thank you.")
    assert not repeats_itself("")


def test_repetition_of_an_earlier_turn() -> None:
    """A reply that is an earlier turn with another greeting repeats it; a new answer does not."""
    earlier = "Your order was delivered on Monday, so it can be returned for a refund to your card."
    again = "Your order was delivered on Monday, so it can be returned for a refund to your card!"
    assert repeats_earlier(again, [earlier])
    assert not repeats_earlier("The refund goes to your gift card instead.", [earlier])
    assert not repeats_earlier("Yes.", ["Yes."])


def test_decide_gives_every_code_check_of_the_rubric() -> None:
    """Facts, customer turns and reference may give figures; each failed check has its own name."""
    case = {
        "policy_facts": FACTS,
        "messages": [
            {"role": "user", "content": "I paid 20 for shipping"},
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": "We are looking into order W7736708 for you now."},
        ],
        "reference": "You get 1279 back.",
        "must_avoid": ["free of charge"],
    }
    rubric = Rubric.read(default_rubric("likelihood"))
    assert all(decide(rubric, case, "You paid 20, so 1279 comes back.").values())
    bad = "We are looking into order W7736708 for you now. It is free of charge for 99 days."
    failed = {name for name, holds in decide(rubric, case, bad).items() if not holds}
    assert failed == {"policy.must_avoid", "accuracy.figures"}
    repeated = decide(rubric, case, "We are looking into order W7736708 for you now.")
    assert not repeated["non_repetition.earlier_turns"]
    assert not decide(rubric, case, "word " * 121)["tone.length"]


@given(st.text(max_size=400))
def test_no_text_breaks_a_check(text: str) -> None:
    """Any text at all gets a verdict, and its plain form is stable."""
    case = {"policy_facts": [text], "messages": [], "reference": "", "must_avoid": [text]}
    decided = decide(Rubric.read(default_rubric("json")), case, text)
    assert decided["accuracy.figures"]
    assert plain(plain(text)) == plain(text)
