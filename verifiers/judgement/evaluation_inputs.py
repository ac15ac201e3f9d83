"""The rows an evaluation starts from, checked before anything is counted: cases, transcripts, replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.errors import EvidenceError

Row = Mapping[str, Any]

_CASE_FIELDS: Mapping[str, Mapping[str, type]] = {
    "desk": {"id": str, "family": str, "order": dict, "expected": dict},
    "dialogue": {
        "id": str,
        "family": str,
        "policy_facts": list,
        "messages": list,
        "reference": str,
        "must_avoid": list,
    },
}
_TRANSCRIPT_FIELDS: Mapping[str, type] = {
    "case": str,
    "prompt_digest": str,
    "text": str,
    "truncated": bool,
}


def planned_cases(cases: Sequence[Row]) -> dict[str, Row]:
    """The planned cases by id, in their order.

    Raises:
        EvidenceError: `CASE_BROKEN`, a row is no case or an id stands twice.
    """
    planned: dict[str, Row] = {}
    for number, case in enumerate(cases):
        _check_case(number, case)
        if case["id"] in planned:
            raise EvidenceError("CASE_BROKEN", f"case {case['id'][:80]} stands twice", field="id")
        planned[case["id"]] = case
    return planned


def _check_case(number: int, case: Any) -> None:
    kind = case.get("kind") if isinstance(case, dict) else None
    if not isinstance(kind, str) or kind not in _CASE_FIELDS:
        raise _case(number, "is neither desk nor dialogue", "kind")
    for name, wanted in _CASE_FIELDS[kind].items():
        if not isinstance(case.get(name), wanted):
            raise _case(number, f"has no proper {name}", name)
    if kind == "dialogue":
        _check_dialogue(number, case)


def _check_dialogue(number: int, case: Row) -> None:
    for name in ("policy_facts", "must_avoid"):
        if not all(isinstance(text, str) for text in case[name]):
            raise _case(number, f"has an entry in {name} that is no text", name)
    for turn in case["messages"]:
        if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
            raise _case(number, "has a turn without a role", "messages")


def _case(number: int, problem: str, field: str) -> EvidenceError:
    return EvidenceError("CASE_BROKEN", f"case {number} {problem}", field=field)


def answers_by_case(planned: Mapping[str, Row], transcripts: Sequence[Row]) -> dict[str, Row]:
    """The arm's transcripts by case id; a planned case without one is left out.

    Raises:
        EvidenceError: `TRANSCRIPT_MALFORMED` or, for a case not planned or answered twice, `TRANSCRIPT_UNPLANNED`.
    """
    answers: dict[str, Row] = {}
    for number, answer in enumerate(transcripts):
        _check_transcript(number, answer)
        case = answer["case"]
        if case not in planned or case in answers:
            why = "answers a case a second time" if case in answers else "answers no planned case"
            raise EvidenceError(
                "TRANSCRIPT_UNPLANNED", f"transcript {number} {why}", field="case", actual=case[:80]
            )
        answers[case] = answer
    return answers


def _check_transcript(number: int, answer: Any) -> None:
    for name, kind in _TRANSCRIPT_FIELDS.items():
        if not isinstance(answer, dict) or not isinstance(answer.get(name), kind):
            raise EvidenceError(
                "TRANSCRIPT_MALFORMED", f"transcript {number} has no proper {name}", field=name
            )


def judged_replies(planned: Mapping[str, Row], answers: Mapping[str, Row]) -> dict[str, str]:
    """The answers that a judge is asked about: to dialogue cases, and not empty."""
    return {
        name: answers[name]["text"]
        for name, case in planned.items()
        if case["kind"] == "dialogue" and name in answers and answers[name]["text"].strip()
    }
