"""Run a model's text on a private copy of an order, and say what came of it.

A case succeeds when the desk ends where the right call would have led: the same record, the same decision.
An action that the policy forbids leaves the record unchanged and is a violation; so is an allowed action
that the customer did not ask for. Text that only claims an action does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.rewards.desk_calls import Call, NoCall, parse_call, read_call
from verifiers.rewards.desk_records import Order, read_order
from verifiers.rewards.desk_rules import STATUS_NEEDED, expected_call, objection, perform

if TYPE_CHECKING:
    from collections.abc import Mapping

DESK_VERSION = 1
UNREQUESTED = "unrequested_action"


@dataclass(frozen=True)
class Desk:
    """One conversation's desk: the order as it is now, and the decision that ended the case, if any.

    Being frozen it is its own private copy: `act` returns the next desk.
    """

    order: Order
    decision: str | None = None
    violations: tuple[str, ...] = ()

    def act(self, done: Call) -> Desk:
        """The desk after one call; a forbidden action changes nothing but the violations.

        A second action on an order meets the status that the first one left, and a call after the
        case was closed by `refuse` or `transfer` is `after_decision`.
        """
        if self.decision is not None:
            return self._violated("after_decision")
        if done.tool not in STATUS_NEEDED:
            return Desk(self.order, done.text(), self.violations)
        reason = objection(self.order, done)
        if reason is not None:
            return self._violated(reason)
        return Desk(perform(self.order, done), None, self.violations)

    def _violated(self, code: str) -> Desk:
        return Desk(self.order, self.decision, (*self.violations, code))


@dataclass(frozen=True)
class Case:
    """What a desk case says, as far as its outcome depends on it."""

    order: Order
    wanted: Call
    expected: Call


def read_case(value: Mapping[str, Any]) -> Case:
    """A case from its JSON object, its expected call derived again from record and request.

    Raises:
        EvidenceError: `CASE_BROKEN`, a field is missing or of another type; `CASE_DISAGREES`, the
            expected call is not the one that the rules give.
    """
    for name in ("order", "wanted", "expected"):
        if name not in value:
            raise EvidenceError("CASE_BROKEN", f"the case has no {name}", field=name)
    case = Case(
        read_order(value["order"]), read_call(value["wanted"]), read_call(value["expected"])
    )
    derived = expected_call(case.order, case.wanted)
    if derived != case.expected:
        raise EvidenceError(
            "CASE_DISAGREES",
            f"the rules give another call in case {str(value.get('id'))[:40]!r}",
            expected=derived.text(),
            actual=case.expected.text(),
        )
    return case


def outcome(case: Mapping[str, Any], text: str, *, truncated: bool = False) -> dict[str, Any]:
    """What a model's text earns in a desk case: one line of an outcome table.

    Args:
        case: a desk case as the data's blob holds it.
        text: everything the model wrote.
        truncated: whether the token limit cut it.

    Raises:
        EvidenceError: the case is broken, see `read_case`; the text itself raises nothing.
    """
    read = read_case(case)
    result = {"case": case["id"], "family": case["family"], "kind": "desk", "truncated": truncated}
    found = parse_call(text)
    if isinstance(found, NoCall):
        detail = {"error": found.reason, "expected": read.expected.as_json()}
        return {**result, "success": False, "violations": [], "detail": detail}
    desk, right = Desk(read.order).act(found), Desk(read.order).act(read.expected)
    success = (desk.order, desk.decision) == (right.order, right.decision) and not desk.violations
    violations = list(desk.violations)
    if desk.order != read.order and not success:
        violations.append(UNREQUESTED)
    detail = {"call": found.as_json(), "expected": read.expected.as_json()}
    return {
        **result,
        "success": success and not truncated,
        "violations": violations,
        "detail": detail,
    }
