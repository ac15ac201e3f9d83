"""The shop's eligibility rules, one case for each sentence of the policy."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from desk_world import CANCEL, GIVE_BACK, ORDER, SWAP, order, refusal

from ledger.errors import EvidenceError
from verifiers.rewards.desk_calls import call
from verifiers.rewards.desk_records import Terms, read_order
from verifiers.rewards.desk_rules import (
    REFUSALS,
    STATUS_NEEDED,
    expected_call,
    objection,
    perform,
)

DELIVERED = order(status="delivered")
MOVE = call("modify_address", address="9 Oak Street, Austin 78701")
BY_GIFT_CARD = call("exchange", item="Desk Lamp", new="color black", pay_with="gift card")
CHEAPER = call("exchange", item="Pet Bed", new="size large", pay_with="gift card")


def dated(tool_days: int = 0, **terms):
    """A delivered order of a shop that keeps dates, so many days past the window's last day."""
    today = (date(2026, 3, 31) + timedelta(days=tool_days)).isoformat()
    return order(status="delivered", terms=Terms("2026-03-01", today, 30, **terms))


ALLOWED = [
    ("the last day of the window", dated(), GIVE_BACK),
    ("well inside the window", dated(-20), SWAP),
    ("another item was paid back", dated(refunded=("Desk Lamp",)), GIVE_BACK),
    ("cancel a pending order", ORDER, CANCEL),
    ("cancel what was ordered by mistake", ORDER, call("cancel", reason="ordered by mistake")),
    ("another address while pending", ORDER, MOVE),
    ("another payment method", ORDER, call("modify_payment", method="paypal")),
    (
        "an available variant while pending",
        ORDER,
        call("modify_items", item="Desk Lamp", new="color black", pay_with="paypal"),
    ),
    ("return to the first method", DELIVERED, GIVE_BACK),
    ("return to a gift card", DELIVERED, call("return", item="Pet Bed", refund_to="gift card")),
    ("exchange for an available variant", DELIVERED, SWAP),
    ("a gift card needs no balance to be paid back", DELIVERED, CHEAPER),
    (
        "a gift card that covers all of it",
        order(
            status="delivered",
            methods=(*ORDER.methods[:1], ORDER.methods[1].__class__("gift card", 500)),
        ),
        BY_GIFT_CARD,
    ),
]

FORBIDDEN = [
    ("the day after the window", dated(1), GIVE_BACK, "window_closed"),
    ("an exchange after the window", dated(1), SWAP, "window_closed"),
    ("an item that was paid back", dated(refunded=("Pet Bed",)), GIVE_BACK, "already_refunded"),
    ("a payment under dispute", dated(disputed=True), GIVE_BACK, "open_dispute"),
    ("under dispute and too late", dated(9, disputed=True), GIVE_BACK, "open_dispute"),
    ("somebody else's order", order(caller_id="bob_2"), CANCEL, "not_owner"),
    ("somebody else's order is refused before its status", order(caller_id="bob_2", status="delivered"), CANCEL, "not_owner"),
    ("cancel a delivered order", DELIVERED, CANCEL, "wrong_status"),
    ("cancel a processed order", order(status="processed"), CANCEL, "wrong_status"),
    ("cancel a cancelled order", order(status="cancelled"), CANCEL, "wrong_status"),
    ("cancel after the items were modified", order(status="pending (items modified)"), CANCEL, "wrong_status"),
    ("another address once delivered", DELIVERED, MOVE, "wrong_status"),
    ("return a pending order", ORDER, GIVE_BACK, "wrong_status"),
    ("exchange a pending order", ORDER, SWAP, "wrong_status"),
    ("another reason to cancel", ORDER, call("cancel", reason="too expensive"), "bad_reason"),
    ("an address without a zip code", ORDER, call("modify_address", address="9 Oak Street, Austin"), "bad_address"),
    ("an address without a street", ORDER, call("modify_address", address="Austin 78701"), "bad_address"),
    ("the first payment method again", ORDER, call("modify_payment", method="credit card"), "same_method"),
    ("a gift card below the total", ORDER, call("modify_payment", method="gift card"), "low_balance"),
    ("a method that is not on file", ORDER, call("modify_payment", method="cash"), "unknown_method"),
    ("a variant out of stock", DELIVERED, call("exchange", item="Desk Lamp", new="color red", pay_with="paypal"), "unavailable"),
    ("a variant of another product", DELIVERED, call("exchange", item="Desk Lamp", new="size large", pay_with="paypal"), "unavailable"),
    ("an item that is not in the order", DELIVERED, call("return", item="Bicycle", refund_to="credit card"), "unknown_item"),
    ("a gift card below the difference", DELIVERED, BY_GIFT_CARD, "low_balance"),
    ("a refund to another method", DELIVERED, call("return", item="Pet Bed", refund_to="paypal"), "refund_elsewhere"),
    ("a refund to nothing on file", DELIVERED, call("return", item="Pet Bed", refund_to="cash"), "unknown_method"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "wanted"), [c[1:] for c in ALLOWED], ids=[c[0] for c in ALLOWED]
)
def test_what_the_policy_allows(record, wanted):
    """An eligible request is its own right answer, and performing it changes the record."""
    assert objection(record, wanted) is None
    assert expected_call(record, wanted) == wanted
    assert perform(record, wanted) != record


