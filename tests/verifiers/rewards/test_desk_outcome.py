"""What a model's text earns on the desk."""

from __future__ import annotations

import pytest
from desk_world import CANCEL, ORDER, SWAP, desk_case, order, refusal

from ledger.errors import EvidenceError
from verifiers.rewards.desk import Desk, outcome, read_case
from verifiers.rewards.desk_calls import call
from verifiers.rewards.desk_records import read_order

ELIGIBLE = desk_case()
DELIVERED = desk_case(of=order(status="delivered"))
FOREIGN = desk_case(of=order(caller_id="bob_2"))
BESIDES = desk_case(wanted=call("transfer"))

OUTCOMES = [
    ("the right action", ELIGIBLE, CANCEL.text(), True, []),
    ("the right refusal", DELIVERED, refusal("wrong_status").text(), True, []),
    ("the right transfer", BESIDES, call("transfer").text(), True, []),
    ("text that only claims the action", ELIGIBLE, "Your order is cancelled.", False, []),
    ("the action with another reason", ELIGIBLE, call("cancel", reason="ordered by mistake").text(), False, ["unrequested_action"]),
    ("another allowed action", ELIGIBLE, call("modify_payment", method="paypal").text(), False, ["unrequested_action"]),
    ("a needless refusal", ELIGIBLE, refusal("wrong_status").text(), False, []),
    ("a needless transfer", ELIGIBLE, call("transfer").text(), False, []),
    ("an action that the status forbids", DELIVERED, CANCEL.text(), False, ["wrong_status"]),
    ("an action on somebody else's order", FOREIGN, CANCEL.text(), False, ["not_owner"]),
    ("a refusal for another reason", FOREIGN, refusal("wrong_status").text(), False, []),
    ("an allowed action where a transfer was right", BESIDES, CANCEL.text(), False, ["unrequested_action"]),
    ("an action on an item that is not there", DELIVERED, call("return", item="Bicycle", refund_to="paypal").text(), False, ["unknown_item"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "text", "success", "violations"),
    [c[1:] for c in OUTCOMES],
    ids=[c[0] for c in OUTCOMES],
)
def test_outcomes(case, text, success, violations):
    """Only the end that the right call leads to is a success; forbidden and unasked actions are violations."""
    line = outcome(case, text)
    assert (line["success"], line["violations"]) == (success, violations)
    assert (line["case"], line["family"], line["kind"]) == (case["id"], case["family"], "desk")


def test_a_truncated_text_never_succeeds():
    """Even the right call earns nothing when the token limit cut the text."""
    assert outcome(ELIGIBLE, CANCEL.text(), truncated=True)["success"] is False


def test_the_desk_acts_on_a_copy():
    """Acting leaves the desk it started from, and the case, as they were."""
    before = ELIGIBLE["order"].copy()
    desk = Desk(ORDER)
    assert desk.act(CANCEL).order.status == "cancelled"
    outcome(ELIGIBLE, CANCEL.text())
    assert desk.order == ORDER
    assert ELIGIBLE["order"] == before


def test_a_second_action_meets_what_the_first_one_left():
    """A repeated action is a violation and changes nothing."""
    once = Desk(ORDER).act(CANCEL)
    twice = once.act(CANCEL)
    assert (twice.order, twice.violations) == (once.order, ("wrong_status",))


def test_nothing_happens_after_a_decision():
    """An action after a refusal is a violation and changes nothing."""
    desk = Desk(ORDER).act(refusal("wrong_status")).act(CANCEL)
    assert (desk.order, desk.violations) == (ORDER, ("after_decision",))


def test_an_expected_call_is_derived_again():
    """A case whose expected call is not what the rules give is CASE_DISAGREES, whatever the model said."""
    forged = {**DELIVERED, "expected": CANCEL.as_json()}
    with pytest.raises(EvidenceError) as caught:
        outcome(forged, CANCEL.text())
    assert caught.value.code == "CASE_DISAGREES"
    assert caught.value.expected == refusal("wrong_status").text()


BROKEN = [
    ("no order", {"order": None}),
    ("a field missing", {"order": {k: v for k, v in ORDER.as_json().items() if k != "status"}}),
    ("an unknown field", {"order": {**ORDER.as_json(), "vip": True}}),
    ("an unknown status", {"order": {**ORDER.as_json(), "status": "lost"}}),
    ("a total in words", {"order": {**ORDER.as_json(), "total_cents": "60"}}),
    ("a total as a truth value", {"order": {**ORDER.as_json(), "total_cents": True}}),
    ("items as a number", {"order": {**ORDER.as_json(), "items": 2}}),
    ("an item as a text", {"order": {**ORDER.as_json(), "items": ["lamp"]}}),
    ("an offer without stock", {"order": {**ORDER.as_json(), "offers": [{"item": "Desk Lamp"}]}}),
    ("a balance in words", {"order": {**ORDER.as_json(), "methods": [{"method": "gift card", "balance_cents": "3"}]}}),
    ("a note of numbers", {"order": {**ORDER.as_json(), "note": [1]}}),
    ("no wish", {"wanted": None}),
]  # fmt: skip


@pytest.mark.parametrize("changes", [c[1] for c in BROKEN], ids=[c[0] for c in BROKEN])
def test_broken_cases(changes):
    """A case whose record or call has another shape is CASE_BROKEN."""
    with pytest.raises(EvidenceError) as caught:
        read_case({**ELIGIBLE, **changes})
    assert caught.value.code == "CASE_BROKEN"


@pytest.mark.parametrize("name", ["order", "wanted", "expected"])
def test_absent_parts_of_a_case(name):
    """A case without one of its three parts is CASE_BROKEN and names the part."""
    with pytest.raises(EvidenceError) as caught:
        read_case({key: value for key, value in ELIGIBLE.items() if key != name})
    assert (caught.value.code, caught.value.field) == ("CASE_BROKEN", name)


def test_an_order_survives_its_json():
    """What an order writes is read back as an equal order, notes and options included."""
    done = Desk(order(status="delivered")).act(SWAP).order
    assert read_order(done.as_json()) == done
