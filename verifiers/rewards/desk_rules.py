"""The shop's eligibility rules, once: the case builder derives answers from them, the desk enforces them.

From the retail policy: an order is cancelled or modified only while pending, returned or exchanged only
once delivered; nobody acts on another customer's order; a cancellation has one of two reasons; a new
payment method differs from the first; a gift card has to cover what it pays; a new item is an available
variant of the same product; a refund goes back to the first method or to a gift card on file.

A shop that keeps dates (`Order.terms`) has three rules more: nothing is done while the payment is disputed; an item goes back
or is exchanged within so many days of its delivery, the last included; an item that was paid back does not go back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verifiers.rewards.desk_calls import Call, call

if TYPE_CHECKING:
    from collections.abc import Callable

    from verifiers.rewards.desk_records import Item, Offer, Order

CANCEL_REASONS = ("no longer needed", "ordered by mistake")

STATUS_NEEDED: dict[str, str] = {
    "cancel": "pending",
    "modify_address": "pending",
    "modify_payment": "pending",
    "modify_items": "pending",
    "return": "delivered",
    "exchange": "delivered",
}

REFUSALS: dict[str, str] = {
    "not_owner": "the order belongs to another customer",
    "wrong_status": "the order's status does not allow the action",
    "bad_reason": "the reason is not one a cancellation may have",
    "bad_address": "the address has no street, city and zip code",
    "unknown_item": "the order has no single item of that name",
    "unknown_method": "the caller has no such payment method on file",
    "same_method": "the new payment method is the first one",
    "unavailable": "no available variant of the item has that option",
    "low_balance": "the gift card does not cover the amount",
    "refund_elsewhere": "a refund goes to the first payment method or to a gift card",
    "open_dispute": "the payment is under dispute",
    "window_closed": "the days in which an item may go back are over",
    "already_refunded": "the item was paid back before",
}
DATED = ("return", "exchange")


def objection(order: Order, wanted: Call) -> str | None:
    """Why the policy forbids a call on this order: the first rule broken, a key of `REFUSALS`, or None."""
    if wanted.tool not in STATUS_NEEDED:
        return None
    if order.caller_id != order.owner_id:
        return "not_owner"
    if order.status != STATUS_NEEDED[wanted.tool]:
        return "wrong_status"
    dated = _dated(order, wanted)
    if dated is not None:
        return dated
    return _SPECIFIC[wanted.tool](order, wanted)


def expected_call(order: Order, wanted: Call) -> Call:
    """The one right call when the customer wants `wanted`: that call, or its refusal with the reason."""
    reason = objection(order, wanted)
    return wanted if reason is None else call("refuse", reason=reason)


def perform(order: Order, allowed: Call) -> Order:
    """The order after a call to which there is no objection.

    Raises:
        KeyError: the call changes no order (`refuse`, `transfer`), a programming error.
    """
    return _EFFECT[allowed.tool](order, allowed)


def price_difference_cents(order: Order, wanted: Call) -> int:
    """What a change of item costs, in cents; negative where the customer gets money back, 0 if unknown."""
    item, offer = order.item(wanted["item"]), order.offer(wanted["item"], wanted["new"])
    return 0 if item is None or offer is None else offer.price_cents - item.price_cents


def _dated(order: Order, wanted: Call) -> str | None:
    """What the dates, earlier refunds and disputes of an order forbid."""
    terms = order.terms
    if terms is None:
        return None
    if terms.disputed:
        return "open_dispute"
    if wanted.tool in DATED and terms.elapsed_days > terms.window_days:
        return "window_closed"
    if wanted.tool in DATED and wanted["item"] in terms.refunded:
        return "already_refunded"
    return None


def _cancel(_order: Order, wanted: Call) -> str | None:
    return None if wanted["reason"] in CANCEL_REASONS else "bad_reason"


def _address(_order: Order, wanted: Call) -> str | None:
    street, _, place = wanted["address"].rpartition(", ")
    city, _, zip_code = place.rpartition(" ")
    return None if street and city and zip_code.isdigit() else "bad_address"


def _payment(order: Order, wanted: Call) -> str | None:
    if wanted["method"] == order.paid_with:
        return "same_method"
    return _covered(order, wanted["method"], order.total_cents)


def _change(order: Order, wanted: Call) -> str | None:
    if order.item(wanted["item"]) is None:
        return "unknown_item"
    offer = order.offer(wanted["item"], wanted["new"])
    if offer is None or not offer.available:
        return "unavailable"
    return _covered(order, wanted["pay_with"], price_difference_cents(order, wanted))


def _return(order: Order, wanted: Call) -> str | None:
    if order.item(wanted["item"]) is None:
        return "unknown_item"
    if order.method(wanted["refund_to"]) is None:
        return "unknown_method"
    return None if wanted["refund_to"] in (order.paid_with, "gift card") else "refund_elsewhere"


def _covered(order: Order, name: str, amount_cents: int) -> str | None:
    method = order.method(name)
    if method is None:
        return "unknown_method"
    short = method.balance_cents is not None and method.balance_cents < amount_cents
    return "low_balance" if short else None


def _cancelled(order: Order, done: Call) -> Order:
    return replace(order, status="cancelled", note=("cancelled", done["reason"]))


def _moved(order: Order, done: Call) -> Order:
    return replace(order, address=done["address"])


def _repaid(order: Order, done: Call) -> Order:
    return replace(order, paid_with=done["method"])


def _sent_back(order: Order, done: Call) -> Order:
    return replace(
        order, status="return requested", note=("return", done["item"], done["refund_to"])
    )


def _exchanged(order: Order, done: Call) -> Order:
    return replace(order, status="exchange requested", note=("exchange", *_words(done)))


def _modified(order: Order, done: Call) -> Order:
    offer = order.offer(done["item"], done["new"])
    assert offer is not None
    items = tuple(_varied(item, offer) if item.name == offer.item else item for item in order.items)
    total = order.total_cents + price_difference_cents(order, done)
    status = "pending (items modified)"
    note = ("items modified", *_words(done))
    return replace(order, status=status, items=items, total_cents=total, note=note)


def _varied(item: Item, offer: Offer) -> Item:
    changed = [option for option in item.options if offer.change.startswith(_key(option) + " ")]
    key = max((_key(option) for option in changed), key=len, default="")
    new = f"{key}: {offer.change[len(key) + 1 :]}"
    options = tuple(new if _key(option) == key else option for option in item.options)
    return replace(item, item_id=offer.item_id, price_cents=offer.price_cents, options=options)


def _key(option: str) -> str:
    return option.partition(": ")[0]


def _words(done: Call) -> tuple[str, ...]:
    return tuple(value for _, value in done.arguments)


_SPECIFIC: dict[str, Callable[[Order, Call], str | None]] = {
    "cancel": _cancel,
    "modify_address": _address,
    "modify_payment": _payment,
    "modify_items": _change,
    "return": _return,
    "exchange": _change,
}

_EFFECT: dict[str, Callable[[Order, Call], Order]] = {
    "cancel": _cancelled,
    "modify_address": _moved,
    "modify_payment": _repaid,
    "modify_items": _modified,
    "return": _sent_back,
    "exchange": _exchanged,
}
