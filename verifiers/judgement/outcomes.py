"""One outcome line a case, from raw inputs: the one definition that runners and verifier share.

A desk case is decided by executing the answer; a dialogue case by code checks and the judge's two passes. An
outcome line is `{"case", "family", "kind", "success": true|false|null, "violations": [code], "truncated",
"detail": {…}}`; null is *undecided*, and `detail.reason` names why. So planned = success + failure + undecided,
with every non-score named. A truncated answer never succeeds, whatever its beginning says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.canonical import real
from ledger.errors import EvidenceError
from verifiers.judgement import text_checks
from verifiers.judgement.evaluation_inputs import (
    Row,
    answers_by_case,
    judged_replies,
    planned_cases,
)
from verifiers.judgement.judging import Verdict, agreed, check_pass, flipped, verdicts
from verifiers.judgement.rubric import Rubric
from verifiers.rewards import desk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Line = dict[str, Any]

# The check that an answer without a word fails; nobody needs to judge it.
EMPTY = "resolution.empty"
UNASKED = "unasked"
"""How the answer to a case ends that no prompt could be made of: undecided, in whatever arm."""


@dataclass(frozen=True)
class _Judged:
    """The rubric and both passes' verdicts, by case id, of the dialogue cases."""

    rubric: Rubric
    forward: Mapping[str, Verdict]
    backward: Mapping[str, Verdict]


def derive_evaluation(
    protocol: Mapping[str, Any],
    cases: Sequence[Row],
    transcripts: Sequence[Row],
    passes: Sequence[Row] = (),
    rubric: Mapping[str, Any] | None = None,
) -> tuple[list[Line], dict[str, Any]]:
    """Outcome lines in the order of the cases, and the counts of `evaluation.completed`.

    Args:
        protocol: body of `protocol.registered`.
        cases: the rows of its cases blob.
        transcripts: the rows of the arm's transcripts blob.
        passes: the judge's passes as `verifiers.judgement.judging` describes them.
        rubric: the JSON of the protocol's rubric blob; needed where a case is a dialogue.

    Returns:
        The lines, and every field of `evaluation.completed` but `outcomes`.

    Raises:
        EvidenceError: `CASE_BROKEN`, `TRANSCRIPT_MALFORMED`, `TRANSCRIPT_UNPLANNED` or `RUBRIC_MISMATCH`: inputs that
            are not what the protocol planned; `JUDGE_PASS_MIXED` and `JUDGE_LINE_UNPLANNED`: see `judging.verdicts`.
    """
    planned = planned_cases(cases)
    answers = answers_by_case(planned, transcripts)
    judged = _judged(protocol, planned, answers, passes, rubric)
    lines = [_outcome(case, answers.get(name), judged) for name, case in planned.items()]
    return lines, count(lines)


def derive_verdicts(
    cases: Sequence[Row],
    transcripts: Sequence[Row],
    raw_pass: Mapping[str, Any],
    rubric: Mapping[str, Any],
) -> tuple[list[Line], int]:
    """Verdict lines of one pass, for `judge.passed`, and how many of them are undecided.

    Raises:
        EvidenceError: as `derive_evaluation`.
    """
    planned = planned_cases(cases)
    replies = judged_replies(planned, answers_by_case(planned, transcripts))
    found = verdicts(Rubric.read(rubric), raw_pass, replies)
    lines = [verdict.line() for verdict in found.values()]
    return lines, sum(line["satisfied"] is None for line in lines)


def count(lines: Sequence[Line]) -> dict[str, Any]:
    """The counts of outcome lines, as `evaluation.completed` carries them.

    `families` gives successes and planned cases; `flips` contradictions and readable pairs of passes.
    """
    families = {line["family"]: [0, 0] for line in lines}
    for line in lines:
        families[line["family"]][0] += line["success"] is True
        families[line["family"]][1] += 1
    compared = [line for line in lines if line["detail"].get("flipped") is not None]
    dialogues = any(line["kind"] == "dialogue" for line in lines)
    kinds = {"desk": "desk", "dialogue": "fixed_dialogue"}
    return {
        "cases": len(lines),
        "success": sum(line["success"] is True for line in lines),
        "failure": sum(line["success"] is False for line in lines),
        "undecided": sum(line["success"] is None for line in lines),
        "violations": sum(bool(line["violations"]) for line in lines),
        "truncated": sum(line["truncated"] for line in lines),
        "families": families,
        "flips": [sum(line["detail"]["flipped"] for line in compared), len(compared)]
        if dialogues
        else None,
        "diagnostic": sorted({kinds[line["kind"]] for line in lines}),
    }


