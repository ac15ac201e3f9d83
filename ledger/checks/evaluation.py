"""Rules about protocols, arms, passes, evaluations and comparisons (docs/spec/rules.md, E1 to E6)."""

from __future__ import annotations

from typing import cast

from ledger.canonical import parse_real
from ledger.checks.context import Check, Context
from ledger.floors import DEFAULT_POLICY, MINIMUM_LABELLED
from ledger.record import Record
from ledger.records.evaluation import (
    ArmTranscribed,
    ComparisonMade,
    EvaluationCompleted,
    JudgePassed,
    JudgeQualified,
    ProtocolRegistered,
)


def _protocol(context: Context) -> None:
    """E1: a way of judging, a judge and passes stand together or not at all; dialogues need them."""
    body = cast("ProtocolRegistered", context.body)
    judged = body.judging is not None
    if judged != bool(body.passes) or judged != (context.ref("judge") is not None):
        raise context.fail(
            "JUDGE_MISSING",
            "judging, passes and the judge ref stand together or not at all",
            field="body.judging",
        )
    if body.case_kinds.get("dialogue", 0) > 0 and not judged:
        raise context.fail(
            "JUDGE_MISSING",
            "dialogue cases are scored by a judge, and none is named",
            field="refs.judge",
        )
    asked = {"json": {"criteria_reversal", "position_swap"}, "likelihood": {"direction"}}
    if judged and not set(body.passes) <= asked[str(body.judging)]:
        raise context.fail(
            "PASS_KIND", f"{body.judging} judging has no such pass", field="body.passes"
        )


def _arm(context: Context) -> None:
    """E2: an arm answers every case; a test is read only under a reviewer's statement, by its nomination's models."""
    body = cast("ArmTranscribed", context.body)
    protocol = context.need("protocol")
    cases = sum(protocol.body["case_kinds"].values())
    if body.cases != cases:
        raise context.fail(
            "CASES_MISSING",
            "the arm has not the protocol's number of cases",
            field="body.cases",
            expected=str(cases),
            actual=str(body.cases),
        )
    review = context.ref("review")
    if protocol.body["role"] == "test" and review is None:
        raise context.fail(
            "TEST_NOT_REVIEWED",
            "a test set is read only under a reviewer's signed statement",
            field="refs.review",
        )
    if review is not None and review.ref("protocol") != protocol.id:
        raise context.fail(
            "TEST_NOT_REVIEWED", "the review is of another protocol", field="refs.review"
        )
    if review is not None:
        _under_review(context, review)


def _under_review(context: Context, review: Record) -> None:
    nomination = context.fetch(str(review.ref("nomination")))
    study = context.fetch(str(nomination.ref("study")))
    allowed = [str(study.ref("baseline")), *nomination.ref_list("checkpoint")]
    subject = context.ref("checkpoint") or context.need("model")
    if subject.id not in allowed:
        raise context.fail(
            "TEST_OTHER_ARM",
            "the model is neither nominated nor the study's baseline, so it may not read the test",
            field="refs",
            actual=subject.id,
        )


def _pass(context: Context) -> None:
    """E3: a pass is of its protocol's arm and pass kinds; qualified only by a record that says so."""
    body = cast("JudgePassed", context.body)
    protocol = context.need("protocol")
    _same_protocol(context, "arm")
    if body.pass_kind not in protocol.body["passes"]:
        raise context.fail(
            "PASS_KIND",
            f"the protocol names no {body.pass_kind} pass",
            field="body.pass_kind",
            expected=", ".join(protocol.body["passes"]),
            actual=body.pass_kind,
        )
    found = context.ref("qualification")
    qualified = (
        found is not None
        and found.body["qualified"]
        and found.ref("model") == protocol.ref("judge")
        and found.body["asked"] == protocol.body["judging"]
        and found.body["judge_weights"] == body.judge_weights
        and parse_real(found.body["floor"]) >= parse_real(_floor(context))
    )
    if body.qualified != qualified:
        raise context.fail(
            "JUDGE_UNQUALIFIED",
            "qualified holds exactly where a qualification is named that holds: of this judge, so asked, to the floor in force",
            field="body.qualified",
            expected=str(qualified).lower(),
            actual=str(body.qualified).lower(),
        )


