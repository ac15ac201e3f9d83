"""Promotion: what the ledger holds is weighed; what is missing is recorded, reason by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import UsageError
from ledger.suspects import find_suspect, windows_of
from runners.assess.grants import gate_for, weigh
from verifiers.judgement.assemble import promotion_of
from verifiers.replay.promotion import stored_tree
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.judgement.promotion import PromotionDecision


def comparisons_of(ledger: Ledger, checkpoint: Record) -> list[Record]:
    """Every comparison in which an evaluation of the checkpoint was a candidate, newest of each protocol."""
    arms = ledger.referrers(checkpoint.id, "checkpoint", "arm.transcribed")
    evaluations = [
        item for arm in arms for item in ledger.referrers(arm.id, "arm", "evaluation.completed")
    ]
    newest: dict[str, Record] = {}
    for evaluation in evaluations:
        for comparison in ledger.referrers(evaluation.id, "evaluation", "comparison.made"):
            newest[str(evaluation.ref("protocol"))] = comparison
    return list(newest.values())


def promote(ledger: Ledger, checkpoint: Record) -> tuple[Record, PromotionDecision]:
    """Weigh a checkpoint and record the refusal: on its newest gate, else on the comparisons it stands in.

    Raises:
        UsageError: `COMPARISON_MISSING`, the checkpoint was never compared; `EVIDENCE_SUSPECT`, it or a comparison
            rests on what root took back; `GRANT_NOT_OFFERED`, nothing is missing, and a grant needs the
            statements of reviewers and of a promote key.
    """
    comparisons = comparisons_of(ledger, checkpoint)
    gate = gate_for(ledger, checkpoint)
    if not comparisons:
        raise UsageError(
            "COMPARISON_MISSING",
            f"checkpoint {checkpoint.id[7:19]} was never compared with a baseline",
            record=checkpoint.id,
            field="refs.comparison",
        )
    state = ledger.state()
    weighed = [checkpoint, *([gate] if gate else comparisons)]
    suspect = find_suspect(weighed, windows_of(state.keys), ledger.find)
    if suspect is not None:
        raise UsageError(
            "EVIDENCE_SUSPECT",
            f"checkpoint {checkpoint.id[7:19]} cannot be weighed: {suspect.reason}",
            record=checkpoint.id,
            actual=suspect.record.id,
        )
    policy_id = state.policy
    policy = ledger.get(policy_id) if policy_id else None
    view = View(ledger, ledger.blobs)
    if gate is not None:
        _, decision = weigh(ledger, gate)
    else:
        decision = promotion_of(
            checkpoint,
            policy.body if policy else None,
            comparisons,
            stored_tree(checkpoint, view),
            view,
        )
    if decision.granted:
        raise UsageError(
            "GRANT_NOT_OFFERED",
            "nothing is missing: a grant needs statements by reviewers and a promote key",
        )
    refs: dict[str, str | list[str]] = {"checkpoint": checkpoint.id}
    if gate is not None:
        refs["gate"] = gate.id
    else:
        refs["comparison"] = [item.id for item in comparisons]
    if policy is not None:
        refs["policy"] = policy.id
    return ledger.append("promotion.refused", decision.refusal(), refs), decision
