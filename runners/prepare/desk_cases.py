"""Build the desk data from the retail domain: training rows, evaluation cases, a few dialogues.

Customers are dealt into ten pools with wordings of their own. Within a pool, cases come in *twins*: one
wording asked about two real orders, of which one may be acted on and the other may not. So whoever
ignores the record is right on about half. Everything follows from the files and one seed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from runners.prepare.desk_dialogues import dialogue_decisions
from runners.prepare.desk_orders import asked_by, new_address, rank, usable_orders, wishes
from runners.prepare.desk_prompts import check_policy, policy_lines, prompt
from runners.prepare.desk_wordings import POOLS, wordings
from runners.prepare.tau2 import read_retail
from verifiers.rewards.desk_calls import Call, call
from verifiers.rewards.desk_records import Order
from verifiers.rewards.desk_rules import STATUS_NEEDED, expected_call, objection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Twin pairs in each pool: (request, why its second order is refused) -> pairs.
PAIRS: dict[tuple[str, str], int] = {
    ("cancel", "wrong_status"): 6,
    ("cancel", "not_owner"): 2,
    ("modify_address", "wrong_status"): 4,
    ("modify_address", "not_owner"): 1,
    ("modify_payment", "wrong_status"): 4,
    ("modify_payment", "not_owner"): 1,
    ("modify_items", "wrong_status"): 3,
    ("modify_items", "not_owner"): 1,
    ("modify_items", "unavailable"): 1,
    ("modify_items", "low_balance"): 1,
    ("return", "wrong_status"): 6,
    ("return", "not_owner"): 2,
    ("exchange", "wrong_status"): 3,
    ("exchange", "not_owner"): 1,
    ("exchange", "unavailable"): 1,
    ("exchange", "low_balance"): 1,
}
TRANSFERS = 4
FAMILY_OF_REFUSAL = {"not_owner": "foreign_order"}
GROUP_FIELDS = ("customer_id", "order_id", "metadata.wording_id")


@dataclass(frozen=True)
class Decision:
    """One request about one order: what the customer wants and how it was said."""

    order: Order
    wanted: Call
    request: str
    wording_id: str
    pool: int
    twin: str | None


@dataclass(frozen=True)
class DeskData:
    """Chat rows for SFT, desk cases and dialogue cases, not yet split.

    Each carries `customer_id`, `order_id` and `metadata.wording_id`; splitting by `GROUP_FIELDS` keeps
    a pool's customers, orders and wordings together.
    """

    rows: list[dict[str, Any]]
    cases: list[dict[str, Any]]
    dialogues: list[dict[str, Any]]

    def jsonl(self) -> bytes:
        """All of it as one JSON-lines file, rows first; what `data ingest` reads."""
        return b"".join(
            orjson.dumps(row, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
            for row in (*self.rows, *self.cases, *self.dialogues)
        )


def build(source_dir: Path, seed: int) -> DeskData:
    """The desk data from the retail domain's files.

    Args:
        source_dir: the folder with `db.json`, `policy.md`, `tasks.json` and `split_tasks.json`.
        seed: which customers form a pool and which orders meet which request.

    Raises:
        EvidenceError: `SOURCE_CHANGED`, the files are not what the builder knows.
        OSError: a file cannot be read.
    """
    retail = read_retail(source_dir)
    check_policy(retail.policy)
    by_customer = usable_orders(retail)
    customers = sorted(by_customer, key=lambda customer: rank(seed, "pool", customer))
    data = DeskData([], [], [])
    for pool in range(POOLS):
        orders = [order for customer in customers[pool::POOLS] for order in by_customer[customer]]
        for number, decision in enumerate(_PoolBuilder(orders, pool, seed).decisions()):
            data.rows.append(_chat_row(decision, number))
            data.cases.append(_desk_case(decision, number))
        for row, case in dialogue_decisions(orders, pool, seed):
            data.rows.append(row)
            data.dialogues.append(case)
    return data


@dataclass
class _PoolBuilder:
    """Choose orders for one pool's requests, the least used first."""

    orders: list[Order]
    pool: int
    seed: int
    used: Counter[str] = field(default_factory=Counter)

    def decisions(self) -> Iterator[Decision]:
        for (request, cause), pairs in PAIRS.items():
            for pair in range(pairs):
                yield from self._twins(request, cause, pair)
        for number in range(TRANSFERS):
            yield self._transfer(number)

    def _twins(self, request: str, cause: str, pair: int) -> Iterator[Decision]:
        twin = f"{request}-{cause}-{self.pool}-{pair}"
        choice = wordings(request, self.pool)
        wording_id, template, reason = choice[(pair + len(cause)) % len(choice)]
        found: list[tuple[Order, Call]] = []
        for refused in (False, True):
            avoid = found[0][0].order_id if found else ""
            found += self._find(request, cause, avoid, refused=refused, reason=reason, salt=twin)
        # a pool may hold no order that fits (few gift cards are short); half a pair is no twin
        for order, wanted in found if len(found) == 2 else []:
            self.used[order.order_id] += 1
            said = _fill(template, wanted)
            yield Decision(order, wanted, said, wording_id, self.pool, twin)

    def _find(
        self, request: str, cause: str, avoid: str, *, refused: bool, reason: str, salt: str
    ) -> list[tuple[Order, Call]]:
        """The least used order that fits, with a call that its customer wants; nothing if none fits."""
        target = cause if refused else None
        for own in self._by_use(salt):
            if own.order_id == avoid:
                continue
            order = self._foreign(own, salt) if target == "not_owner" else own
            places = self._addresses(own, salt) if request == "modify_address" else []
            options = wishes(order, request, reason, places)
            for wanted in sorted(options, key=lambda wish: self._rank(salt, own, wish.text())):
                if cause == "low_balance" and wanted["pay_with"] != "gift card":
                    continue
                if objection(order, wanted) == target and _alone(order, wanted, target):
                    return [(order, wanted)]
        return []

    def _by_use(self, salt: object) -> list[Order]:
        return sorted(
            self.orders, key=lambda order: (self.used[order.order_id], self._rank(salt, order))
        )

    def _transfer(self, number: int) -> Decision:
        choice = wordings("transfer", self.pool)
        wording_id, template, _ = choice[number % len(choice)]
        order = self._by_use(number)[0]
        self.used[order.order_id] += 1
        said = template.replace("{item}", order.items[0].name)
        return Decision(order, call("transfer"), said, wording_id, self.pool, None)

    def _foreign(self, order: Order, salt: str) -> Order:
        others = [other for other in self.orders if other.owner_id != order.owner_id]
        return asked_by(order, min(others, key=lambda other: self._rank(salt, order, other)))

    def _addresses(self, order: Order, salt: str) -> list[str]:
        by_rank = sorted(self.orders, key=lambda other: self._rank(salt, order, other))
        number = 11 + int(self._rank(salt, order)[:6], 16) % 980
        return [new_address(by_rank[0], by_rank[1], number)]

    def _rank(self, salt: object, order: Order, other: object = "") -> str:
        name = other.order_id if isinstance(other, Order) else other
        return rank(self.seed, self.pool, salt, order.order_id, name)