def _qualification(context: Context) -> None:
    """E6: a judge is qualified by the floor in force, on enough cases, with no reason against it."""
    body = cast("JudgeQualified", context.body)
    if parse_real(body.floor) < parse_real(_floor(context)):
        raise context.fail(
            "QUALIFICATION_WRONG",
            "the floor is below the one in force",
            field="body.floor",
            expected=_floor(context),
            actual=body.floor,
        )
    due = {
        "accuracy": parse_real(body.lower) < parse_real(body.floor),
        "cases": body.total < MINIMUM_LABELLED,
    }
    wrong = [name for name, stands in due.items() if stands != (name in body.reasons)]
    if wrong or body.qualified == bool(body.reasons):
        raise context.fail(
            "QUALIFICATION_WRONG",
            "qualified and reasons are not what the figures say",
            field="body.reasons",
            expected=", ".join(name for name, stands in due.items() if stands) or "none",
            actual=", ".join(body.reasons) or "none",
        )


def _floor(context: Context) -> str:
    """The accuracy that the policy in force demands of a judge, that of the defaults where there is none."""
    named = context.state.policy
    policy = DEFAULT_POLICY if named is None else context.fetch(named).body
    return str(policy["judge_accuracy"])


def _evaluation(context: Context) -> None:
    """E4: a judged protocol's evaluation rests on both orders of every pass it names."""
    body = cast("EvaluationCompleted", context.body)
    protocol = context.need("protocol")
    _same_protocol(context, "arm")
    _same_protocol(context, "pass")
    arms = [arm.id for arm in context.refs["arm"]]
    orders = ("forward", "reversed")
    wanted = {
        (arm, kind, way) for arm in arms for kind in protocol.body["passes"] for way in orders
    }
    passes = context.refs.get("pass", [])
    there = {(item.ref("arm"), item.body["pass_kind"], item.body["order"]) for item in passes}
    if wanted != there or len(passes) != len(wanted):
        missing = ", ".join(
            f"{kind} {way} of {arm[7:19]}" for arm, kind, way in sorted(wanted - there)
        )
        raise context.fail(
            "PASSES_MISSING",
            f"the evaluation lacks judge passes: {missing or 'one a kind and order for each arm'}",
            field="refs.pass",
            expected=str(len(wanted)),
            actual=str(len(passes)),
        )
    total = body.success + body.failure + body.undecided
    if total != body.cases:
        raise context.fail(
            "COUNTERS_WRONG",
            "success, failure and undecided do not add up to the cases",
            field="body.cases",
            expected=str(total),
            actual=str(body.cases),
        )


def _comparison(context: Context) -> None:
    """E5: one protocol, one result for each candidate evaluation, the baseline not among them."""
    body = cast("ComparisonMade", context.body)
    baseline = context.need("baseline")
    evaluations = context.refs["evaluation"]
    for evaluation in evaluations:
        if evaluation.ref("protocol") != baseline.ref("protocol"):
            raise context.fail(
                "PROTOCOL_MISMATCH",
                "the evaluations are of different protocols",
                field="refs.evaluation",
                expected=baseline.ref("protocol"),
                actual=evaluation.ref("protocol"),
            )
    ids = [evaluation.id for evaluation in evaluations]
    if baseline.id in ids or [item.evaluation for item in body.candidates] != ids:
        raise context.fail(
            "PAIRING_BROKEN",
            "candidates lists each evaluation once, in the order of refs, without the baseline",
            field="body.candidates",
        )


def _same_protocol(context: Context, role: str) -> None:
    protocol = context.need("protocol")
    for item in context.refs.get(role, []):
        if item.ref("protocol") != protocol.id:
            raise context.fail(
                "PROTOCOL_MISMATCH",
                f"ref {role} belongs to another protocol",
                field=f"refs.{role}",
                expected=protocol.id,
                actual=item.ref("protocol"),
            )


CHECKS: dict[str, tuple[Check, ...]] = {
    "protocol.registered": (_protocol,),
    "arm.transcribed": (_arm,),
    "judge.passed": (_pass,),
    "judge.qualified": (_qualification,),
    "evaluation.completed": (_evaluation,),
    "comparison.made": (_comparison,),
}
