"""From the shop's tables to the records a desk acts on, and what customers may want of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runners.prepare.tau2 import Retail, benchmark_customers
from verifiers.rewards.desk_calls import Call, call
from verifiers.rewards.desk_records import Item, Method, Offer, Order

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHANGE_CHARS = 18
MAX_NAMED_ITEMS = 4

_SOURCES = {"credit_card": "credit card", "gift_card": "gift card", "paypal": "paypal"}


def rank(*parts: object) -> str:
    """A pseudo-random sort key that depends on its parts alone, on no library's generator."""
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()


def usable_orders(retail: Retail) -> dict[str, list[Order]]:
    """Each customer's orders as desk records, asked for by their owner.

    Left out: customers of the benchmark's test tasks, and customers with two payment methods of one kind
    (a call names a method by its kind).
    """
    skipped = benchmark_customers(retail)
    orders: dict[str, list[Order]] = {}
    for order_id in sorted(retail.orders):
        user_id = retail.orders[order_id]["user_id"]
        methods = _methods(retail.users[user_id])
        kinds = [method.method for method in methods]
        if user_id not in skipped and len(kinds) == len(set(kinds)):
            orders.setdefault(user_id, []).append(_order(retail, order_id, methods))
    return orders


def asked_by(order: Order, caller: Order) -> Order:
    """The same order when the owner of another order asks about it, with that caller's methods."""
    return replace(order, caller_id=caller.owner_id, methods=caller.methods)


def wishes(order: Order, request: str, reason: str, addresses: list[str]) -> Iterator[Call]:
    """The calls a customer could want for one request on this order, eligible or not.

    Args:
        order: the record.
        request: a tool that changes an order.
        reason: the cancellation's reason, for `cancel`.
        addresses: places to send an order to, for `modify_address`.
    """
    names = [item.name for item in order.items]
    if request == "cancel":
        yield call("cancel", reason=reason)
    elif request == "modify_address":
        yield from (call(request, address=place) for place in addresses if place != order.address)
    elif request == "modify_payment":
        others = [kind for kind in _kinds(order) if kind not in (order.paid_with, "gift card")]
        yield from (call(request, method=kind) for kind in others)
    elif len(names) == len(set(names)) <= MAX_NAMED_ITEMS:
        if request == "return":
            places = [kind for kind in _kinds(order) if kind in (order.paid_with, "gift card")]
            yield from (
                call(request, item=item, refund_to=kind) for item in names for kind in places
            )
        else:
            yield from (
                call(request, item=offer.item, new=offer.change, pay_with=kind)
                for offer in order.offers
                for kind in _kinds(order)
            )


def new_address(street_of: Order, place_of: Order, number: int) -> str:
    """An address that nobody in the shop has: one customer's street, another's town, another number."""
    street = street_of.address.rpartition(", ")[0].lstrip("0123456789 ")
    return f"{number} {street}, {place_of.address.rpartition(', ')[2]}"


def _kinds(order: Order) -> list[str]:
    return [method.method for method in order.methods]


def _cents(amount: float) -> int:
    return round(amount * 100)


def _methods(user: dict[str, Any]) -> tuple[Method, ...]:
    return tuple(
        Method(
            _SOURCES[method["source"]], _cents(method["balance"]) if "balance" in method else None
        )
        for _, method in sorted(user["payment_methods"].items())
    )


def _order(retail: Retail, order_id: str, methods: tuple[Method, ...]) -> Order:
    order = retail.orders[order_id]
    payment = order["payment_history"][0]
    place = order["address"]
    return Order(
        order_id=order_id,
        owner_id=order["user_id"],
        caller_id=order["user_id"],
        status=order["status"],
        address=f"{place['address1']}, {place['city']} {place['zip']}",
        paid_with=_SOURCES[payment["payment_method_id"].rpartition("_")[0]],
        total_cents=_cents(payment["amount"]),
        items=tuple(_item(item) for item in order["items"]),
        offers=tuple(offer for item in order["items"] for offer in _offers(retail, item)),
        methods=methods,
    )


def _item(item: dict[str, Any]) -> Item:
    options = tuple(f"{key}: {value}" for key, value in item["options"].items())
    return Item(item["item_id"], item["name"], _cents(item["price"]), options)


def _offers(retail: Retail, item: dict[str, Any]) -> Iterator[Offer]:
    """Variants that differ in one option and can be named in a few words."""
    for item_id, variant in sorted(retail.products[item["product_id"]]["variants"].items()):
        changes = [
            f"{key} {value}"
            for key, value in variant["options"].items()
            if item["options"].get(key) != value
        ]
        if len(changes) == 1 and len(changes[0]) <= MAX_CHANGE_CHARS:
            price = _cents(variant["price"])
            yield Offer(item["name"], changes[0], item_id, price, variant["available"])
