"""A few questions in prose about real orders, with the right answer: material for a judge.

The right answer depends on the record (its status, how it was paid), so a fluent reply that ignores the
record is wrong. Each question also gives one training row, so that answering in prose is not unlearned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.prepare.desk_orders import rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verifiers.rewards.desk_records import Order

INSTRUCTION = "Answer the customer in one short sentence. Policy:\n"


@dataclass(frozen=True)
class _Topic:
    """One kind of question: the policy's line, ten wordings, and the two answers."""

    policy: str
    questions: tuple[str, ...]
    when: str  # "gift card" looks at how the order was paid, a status at the order's status
    yes: str
    no: str


TOPICS: dict[str, _Topic] = {
    "refund_time": _Topic(
        "the total will be refunded via the original payment method immediately if it is gift card, "
        "otherwise in 5 to 7 business days",
        (
            "When do I see my money again if I cancel?",
            "How long does the refund of a cancelled order take?",
            "If I call the order off, what day am I repaid?",
            "After a cancellation, is the refund quick?",
            "Tell me the waiting time for my refund, please.",
            "Suppose I cancel now. How soon is the money back?",
            "I'm thinking of cancelling. When would you reimburse me?",
            "What is the delay before a cancelled purchase is paid back?",
            "Will the refund reach me at once if I stop the order?",
            "Could you say how fast cancelled orders are refunded?",
        ),
        "gift card",
        "You paid with a gift card, so it is refunded immediately.",
        "You paid with {paid}, so it is refunded in 5 to 7 business days.",
    ),
    "may_modify": _Topic(
        "An order can only be modified if its status is 'pending'",
        (
            "Can I still change something in my order?",
            "Is it too late to edit what I ordered?",
            "Would you let me modify this purchase?",
            "I might want other options. Are changes possible?",
            "May the address on this order still be altered?",
            "Do I have time to adjust my order?",
            "Are modifications to my purchase allowed now?",
            "Is my order open for corrections?",
            "Could the items be changed at this point?",
            "Am I able to revise the order today?",
        ),
        "pending",
        "Yes, your order is still pending, so it can be modified.",
        "No, your order is {status}, and only pending orders can be modified.",
    ),
    "may_return": _Topic(
        "An order can only be returned if its status is 'delivered'",
        (
            "Can I send these things back?",
            "Is a return possible for my order?",
            "Do you accept this purchase back?",
            "May I give the goods back now?",
            "I don't like it. Would a return work today?",
            "Am I entitled to return what I bought?",
            "Could my order go back to you already?",
            "Are returns open for this order?",
            "Will you take the items of my order again?",
            "Is sending my purchase back an option at present?",
        ),
        "delivered",
        "Yes, your order was delivered, so it can be returned.",
        "No, your order is {status}, and only delivered orders can be returned.",
    ),
}


def dialogue_decisions(
    orders: list[Order], pool: int, seed: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """One question of each topic about an order of the pool: (training row, dialogue case)."""
    for name, topic in TOPICS.items():
        wanted = int(rank(seed, pool, name)[:2], 16) % 2 == 0
        fitting = [order for order in orders if _holds(topic, order) == wanted]
        order = min(fitting, key=lambda order: rank(seed, pool, name, order.order_id))
        yield _row(name, topic, order, pool), _case(name, topic, order, pool)


def _holds(topic: _Topic, order: Order) -> bool:
    return topic.when in (order.paid_with, order.status)


def _answers(topic: _Topic, order: Order) -> tuple[str, str]:
    said = [
        text.format(paid=order.paid_with, status=order.status) for text in (topic.yes, topic.no)
    ]
    right, wrong = said if _holds(topic, order) else said[::-1]
    return right, wrong


def _messages(topic: _Topic, order: Order, pool: int) -> list[dict[str, str]]:
    record = f"Order: {order.items[0].name}. Paid with: {order.paid_with}. Status: {order.status}."
    return [
        {
            "role": "system",
            "content": f"{INSTRUCTION}- {topic.policy[0].upper()}{topic.policy[1:]}.",
        },
        {"role": "user", "content": f"{topic.questions[pool]}\n{record}"},
    ]


def _common(name: str, order: Order, pool: int) -> dict[str, Any]:
    return {
        "customer_id": order.caller_id,
        "order_id": order.order_id,
        "family": name,
        "metadata": {"pool": pool, "request": name, "twin": None, "wording_id": f"{name}-{pool}"},
    }


def _row(name: str, topic: _Topic, order: Order, pool: int) -> dict[str, Any]:
    answer = {"role": "assistant", "content": _answers(topic, order)[0]}
    return {
        "id": f"sft-{pool}-{name}",
        **_common(name, order, pool),
        "messages": [*_messages(topic, order, pool), answer],
    }


def _case(name: str, topic: _Topic, order: Order, pool: int) -> dict[str, Any]:
    right, wrong = _answers(topic, order)
    return {
        "id": f"dialogue-{pool}-{name}",
        "kind": "dialogue",
        **_common(name, order, pool),
        "policy_facts": [topic.policy, f"status: {order.status}", f"paid with: {order.paid_with}"],
        "messages": _messages(topic, order, pool),
        "reference": right,
        "must_avoid": [wrong],
    }
