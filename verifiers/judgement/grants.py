"""Whether a decided gate carries a promotion: everything that stands against it, from records and blobs.

The gate is derived again; its record's verdict is not asked. Runs of the study that were launched after the gate count as
left out, so a study is not trained on until a gate is found that passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ledger.floors import DEFAULT_POLICY
from ledger.state import TENSORS
from verifiers.judgement.promotion import PromotionDecision, PromotionEvidence, decide_promotion
from verifiers.judgement.study_gate import gate_again, plans_launched, reviewed

if TYPE_CHECKING:
    from ledger.record import Record
    from verifiers.replay.view import View


def grant_of(
    gate: Record,
    approvals: Sequence[Record],
    policy: Record | None,
    tree_found: str | None,
    head: str,
    view: View,
) -> PromotionDecision:
    """What stands between a gate's chosen checkpoint and its promotion.

    Args:
        gate: a decided gate.
        approvals: reviewers' statements; those of another gate or checkpoint do not count.
        policy: the policy in force; the defaults where None.
        tree_found: tree digest of the checkpoint's bytes as they were read; None where they were not.
        head: id of the last record that counts.
        view: records and blobs.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BLOB_MISSING`, `BLOB_WRONG`.
    """
    nomination, study = view.ref(gate, "nomination"), view.ref(gate, "study")
    checkpoint = view.get(nomination.body["chosen"])
    body = checkpoint.body
    named = gate.ref("policy")
    evidence = PromotionEvidence(
        checkpoint=checkpoint.id,
        study=study.body,
        runs_left_out=[plan.id for plan in plans_launched(study, head, view, since=gate.seq)],
        nominated=checkpoint.id,
        test_reviewed=all(
            reviewed(item, nomination, view) for item in view.refs(gate, "evaluation")
        ),
        gate=gate_again(gate, view),
        reviewers=reviewers_of(gate, checkpoint.id, approvals),
        tree=body["tree"] if body["state"]["scheme"] == TENSORS else None,
        tree_found=tree_found,
        policy_changed=named != (policy.id if policy else None),
    )
    floors: Mapping[str, Any] = policy.body if policy else DEFAULT_POLICY
    return decide_promotion(floors, evidence)


def reviewers_of(gate: Record, checkpoint_id: str, approvals: Sequence[Record]) -> frozenset[str]:
    """Key ids of the distinct reviewers who approved exactly this gate and checkpoint."""
    return frozenset(
        item.body["reviewer"]
        for item in approvals
        if item.ref("gate") == gate.id and item.ref("checkpoint") == checkpoint_id
    )


def approvals_since(gate: Record, head: str, view: View) -> list[Record]:
    """Every approval of a gate up to a head, in order."""
    found: list[Record] = []
    at: str | None = head
    while at is not None and at != gate.id:
        record = view.get(at)
        if record.kind == "promotion.approved" and record.ref("gate") == gate.id:
            found.append(record)
        at = record.prev
    return found[::-1]
