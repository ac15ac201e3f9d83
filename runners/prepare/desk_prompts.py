"""The one prompt format of the desk: tools, a worked example and the policy's lines, then request and record.

The deciding facts of the record stand last. Training rows and evaluation cases of both arms use the same
text, so that a comparison is about what was learned and never about what was shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import EvidenceError
from verifiers.rewards.desk_calls import Call, call
from verifiers.rewards.desk_rules import price_difference_cents

if TYPE_CHECKING:
    from verifiers.rewards.desk_records import Order

TOOLS_TEXT = (
    "Reply with one JSON tool call.\n"
    "Tools: cancel(reason) modify_address(address) modify_payment(method) "
    "modify_items(item,new,pay_with) return(item,refund_to) exchange(item,new,pay_with) "
    "refuse(reason) transfer()\n"
    "Refuse reasons: wrong_status not_owner unavailable low_balance\n"
    "Example: I bought it by mistake, cancel. Owner: caller. Status: pending.\n"
    + call("cancel", reason="ordered by mistake").text()
    + "\nPolicy:\n"
)

_OWNER = "deny any requests for tasks related to any other user"
_MODIFY = "An order can only be modified if its status is 'pending'"
_BALANCE = (
    "If the user provides a gift card, it must have enough balance to cover the price difference"
)

_TRANSFER = (
    "You should transfer the user to a human agent if and only if the request cannot be handled "
    "within the scope of your actions"
)

POLICY_LINES: dict[str, tuple[str, ...]] = {
    "cancel": ("An order can only be cancelled if its status is 'pending'", _OWNER),
    "modify_address": (_MODIFY, _OWNER),
    "modify_payment": (
        "The user can only choose a single payment method different from the original payment method",
        _MODIFY,
        _OWNER,
    ),
    "modify_items": (
        "each item can be modified to an available new item of the same product",
        _MODIFY,
        _OWNER,
    ),
    "return": (
        "The refund must either go to the original payment method, or an existing gift card",
        "An order can only be returned if its status is 'delivered'",
        _OWNER,
    ),
    "exchange": (
        "each item can be exchanged to an available new item of the same product",
        "An order can only be exchanged if its status is 'delivered'",
        _OWNER,
    ),
    "transfer": (_TRANSFER, _OWNER),
}


def policy_lines(wanted: Call) -> list[str]:
    """The policy's lines that decide a request, word for word."""
    lines = list(POLICY_LINES[wanted.tool])
    return [_BALANCE, *lines] if _by_gift_card(wanted) else lines


def check_policy(policy: str) -> None:
    """Make sure that every line we quote stands in the policy.

    Raises:
        EvidenceError: `SOURCE_CHANGED`, a quoted line is not in the text.
    """
    quoted = {line for lines in POLICY_LINES.values() for line in lines} | {_BALANCE}
    absent = sorted(line for line in quoted if line not in policy)
    if absent:
        raise EvidenceError("SOURCE_CHANGED", f"policy.md does not say {absent[0]!r}")


def facts(order: Order, wanted: Call) -> str:
    """The record's facts that a request needs, the deciding ones last."""
    owner = "caller" if order.owner_id == order.caller_id else "other"
    parts = [_contents(order, wanted), *_details(order, wanted), f"Owner: {owner}."]
    return " ".join([*parts, f"Status: {order.status}."])


def prompt(order: Order, wanted: Call, request: str) -> list[dict[str, str]]:
    """The chat messages that ask for one call."""
    rules = "\n".join(f"- {line[0].upper()}{line[1:]}." for line in policy_lines(wanted))
    return [
        {"role": "system", "content": TOOLS_TEXT + rules},
        {"role": "user", "content": f"{request}\n{facts(order, wanted)}"},
    ]


def _by_gift_card(wanted: Call) -> bool:
    return dict(wanted.arguments).get("pay_with") == "gift card"


def _contents(order: Order, wanted: Call) -> str:
    if "item" in dict(wanted.arguments):
        return f"Order: {', '.join(item.name for item in order.items)}."
    return f"Order: {len(order.items)} item{'s' if len(order.items) > 1 else ''}."


def _details(order: Order, wanted: Call) -> list[str]:
    if wanted.tool in ("return", "modify_payment"):
        return [f"Paid with: {order.paid_with}."]
    if wanted.tool not in ("exchange", "modify_items"):
        return []
    offer = order.offer(wanted["item"], wanted["new"])
    stock = "in stock" if offer is not None and offer.available else "out of stock"
    details = [f"{wanted['item']} {wanted['new']}: {stock}."]
    method = order.method("gift card")
    if _by_gift_card(wanted) and method is not None and method.balance_cents is not None:
        difference = price_difference_cents(order, wanted)
        details.append(
            f"Difference: {_money(difference)}. Gift card: {_money(method.balance_cents)}."
        )
    return details


def _money(cents: int) -> str:
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    return (
        f"{sign}{cents // 100}" if cents % 100 == 0 else f"{sign}{cents // 100}.{cents % 100:02d}"
    )
