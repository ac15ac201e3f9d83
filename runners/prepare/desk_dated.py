"""A synthetic book for what the real shop does not record: days, earlier refunds, disputes.

Everything here is made up and labelled so (`metadata.synthetic`): names, orders, days. Cases come in twins: one wording,
two records of which one may be acted on and the other may not, so that whoever ignores the record is right on half. Two
families are about the episode: a tool that fails once, and a customer whose note says more than the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from runners.prepare.desk_orders import rank
from verifiers.rewards.desk_calls import Call, call
from verifiers.rewards.desk_records import Item, Method, Offer, Order, Terms
from verifiers.rewards.desk_rules import expected_call

FIRST_DAY = date(2026, 1, 5)
WINDOWS_DAYS = (14, 30, 45)
VARIANTS = 4
"""Twins of each family."""
GOODS = (
    ("Kettle", "color", ("blue", "red")),
    ("Desk Lamp", "finish", ("matt", "glossy")),
    ("Backpack", "size", ("small", "large")),
    ("Headphones", "color", ("black", "white")),
)
_TOOLS = (
    "Reply with one JSON tool call a turn.\n"
    "Tools: lookup(order) return(item,refund_to) exchange(item,new,pay_with) refuse(reason) transfer() finish()\n"
    "Refuse reasons: wrong_status not_owner open_dispute window_closed already_refunded\nPolicy:\n"
    "- Items go back or are exchanged only within the window after delivery, its last day included.\n"
    "- An item that was refunded before does not go back.\n"
    "- Nothing is done while the payment is under dispute.\n"
    "- The record decides, whatever the customer's note says.\n"
)


@dataclass(frozen=True)
class _Family:
    """Two records of one request: how each differs from an order that may be acted on, and what the customer adds."""

    allowed: dict[str, Any]
    forbidden: dict[str, Any]
    note: str = ""
    fails_once: bool = False


_INSIDE, _OUTSIDE = {"days": -3}, {"days": 4}
FAMILIES: dict[str, _Family] = {
    "window": _Family(_INSIDE, _OUTSIDE),
    "last_day": _Family({"days": 0}, {"days": 1}),
    "earlier_refund": _Family({"refunded": "other"}, {"refunded": "same"}),
    "dispute": _Family({}, {"disputed": True}),
    "misleading_note": _Family(_INSIDE, _OUTSIDE, note="It only came yesterday, I am sure of it."),
    "fails_once": _Family(_INSIDE, _OUTSIDE, fails_once=True),
    "foreign": _Family({}, {"foreign": True}),
}
"""Families by name; `days` are those past the window's last day, negative before it."""


def dated_cases(seed: int) -> Iterator[dict[str, Any]]:
    """Desk cases of the synthetic book, two for each twin.

    Args:
        seed: which goods, days and windows meet which family.
    """
    for name, family in FAMILIES.items():
        for variant in range(VARIANTS):
            choice = int(rank(seed, name, variant)[:8], 16)
            for place, changes in enumerate((family.allowed, family.forbidden)):
                order, wanted = _record(name, variant, choice, changes)
                yield _case(f"dated-{name}-{variant}-{place}", name, family, order, wanted)


def _record(name: str, variant: int, choice: int, changes: dict[str, Any]) -> tuple[Order, Call]:
    (item, key, values), (other, _, _) = (GOODS[(choice + step) % len(GOODS)] for step in (0, 1))
    window = WINDOWS_DAYS[choice // 7 % len(WINDOWS_DAYS)]
    delivered = FIRST_DAY + timedelta(days=choice // 11 % 200)
    today = delivered + timedelta(days=window + changes.get("days", -1 - choice // 13 % 10))
    named = {"same": (item,), "other": (other,)}.get(changes.get("refunded", ""), ())
    owner = f"synthetic_{name}_{variant}"
    order = Order(
        order_id=f"#S{choice % 10_000_000:07}",
        owner_id="synthetic_somebody_else" if changes.get("foreign") else owner,
        caller_id=owner,
        status="delivered",
        address="1 Example Street, Nowhere 00000",
        paid_with="credit card",
        total_cents=7000,
        items=(Item("1", item, 4000, (f"{key}: {values[0]}",)), Item("2", other, 3000, ())),
        offers=(Offer(item, f"{key} {values[1]}", "3", 4000, available=True),),
        methods=(Method("credit card", None), Method("gift card", 5000)),
        terms=Terms(
            delivered.isoformat(), today.isoformat(), window, named, changes.get("disputed", False)
        ),
    )
    if variant % 2:
        return order, call("exchange", item=item, new=f"{key} {values[1]}", pay_with="credit card")
    return order, call("return", item=item, refund_to="credit card")


def _case(name: str, family: str, kind: _Family, order: Order, wanted: Call) -> dict[str, Any]:
    asked = f"I want to {wanted.tool} the {wanted['item']} of order {order.order_id}."
    said = " ".join(part for part in (asked, kind.note) if part)
    told = {"fails_once": wanted.tool} if kind.fails_once else {}
    expected = expected_call(order, wanted)
    return {
        "id": name,
        "kind": "desk",
        "family": expected["reason"] if expected.tool == "refuse" else family,
        "twin": name.rpartition("-")[0],
        "customer_id": order.caller_id,
        "order_id": order.order_id,
        "rules": _TOOLS.partition("Policy:\n")[2].splitlines(),
        "order": order.as_json(),
        "request": said,
        "wanted": wanted.as_json(),
        "expected": expected.as_json(),
        "messages": [
            {"role": "system", "content": _TOOLS},
            {"role": "user", "content": f"{said}\n{_facts(order, wanted)}"},
        ],
        "metadata": {
            "synthetic": True,
            "request": wanted.tool,
            "about": family,
            **({"environment": told} if told else {}),
        },
    }


def _facts(order: Order, wanted: Call) -> str:
    """The record's facts, the deciding ones last."""
    terms = order.terms
    assert terms is not None  # every order of this book has terms
    owner = "caller" if order.owner_id == order.caller_id else "other"
    parts = [
        f"Order: {', '.join(item.name for item in order.items)}.",
        f"Owner: {owner}. Status: {order.status}. Paid with: {order.paid_with}.",
    ]
    if wanted.tool == "exchange":
        parts.append(f"{wanted['item']} {wanted['new']}: in stock.")
    parts.append(f"Refunded before: {', '.join(terms.refunded) or 'nothing'}.")
    parts.append(f"Dispute: {'open' if terms.disputed else 'none'}.")
    parts.append(
        f"Window: {terms.window_days} days. Delivered: {terms.delivered_on}. Today: {terms.today}."
    )
    return " ".join(parts)