def _alone(order: Order, wanted: Call, cause: str | None) -> bool:
    """Whether an order of the caller's own, with the right status, would leave nothing to object to."""
    if cause not in ("not_owner", "wrong_status"):
        return True
    ready = replace(order, caller_id=order.owner_id, status=STATUS_NEEDED[wanted.tool])
    return objection(ready, wanted) is None


def _fill(template: str, wanted: Call) -> str:
    words = dict(wanted.arguments)
    return template.format(
        item=words.get("item"),
        new=words.get("new"),
        pay=words.get("pay_with"),
        refund=words.get("refund_to"),
        address=words.get("address"),
        method=words.get("method"),
    )


def _family(decision: Decision) -> str:
    reason = objection(decision.order, decision.wanted)
    return decision.wanted.tool if reason is None else FAMILY_OF_REFUSAL.get(reason, reason)


def _common(decision: Decision) -> dict[str, Any]:
    return {
        "customer_id": decision.order.caller_id,
        "order_id": decision.order.order_id,
        "family": _family(decision),
        "metadata": {
            "pool": decision.pool,
            "request": decision.wanted.tool,
            "twin": decision.twin,
            "wording_id": decision.wording_id,
        },
    }


def _chat_row(decision: Decision, number: int) -> dict[str, Any]:
    answer = expected_call(decision.order, decision.wanted).text()
    asked = prompt(decision.order, decision.wanted, decision.request)
    return {
        "id": f"sft-{decision.pool}-{number:03d}",
        **_common(decision),
        "messages": [*asked, {"role": "assistant", "content": answer}],
    }


def _desk_case(decision: Decision, number: int) -> dict[str, Any]:
    return {
        "id": f"desk-{decision.pool}-{number:03d}",
        "kind": "desk",
        **_common(decision),
        "twin": decision.twin,
        "rules": policy_lines(decision.wanted),
        "order": decision.order.as_json(),
        "request": decision.request,
        "wanted": decision.wanted.as_json(),
        "expected": expected_call(decision.order, decision.wanted).as_json(),
        "messages": prompt(decision.order, decision.wanted, decision.request),
    }