def _judged(
    protocol: Mapping[str, Any],
    planned: Mapping[str, Row],
    answers: Mapping[str, Row],
    passes: Sequence[Row],
    data: Mapping[str, Any] | None,
) -> _Judged | None:
    if not any(case["kind"] == "dialogue" for case in planned.values()):
        if passes:
            raise EvidenceError(
                "JUDGE_PASS_MIXED", "a judge passed over an arm without a dialogue case"
            )
        return None
    rubric = _rubric(protocol, data)
    by_order: dict[str, Mapping[str, Verdict]] = {}
    for raw_pass in passes:
        _check_planned(protocol, raw_pass)
        order = check_pass(rubric, raw_pass)
        if order in by_order:
            raise EvidenceError(
                "JUDGE_PASS_MIXED", f"two {order} passes over one arm", field="order"
            )
        by_order[order] = verdicts(rubric, raw_pass, judged_replies(planned, answers))
    return _Judged(rubric, by_order.get("forward", {}), by_order.get("reversed", {}))


def _rubric(protocol: Mapping[str, Any], data: Mapping[str, Any] | None) -> Rubric:
    named = protocol.get("rubric")
    if data is None or named is None:
        raise EvidenceError(
            "RUBRIC_MISMATCH", "dialogue cases need the protocol's rubric", field="rubric"
        )
    rubric = Rubric.read(data)
    if rubric.digest() != named["digest"] or rubric.ask != protocol.get("judging"):
        raise EvidenceError(
            "RUBRIC_MISMATCH",
            "the rubric is not the one that the protocol names",
            field="rubric",
            expected=named["digest"],
            actual=rubric.digest(),
        )
    return rubric


def _check_planned(protocol: Mapping[str, Any], raw_pass: Mapping[str, Any]) -> None:
    if raw_pass["pass_kind"] not in protocol["passes"]:
        raise EvidenceError(
            "JUDGE_PASS_MIXED",
            f"the protocol plans no {raw_pass['pass_kind']} pass",
            field="pass_kind",
            expected=", ".join(protocol["passes"]),
            actual=str(raw_pass["pass_kind"]),
        )


def _outcome(case: Row, answer: Row | None, judged: _Judged | None) -> Line:
    if answer is None:
        return _line(case, None, [], False, {"prompt_digest": None, "reason": "no_transcript"})
    known = {"prompt_digest": answer["prompt_digest"], "reason": None}
    if answer.get("stop") == UNASKED:
        return _line(case, None, [], False, {**known, "reason": UNASKED})
    if judged is None or case["kind"] == "desk":
        done = desk.outcome(dict(case), answer["text"], truncated=answer["truncated"])
        return {**done, "detail": {**known, **done["detail"]}}
    success, violations, detail = _dialogue(case, answer, judged)
    # What was cut is not known to be right; an undecided case stays undecided.
    success = success and not answer["truncated"]
    return _line(case, success, violations, answer["truncated"], {**known, **detail})


def _line(
    case: Row, success: bool | None, violations: list[str], truncated: bool, detail: dict[str, Any]
) -> Line:
    return {
        "case": case["id"],
        "family": case["family"],
        "kind": case["kind"],
        "success": success,
        "violations": violations,
        "truncated": truncated,
        "detail": detail,
    }


def _dialogue(
    case: Row, answer: Row, judged: _Judged
) -> tuple[bool | None, list[str], dict[str, Any]]:
    """Success, violations and detail of a dialogue answer."""
    forward, backward = (
        _pass_verdict(found, case["id"]) for found in (judged.forward, judged.backward)
    )
    checks = _merged(forward, backward) | text_checks.decide(judged.rubric, case, answer["text"])
    word, reason = agreed(forward, backward), forward.reason or backward.reason
    if not answer["text"].strip():
        # Nothing was said, so there is nothing that a judge could leave undecided.
        word, reason, checks = False, "empty", checks | {EMPTY: False}
    failed = sorted(check for check, holds in checks.items() if not holds)
    required = [check for check in failed if check in judged.rubric.required() or check == EMPTY]
    detail = {
        "reason": reason,
        "failed_checks": required,
        "judged_checks": [check for check in failed if check in judged.rubric.ids("judge")],
        "flipped": flipped(forward, backward),
        "margins": [_margin(forward), _margin(backward)],
        "score": None if word is None else real(sum(checks.values()) / len(checks)),
    }
    violations = [check for check in failed if check.startswith("policy.")]
    return (None if word is None else word and not required), violations, detail


def _pass_verdict(found: Mapping[str, Verdict], case: str) -> Verdict:
    return found.get(case, Verdict(case, None, reason="no_pass"))


def _merged(forward: Verdict, backward: Verdict) -> dict[str, bool]:
    """The judge's checks: each holds only if it holds in every pass that could be read."""
    first, second = forward.checks or {}, backward.checks or {}
    return {name: first.get(name, True) and second.get(name, True) for name in {**first, **second}}


def _margin(verdict: Verdict) -> str | None:
    return None if verdict.margin is None else real(verdict.margin)
