"""The record a desk acts on: one order, as far as a case needs it.

Money is in whole cents, so that sums and comparisons are exact. Everything is frozen: an action makes a
new order, and the one it was asked about stays as it was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, TypeVar

from ledger.errors import EvidenceError

STATUSES = ("pending", "processed", "delivered", "cancelled")
METHODS = ("credit card", "gift card", "paypal")

_T = TypeVar("_T", str, int, bool, list[Any], dict[str, Any])


@dataclass(frozen=True)
class Item:
    """One item of the order; `options` as `key: value` texts in the shop's order."""

    item_id: str
    name: str
    price_cents: int
    options: tuple[str, ...]


@dataclass(frozen=True)
class Offer:
    """Another variant of an item in the order that differs in one option; `change` is its `key value`."""

    item: str
    change: str
    item_id: str
    price_cents: int
    available: bool


@dataclass(frozen=True)
class Method:
    """A way of paying that the caller has on file; only gift cards have a balance."""

    method: str
    balance_cents: int | None


@dataclass(frozen=True)
class Terms:
    """What a shop that keeps dates knows beside the order's status.

    Days are ISO dates. `window_days` after `delivered_on` an item may still go back, that day included. `refunded` names
    items whose price was paid back before; `disputed` says that the payment is under dispute.
    """

    delivered_on: str
    today: str
    window_days: int
    refunded: tuple[str, ...] = ()
    disputed: bool = False

    @property
    def elapsed_days(self) -> int:
        """Days since the delivery."""
        return (date.fromisoformat(self.today) - date.fromisoformat(self.delivered_on)).days


@dataclass(frozen=True)
class Order:
    """One order's facts and what was done to it.

    `caller_id` is who asks, `owner_id` whose order it is. `note` holds what the last action left behind
    (the cancellation's reason, the items to come back and where the refund goes). `terms` is None in a shop without dates.
    """

    order_id: str
    owner_id: str
    caller_id: str
    status: str
    address: str
    paid_with: str
    total_cents: int
    items: tuple[Item, ...]
    offers: tuple[Offer, ...]
    methods: tuple[Method, ...]
    note: tuple[str, ...] = ()
    terms: Terms | None = None

    def as_json(self) -> dict[str, Any]:
        """The order as a JSON object: what `read_order` reads back to an equal order."""
        value = asdict(self)
        for name in ("items", "offers", "methods", "note"):
            value[name] = list(value[name])
        for item in value["items"]:
            item["options"] = list(item["options"])
        if self.terms is None:
            del value["terms"]
        else:
            value["terms"]["refunded"] = list(self.terms.refunded)
        return value

    def method(self, name: str) -> Method | None:
        """The caller's payment method of that name, if there is one on file."""
        return next((method for method in self.methods if method.method == name), None)

    def item(self, name: str) -> Item | None:
        """The order's item of that name, if there is exactly one."""
        found = [item for item in self.items if item.name == name]
        return found[0] if len(found) == 1 else None

    def offer(self, item: str, change: str) -> Offer | None:
        """The variant of that item with that change, if the shop has one in its catalogue."""
        found = (offer for offer in self.offers if (offer.item, offer.change) == (item, change))
        return next(found, None)


def read_order(value: Any) -> Order:
    """An order from its JSON object.

    Raises:
        EvidenceError: `CASE_BROKEN`, a field is missing, unknown or of another type.
    """
    dated = isinstance(value, dict) and "terms" in value
    fields = _object(
        value if dated or not isinstance(value, dict) else {**value, "terms": None}, Order, "order"
    )
    status = _field(fields, "status", str)
    if status.split(" (")[0] not in (*STATUSES, "return requested", "exchange requested"):
        raise EvidenceError("CASE_BROKEN", f"order status {status[:40]!r} is none of the shop's")
    return Order(
        order_id=_field(fields, "order_id", str),
        owner_id=_field(fields, "owner_id", str),
        caller_id=_field(fields, "caller_id", str),
        status=status,
        address=_field(fields, "address", str),
        paid_with=_field(fields, "paid_with", str),
        total_cents=_field(fields, "total_cents", int),
        items=tuple(_item(item) for item in _field(fields, "items", list)),
        offers=tuple(_offer(offer) for offer in _field(fields, "offers", list)),
        methods=tuple(_method(method) for method in _field(fields, "methods", list)),
        note=_texts(fields, "note"),
        terms=_terms(fields["terms"]) if dated else None,
    )


def _terms(value: Any) -> Terms:
    fields = _object(value, Terms, "terms")
    terms = Terms(
        delivered_on=_field(fields, "delivered_on", str),
        today=_field(fields, "today", str),
        window_days=_field(fields, "window_days", int),
        refunded=_texts(fields, "refunded"),
        disputed=_field(fields, "disputed", bool),
    )
    try:
        ordered = terms.elapsed_days >= 0
    except ValueError:
        ordered = False
    if not ordered:
        raise EvidenceError(
            "CASE_BROKEN", "the terms have no two days in their order", field="terms"
        )
    return terms


def _item(value: Any) -> Item:
    fields = _object(value, Item, "item")
    return Item(
        item_id=_field(fields, "item_id", str),
        name=_field(fields, "name", str),
        price_cents=_field(fields, "price_cents", int),
        options=_texts(fields, "options"),
    )


def _offer(value: Any) -> Offer:
    fields = _object(value, Offer, "offer")
    return Offer(
        item=_field(fields, "item", str),
        change=_field(fields, "change", str),
        item_id=_field(fields, "item_id", str),
        price_cents=_field(fields, "price_cents", int),
        available=_field(fields, "available", bool),
    )


def _method(value: Any) -> Method:
    fields = _object(value, Method, "method")
    balance = fields["balance_cents"]
    return Method(
        method=_field(fields, "method", str),
        balance_cents=None if balance is None else _field(fields, "balance_cents", int),
    )


def _object(value: Any, shape: type, what: str) -> dict[str, Any]:
    names = set(shape.__dataclass_fields__)  # type: ignore[attr-defined]
    if not isinstance(value, dict) or set(value) != names:
        raise EvidenceError("CASE_BROKEN", f"the {what} has not exactly the fields {sorted(names)}")
    return value


def _field(fields: dict[str, Any], name: str, kind: type[_T]) -> _T:
    value = fields[name]
    if type(value) is not kind:
        raise EvidenceError("CASE_BROKEN", f"{name} is not of type {kind.__name__}", field=name)
    return value


def _texts(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    values = _field(fields, name, list)
    if not all(type(value) is str for value in values):
        raise EvidenceError("CASE_BROKEN", f"{name} is not a list of strings", field=name)
    return tuple(values)
