"""How well a judge does on labelled replies: derived from its raw output, held against the policy's floor.

A case is a JSON object `{"id", "messages", "facts", "reference", "reply", "label"}`. Both orders are asked, as of any arm.
A case is right where both orders together say what its label says; an undecided one is not right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledger.canonical import parse_real, real
from ledger.errors import EvidenceError
from ledger.floors import MINIMUM_LABELLED
from verifiers.judgement.judging import Verdict, agreed, answers_by_position, flipped, verdicts
from verifiers.judgement.statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verifiers.judgement.rubric import Rubric

ACCURACY, POSITION, FEW = "accuracy", "position", "cases"
"""Why a judge is not qualified: below the floor, contradictions that follow the order, too few cases."""

_FIELDS: Final[Mapping[str, type]] = {
    "id": str,
    "messages": list,
    "facts": list,
    "reference": str,
    "reply": str,
    "label": bool,
}


def labelled(rows: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    """The labelled cases by id, in their order.

    Raises:
        EvidenceError: `CASE_BROKEN`, a row is no labelled case or an id stands twice.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows):
        for name, kind in _FIELDS.items():
            if not isinstance(row, dict) or not isinstance(row.get(name), kind):
                raise EvidenceError(
                    "CASE_BROKEN", f"case {number} has no proper {name}", field=name
                )
        if not all(isinstance(fact, str) for fact in row["facts"]):
            raise EvidenceError("CASE_BROKEN", f"case {number} has a fact that is no text")
        if not all(_is_turn(turn) for turn in row["messages"]):
            raise EvidenceError("CASE_BROKEN", f"case {number} has a turn without role or content")
        if row["id"] in found or not row["reply"].strip():
            raise EvidenceError("CASE_BROKEN", f"case {number} stands twice or has no reply")
        found[row["id"]] = row
    return found


def items(cases: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a judge is shown of each case: everything but the label."""
    return [
        {
            "item": name,
            "messages": [
                {"role": turn["role"], "content": turn["content"]} for turn in case["messages"]
            ],
            "facts": case["facts"],
            "reference": case["reference"],
            "reply": case["reply"],
        }
        for name, case in cases.items()
    ]


def qualification(
    rows: Sequence[Any],
    passes: Mapping[str, Mapping[str, Any]],
    rubric: Rubric,
    floor: str,
) -> dict[str, Any]:
    """The figures of `judge.qualified`.

    Args:
        rows: the labelled cases.
        passes: the raw pass of each order, see `verifiers.judgement.judging`.
        rubric: what was asked, and how.
        floor: the accuracy that the lower end of the interval must reach, a fraction of 1.

    Raises:
        EvidenceError: `CASE_BROKEN`, `JUDGE_PASS_MIXED`, `JUDGE_LINE_UNPLANNED`, `NOT_A_REAL`.
    """
    cases = labelled(rows)
    replies = {name: str(case["reply"]) for name, case in cases.items()}
    forward, backward = (verdicts(rubric, passes[order], replies) for order in passes)
    said = {name: agreed(forward[name], backward[name]) for name in cases}
    right = sum(said[name] is case["label"] for name, case in cases.items())
    flips = [flipped(forward[name], backward[name]) for name in cases]
    interval = wilson(right, len(cases))
    reasons = why_not(real(interval.lower), floor, len(cases))
    if _by_position(forward, backward):
        reasons.append(POSITION)
    return {
        "right": right,
        "total": len(cases),
        "undecided": sum(answer is None for answer in said.values()),
        "flips": [flips.count(True), flips.count(True) + flips.count(False)],
        "lower": real(interval.lower),
        "upper": real(interval.upper),
        "floor": floor,
        "reasons": reasons,
        "qualified": not reasons,
    }


def why_not(lower: str, floor: str, total: int) -> list[str]:
    """What of the figures alone keeps a judge from being qualified."""
    found = []
    if parse_real(lower) < parse_real(floor):
        found.append(ACCURACY)
    if total < MINIMUM_LABELLED:
        found.append(FEW)
    return found


def _by_position(forward: Mapping[str, Verdict], backward: Mapping[str, Verdict]) -> bool:
    """Whether the contradictions go one way: yes in one order and no in the other, and not as often vice versa."""
    pairs = [(forward[name].satisfied, backward[name].satisfied) for name in forward]
    return answers_by_position(pairs.count((True, False)), pairs.count((False, True)))


def _is_turn(turn: Any) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("role"), str)
        and isinstance(turn.get("content"), str)
    )
