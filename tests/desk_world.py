"""A small order, and the rows and cases that tests make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from verifiers.rewards.desk_calls import Call, call
from verifiers.rewards.desk_records import Item, Method, Offer, Order
from verifiers.rewards.desk_rules import expected_call

ORDER = Order(
    order_id="#W1",
    owner_id="ann_1",
    caller_id="ann_1",
    status="pending",
    address="1 Elm Street, Denver 80279",
    paid_with="credit card",
    total_cents=6000,
    items=(
        Item("11", "Desk Lamp", 4000, ("finish: matt", "color: white")),
        Item("21", "Pet Bed", 2000, ("size: small",)),
    ),
    offers=(
        Offer("Desk Lamp", "color black", "12", 4500, available=True),
        Offer("Desk Lamp", "color red", "13", 4100, available=False),
        Offer("Pet Bed", "size large", "22", 1500, available=True),
    ),
    methods=(Method("credit card", None), Method("gift card", 300), Method("paypal", None)),
)

CANCEL = call("cancel", reason="no longer needed")
SWAP = call("exchange", item="Desk Lamp", new="color black", pay_with="paypal")
GIVE_BACK = call("return", item="Pet Bed", refund_to="credit card")


def order(**changes: Any) -> Order:
    """The small order with some fields changed."""
    return replace(ORDER, **changes)


def refusal(reason: str) -> Call:
    """A refusal for that reason."""
    return call("refuse", reason=reason)


def desk_case(
    name: str = "case-1", of: Order = ORDER, wanted: Call = CANCEL, **changes: Any
) -> dict[str, Any]:
    """A whole desk case about an order."""
    return {
        "id": name,
        "kind": "desk",
        "family": wanted.tool,
        "twin": None,
        "customer_id": of.caller_id,
        "order_id": of.order_id,
        "rules": ["a rule"],
        "order": of.as_json(),
        "request": "Please.",
        "wanted": wanted.as_json(),
        "expected": expected_call(of, wanted).as_json(),
        "messages": [{"role": "user", "content": "Please."}],
        **changes,
    }


def chat_row(
    name: str = "row-1", question: str = "Hello there", answer: str = "Good day", **more: Any
) -> dict[str, Any]:
    """A chat row of one question and one answer."""
    turns = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
    ]
    return {"id": name, "messages": turns, **more}


def lines(*rows: dict[str, Any]) -> bytes:
    """Rows as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
