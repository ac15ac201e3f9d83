"""The support reward: what a reply decides, what it earns, and that no trap lifts a wrong one above a right one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.errors import EvidenceError
from verifiers.rewards import support
from verifiers.rewards.decisions import amounts_of, read_decisions
from verifiers.rewards.suite import inversions, read_pairs

PAIRS = read_pairs(
    json.loads(line)
    for line in Path(support.__file__)
    .with_name("support_pairs.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
)

DECISIONS = [
    ("I have refunded $25.00 to your card.", {"refund": {"25"}}, set(), False),
    ("I can't offer you a refund, since the window has closed.", {}, {"refund"}, True),
    ("Would you like a refund?", {}, set(), False),
    ("Our policy allows refunds within 30 days.", {}, set(), False),
    ("You'll receive a refund of $1,299.00 within 5 days.", {"refund": {"1299"}}, set(), False),
    ("I'm sorry, but this item is not eligible for a refund.", {}, {"refund"}, True),
    ("Your order has been cancelled.", {"cancel": set()}, set(), False),
    ("I am transferring you to a human colleague now.", {"escalate": set()}, set(), False),
    ("We will not refund it, but we will exchange the shirt.", {"exchange": set()}, {"refund"}, False),
    ("I have to decline this request.", {}, set(), True),
    ("Good news: your refund of 25 dollars is on its way!", {"refund": {"25"}}, set(), False),
    ("No problem, we will refund you.", {"refund": set()}, set(), False),
    ("If you wish, I can cancel it.", {}, set(), False),
    ("I'd be happy to refund you $40 if you send it back.", {}, set(), False),
    ("You are not getting your money back.", {}, {"refund"}, False),
    ("A shipped order cannot be cancelled.", {}, set(), False),
    ("Refunds are granted within 30 days.", {}, set(), False),
    ("", {}, set(), False),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "granted", "denied", "declines"), DECISIONS)
def test_a_reply_decides_what_it_says(reply, granted, denied, declines):
    """Granting, denying, asking, supposing and quoting the policy are told apart, and a grant has its amounts."""
    found = read_decisions(reply)
    assert {name: set(amounts) for name, amounts in found.granted.items()} == granted
    assert (set(found.denied), found.declines) == (denied, declines)


@pytest.mark.parametrize(
    ("clause", "amounts"),
    [
        ("refunded 25 within 5 business days", {"25"}),
        ("refunded $25 and 30 eur", {"25", "30"}),
        ("refunded 1,299.50 dollars for 2 items", {"1299.5"}),
        ("refunded \u0664\u0669 dollars", {"49"}),
        ("refunded all of it", set()),
    ],
)
def test_amounts_are_money_and_not_days(clause, amounts):
    """Money is money in any script of digits; counts of days and things are none."""
    assert amounts_of(clause) == amounts


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_each_pair_is_ordered_rightly(pair):
    """The right reply is right in full, and the wrong one earns less; by half where its decision is wrong."""
    right, parts = support.reward(pair.scenario, pair.right)
    wrong, its_parts = support.reward(pair.scenario, pair.wrong)
    assert parts["resolution"] == parts["policy"] == 1.0
    assert wrong < right
    if its_parts["resolution"] * its_parts["policy"] < 1.0:
        assert wrong <= support.CEILING < support.FLOOR <= right


def test_the_suite_tries_every_trap_that_is_promised():
    """Eight scenarios, each with its right reply, and the traps that rewards by keyword fall into."""
    traps = {pair.trap for pair in PAIRS}
    assert len({pair.scenario["id"] for pair in PAIRS}) == 8
    assert {
        "keyword salad", "flattery", "policy copied", "both decisions", "forbidden grant",
        "quoted phrase is a refusal", "amount in another script", "invented figure",
    } <= traps  # fmt: skip


@pytest.mark.parametrize(
    "reward",
    [
        lambda scenario, reply: -support.reward(scenario, reply)[0],
        lambda scenario, reply: float(len(reply)),
        lambda scenario, reply: 1.0,
        lambda scenario, reply: float("refund" in reply.casefold()),
        lambda scenario, reply: float(not any(p in reply for p in scenario["must_avoid"])),
    ],
    ids=["wrong sign", "length", "constant", "keyword", "phrases alone"],
)
def test_a_bad_reward_is_found_out(reward):
    """A reward with the wrong sign, by length, by keyword or by forbidden phrases alone inverts pairs."""
    assert inversions(reward, PAIRS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, True, "0.5"])
def test_what_is_no_number_is_no_reward(value):
    """A reward that gives no finite number is refused, whatever Python would make of it."""
    with pytest.raises(EvidenceError) as refused:
        inversions(lambda scenario, reply: value, PAIRS[:1])
    assert refused.value.code == "NOT_A_REAL"


@pytest.mark.parametrize(
    ("expected", "field"),
    [
        ({}, "expected.decision"),
        ({"decision": "apologise"}, "expected.decision"),
        ({"decision": "refund", "amount": 25}, "expected.amount"),
        ({"decision": "refund", "amount": "some"}, "expected.amount"),
        ({"decision": "refund", "actions": []}, "expected.actions"),
    ],
)
def test_a_scenario_that_the_reward_cannot_judge_is_refused(expected, field):
    """Nothing is guessed: what is expected must be a decision of the list, and perhaps one amount."""
    with pytest.raises(EvidenceError) as refused:
        support.reward({**PAIRS[0].scenario, "expected": expected}, "I have refunded it.")
    assert (refused.value.code, refused.value.field) == ("CASE_BROKEN", field)


@pytest.mark.parametrize(
    "change",
    [{"trap": None}, {"more": 1}, {"right": 5}, {"scenario": "late"}],
    ids=["no trap", "a field too many", "another type", "no scenario"],
)
def test_a_pair_that_is_none_is_refused(change):
    """A pair has its five fields, of their types; a second pair of the same name is refused too."""
    row = {**vars(PAIRS[0]), **change}
    row = {name: value for name, value in row.items() if value is not None}
    with pytest.raises(EvidenceError, match="pair"):
        read_pairs([row])
    with pytest.raises(EvidenceError, match="two pairs"):
        read_pairs([vars(PAIRS[0]), vars(PAIRS[0])])
