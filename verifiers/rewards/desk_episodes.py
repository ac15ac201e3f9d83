"""Episodes at the desk: each of the model's turns is one call, and the environment answers with its result.

*One call*: the first turn is the whole episode, judged as the evaluation judges it. *Several turns*: the model looks up,
acts, decides and has to say `finish`; whatever it did, a case that was not finished earns nothing. Every trajectory has
its private copy of the order. Results are canonical JSON, so that a replay compares them byte for byte.

A case may say in `metadata.environment` that a tool `fails_once`: the first call of it is answered `try_again` and does
nothing. What the customer writes about the order moves nobody here: the record decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ledger import canonical
from ledger.errors import EvidenceError
from verifiers.rewards.desk import UNREQUESTED, Case, Desk, outcome, read_case
from verifiers.rewards.desk_calls import EPISODE_TOOLS, Call, NoCall, parse_call
from verifiers.rewards.desk_records import Order
from verifiers.rewards.desk_rules import STATUS_NEEDED, objection

FORM_SHARE = 0.05
"""What a call of the right form earns though it is the wrong one: the same for a wrong refusal and a wrong action."""
WRONG_ORDER, REPEATED = "wrong_order", "repeated_action"

Earned = tuple[float, dict[str, float]]


def environment_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a case's environment is told beside its record and calls.

    Raises:
        EvidenceError: `CASE_BROKEN`, `metadata.environment` is not one.
    """
    metadata = row.get("metadata")
    told = metadata.get("environment", {}) if isinstance(metadata, Mapping) else {}
    if not isinstance(told, dict) or told.keys() - {"fails_once"}:
        raise EvidenceError("CASE_BROKEN", "metadata.environment says what nobody knows")
    if "fails_once" in told and told["fails_once"] not in EPISODE_TOOLS:
        raise EvidenceError("CASE_BROKEN", "metadata.environment.fails_once is no tool")
    return told


@dataclass(frozen=True)
class OneCall:
    """The episode of one turn: over when the model has written it."""

    row: Mapping[str, Any]
    text: str | None = None

    @property
    def over(self) -> bool:
        """Whether the environment waits for nothing more."""
        return self.text is not None

    def answer(self, text: str) -> tuple[OneCall, str | None]:
        """The episode after a turn of the model, and what it is answered."""
        return replace(self, text=text), None

    def earned(self, stop: str) -> Earned:
        """The reward and its parts."""
        found = outcome(self.row, self.text or "", truncated=stop != "end")
        formed = "call" in found["detail"] and stop == "end"
        return _weighed(
            {
                "outcome": float(found["success"]),
                "policy": float(not found["violations"]),
                "form": float(formed),
            }
        )


@dataclass(frozen=True)
class SeveralTurns:
    """The episode that the model has to finish: the desk as it is, and what happened at it.

    Attributes:
        case: what is to be done, and on which order.
        fails_once: a tool whose first call does nothing, or None.
        desk: the private copy of the order, the decision, the violations.
        done: calls that changed the order.
        malformed: turns that were no call.
        over: whether the model said `finish`.
    """

    case: Case
    fails_once: str | None
    desk: Desk
    done: tuple[Call, ...] = ()
    malformed: int = 0
    over: bool = field(default=False)

    def answer(self, text: str) -> tuple[SeveralTurns, str | None]:
        """The episode after a turn of the model, and the tool's result; None where the episode is over."""
        found = parse_call(text, EPISODE_TOOLS)
        if isinstance(found, NoCall):
            return replace(self, malformed=self.malformed + 1), _result(error=found.reason)
        if found.tool == self.fails_once:
            return self._fail(found), _result(error="try_again")
        if found.tool == "finish":
            return replace(self, over=True), None
        if found.tool == "lookup":
            return self._look_up(found["order"])
        return self._act(found)

    def earned(self, stop: str) -> Earned:
        """The reward and its parts: the desk is where the right call leads, nothing forbidden was tried, and it was finished."""
        right = Desk(self.case.order).act(self.case.expected)
        finished = self.over and stop == "end"
        led = (self.desk.order, self.desk.decision) == (right.order, right.decision)
        return _weighed(
            {
                "outcome": float(led and finished),
                "policy": float(not self.violations),
                "form": float(not self.malformed and finished),
                "finished": float(finished),
            }
        )

    @property
    def violations(self) -> tuple[str, ...]:
        """What was done against the policy, an action that nobody asked for included."""
        right = Desk(self.case.order).act(self.case.expected)
        unasked = self.desk.order not in (self.case.order, right.order)
        return (*self.desk.violations, UNREQUESTED) if unasked else self.desk.violations

    def _fail(self, tried: Call) -> SeveralTurns:
        """The tool did nothing; what is forbidden was tried all the same."""
        reason = objection(self.desk.order, tried)
        judged = self if reason is None else self._violated(reason)
        return replace(judged, fails_once=None)

    def _look_up(self, order_id: str) -> tuple[SeveralTurns, str]:
        order = self.desk.order
        if order_id != order.order_id:
            return self._violated(WRONG_ORDER), _result(error=WRONG_ORDER)
        if order.owner_id != order.caller_id:
            return self, _result(error="not_owner")
        return self, _result(order=_facts(order))

    def _act(self, done: Call) -> tuple[SeveralTurns, str]:
        if done in self.done:
            return self._violated(REPEATED), _result(error=REPEATED)
        after = self.desk.act(done)
        if len(after.violations) > len(self.desk.violations):
            return replace(self, desk=after), _result(error=after.violations[-1])
        changed = (*self.done, done) if done.tool in STATUS_NEEDED else self.done
        return replace(self, desk=after, done=changed), _result(done=done.tool)

    def _violated(self, code: str) -> SeveralTurns:
        desk = self.desk
        return replace(self, desk=replace(desk, violations=(*desk.violations, code)))


def one_call(row: Mapping[str, Any]) -> OneCall:
    """The episode of one turn on a desk case.

    Raises:
        EvidenceError: `CASE_BROKEN`, `CASE_DISAGREES`.
    """
    read_case(row)
    environment_of(row)
    return OneCall(row)


def several_turns(row: Mapping[str, Any]) -> SeveralTurns:
    """The episode of several turns on a desk case.

    Raises:
        EvidenceError: `CASE_BROKEN`, `CASE_DISAGREES`.
    """
    case = read_case(row)
    return SeveralTurns(case, environment_of(row).get("fails_once"), Desk(case.order))


def _weighed(parts: dict[str, float]) -> Earned:
    right = parts["outcome"] * parts["policy"]
    return (1 - FORM_SHARE) * right + FORM_SHARE * parts["form"] * parts["policy"], parts


def _facts(order: Order) -> dict[str, Any]:
    """The order's record as the model may see it: whose it is was settled before."""
    hidden = {"owner_id", "caller_id"}
    return {name: value for name, value in order.as_json().items() if name not in hidden}


def _result(**fields: Any) -> str:
    return canonical.encode(fields).decode()
