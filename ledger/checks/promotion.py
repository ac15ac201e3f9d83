"""Rules about nominations, gates and grants (docs/spec/rules.md, G1 to G7)."""

from __future__ import annotations

from typing import cast

from ledger.checks.context import Check, Context
from ledger.record import Record
from ledger.records.promotion import (
    CandidateNominated,
    GateDecided,
    PromotionApproved,
    PromotionGranted,
    TestReviewed,
)
from ledger.state import TENSORS
from ledger.suspects import find_suspect, windows_of


def _nominated(context: Context) -> None:
    """G1: the chosen checkpoint is one of those nominated."""
    body = cast("CandidateNominated", context.body)
    if body.chosen not in {item.id for item in context.refs["checkpoint"]}:
        raise context.fail(
            "NOMINATION_OTHER", "chosen is not among the checkpoints nominated", field="body.chosen"
        )


def _gate(context: Context) -> None:
    """G2: a gate passes where every line does."""
    body = cast("GateDecided", context.body)
    if body.passed != all(gate.passed for gate in body.gates):
        raise context.fail(
            "GATE_WRONG", "passed is the conjunction of the gate's lines", field="body.passed"
        )


def _reviewed(context: Context) -> None:
    """G7: a test is called fresh exactly where no finding is listed."""
    body = cast("TestReviewed", context.body)
    if body.fresh != (body.findings is None):
        raise context.fail(
            "REVIEW_WRONG", "fresh stands exactly where there are no findings", field="body.fresh"
        )


def _approved(context: Context) -> None:
    """G3: the reviewer named is the one whose statement the record carries."""
    body = cast("PromotionApproved", context.body)
    statement = context.record.statement
    if statement is None or statement.key != body.reviewer:
        raise context.fail(
            "REVIEWER_OTHER", "reviewer is not the key of the statement", field="body.reviewer"
        )


def _granted(context: Context) -> None:
    """G4: a gate passed by the policy in force, enough distinct reviewers of it, the chosen checkpoint's own bytes."""
    body = cast("PromotionGranted", context.body)
    gate, nomination = context.need("gate"), context.need("nomination")
    checkpoint = context.need("checkpoint")
    if not gate.body["passed"] or gate.ref("nomination") != nomination.id:
        raise context.fail(
            "GATE_FAILED", "the gate did not pass, or is of another nomination", field="refs.gate"
        )
    if nomination.body["chosen"] != checkpoint.id:
        raise context.fail(
            "NOMINATION_OTHER", "the checkpoint is not the one chosen", field="refs.checkpoint"
        )
    elsewhere = checkpoint.body["state"]["scheme"] != TENSORS
    if elsewhere or body.tree != checkpoint.body["tree"]:
        raise context.fail(
            "PROMOTED_BYTES",
            "the promoted tree is not the checkpoint's, or the checkpoint has no bytes here",
            field="body.tree",
            expected=checkpoint.body["tree"],
            actual=body.tree,
        )
    _enough_reviewers(context, gate.id, checkpoint.id)
    if gate.ref("policy") != context.state.policy:
        raise context.fail(
            "POLICY_OTHER",
            "another policy is in force than the gate was decided by",
            field="refs.gate",
            expected=str(context.state.policy),
            actual=str(gate.ref("policy")),
        )


def _enough_reviewers(context: Context, gate_id: str, checkpoint_id: str) -> None:
    if context.state.policy is None:
        raise context.fail("POLICY_MISSING", "no policy is declared, so nothing can be promoted")
    needed = context.fetch(context.state.policy).body["reviewers"]
    reviewers = {
        approval.body["reviewer"]
        for approval in context.refs["approval"]
        if approval.ref("gate") == gate_id and approval.ref("checkpoint") == checkpoint_id
    }
    if len(reviewers) < needed:
        raise context.fail(
            "REVIEW_MISSING",
            f"{len(reviewers)} of {needed} reviewers approved this gate and checkpoint",
            field="refs.approval",
            expected=str(needed),
            actual=str(len(reviewers)),
        )


def _by_policy(context: Context) -> None:
    """G5: a refusal or a gate names the policy in force, where one is declared."""
    named = context.ref("policy")
    if (named.id if named else None) != context.state.policy:
        raise context.fail(
            "POLICY_OTHER",
            f"{context.record.kind} does not name the policy in force",
            field="refs.policy",
            expected=str(context.state.policy),
            actual=named.id if named else "none",
        )


def _unsuspected(context: Context) -> None:
    """G6: no gate passes, and nothing is approved or granted, on suspect evidence."""
    record = context.record
    if record.kind == "gate.decided" and not record.body["passed"]:
        return  # a gate may always say no
    suspect = find_suspect(_named(context), windows_of(context.state.keys), context.fetch)
    if suspect is not None:
        raise context.fail(
            "EVIDENCE_SUSPECT",
            f"{record.kind} rests on suspect evidence: {suspect.reason}",
            field="refs",
            actual=suspect.record.id,
        )


def _named(context: Context) -> list[Record]:
    return [record for role in sorted(context.refs) for record in context.refs[role]]


CHECKS: dict[str, tuple[Check, ...]] = {
    "candidate.nominated": (_nominated,),
    "test.reviewed": (_reviewed,),
    "gate.decided": (_gate, _by_policy, _unsuspected),
    "promotion.approved": (_approved, _unsuspected),
    "promotion.granted": (_granted, _unsuspected),
    "promotion.refused": (_by_policy,),
}