@pytest.mark.parametrize(
    ("record", "wanted", "reason"), [c[1:] for c in FORBIDDEN], ids=[c[0] for c in FORBIDDEN]
)
def test_what_the_policy_forbids(record, wanted, reason):
    """A request against the policy is rightly refused, with the first rule it breaks."""
    assert objection(record, wanted) == reason
    assert expected_call(record, wanted) == refusal(reason)


def test_every_refusal_is_shown():
    """Each reason of the table is reached by a case above, and no case has a reason outside it."""
    assert {case[3] for case in FORBIDDEN} == set(REFUSALS)


def test_two_items_of_one_name_are_not_guessed():
    """A name that two items share names neither."""
    twice = order(status="delivered", items=(*ORDER.items, ORDER.items[1]))
    assert objection(twice, GIVE_BACK) == "unknown_item"


@pytest.mark.parametrize("tool", sorted(STATUS_NEEDED))
def test_an_action_is_done_once(tool):
    """After an action on items or a cancellation, the same action meets the status it left."""
    wanted = {
        "cancel": CANCEL,
        "modify_address": MOVE,
        "modify_payment": call("modify_payment", method="paypal"),
        "modify_items": call(
            "modify_items", item="Desk Lamp", new="color black", pay_with="paypal"
        ),
        "return": GIVE_BACK,
        "exchange": SWAP,
    }[tool]
    after = perform(order(status=STATUS_NEEDED[tool]), wanted)
    again = {"modify_address": None, "modify_payment": "same_method"}.get(tool, "wrong_status")
    assert objection(after, wanted) == again


def test_modifying_an_item_changes_item_and_total():
    """The new item's id, price and the order's total are those of the offer."""
    done = perform(
        ORDER, call("modify_items", item="Desk Lamp", new="color black", pay_with="paypal")
    )
    assert (done.items[0].item_id, done.items[0].price_cents) == ("12", 4500)
    assert (done.items[0].options, done.items[1]) == (
        ("finish: matt", "color: black"),
        ORDER.items[1],
    )
    assert (done.total_cents, done.status) == (6500, "pending (items modified)")


def test_terms_are_read_back_as_they_were():
    """A dated order's JSON gives an equal order, and an undated one says nothing of terms."""
    record = dated(-3, refunded=("Pet Bed",), disputed=True)
    assert read_order(record.as_json()) == record
    assert "terms" not in ORDER.as_json()
    assert read_order(ORDER.as_json()) == ORDER


@pytest.mark.parametrize(
    "terms",
    [
        {"today": "2026-02-30"},
        {"today": "2026-02-01"},
        {"today": "tomorrow"},
        {"window_days": "30"},
        {"refunded": "Pet Bed"},
        {"disputed": 0},
        {"more": 1},
    ],
)
def test_terms_that_are_none_are_refused(terms):
    """Days that do not exist or run backwards, other types and unknown fields break the case."""
    value = dated().as_json()
    with pytest.raises(EvidenceError) as refused:
        read_order({**value, "terms": {**value["terms"], **terms}})
    assert refused.value.code == "CASE_BROKEN"


def test_no_terms_at_all_is_not_null():
    """An order without terms leaves the field out; null is another type."""
    with pytest.raises(EvidenceError) as refused:
        read_order({**ORDER.as_json(), "terms": None})
    assert refused.value.code == "CASE_BROKEN"
