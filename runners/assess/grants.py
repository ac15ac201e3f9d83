"""A grant: what stands against it is weighed by the verifier's own code, and the promoted folder comes from the ledger's bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import UsageError
from ledger.promotions import Promotions
from verifiers.judgement.grants import approvals_since, grant_of
from verifiers.replay.promotion import stored_tree
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record, Refs
    from verifiers.judgement.promotion import PromotionDecision


def gate_for(ledger: Ledger, checkpoint: Record) -> Record | None:
    """The newest gate that was decided on a nomination of this checkpoint, or None."""
    nominations = ledger.referrers(checkpoint.id, "checkpoint", "candidate.nominated")
    gates = [
        gate
        for nomination in nominations
        if nomination.body["chosen"] == checkpoint.id
        for gate in ledger.referrers(nomination.id, "nomination", "gate.decided")
    ]
    return max(gates, key=lambda gate: gate.seq, default=None)


def chosen_of(ledger: Ledger, gate: Record) -> Record:
    """The checkpoint that a gate's nomination names for promotion."""
    return ledger.get(str(ledger.get(str(gate.ref("nomination"))).body["chosen"]))


def weigh(ledger: Ledger, gate: Record) -> tuple[list[Record], PromotionDecision]:
    """A gate's approvals, and what stands between it and a grant now.

    Raises:
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, bytes that the gate rests on are not there.
    """
    view, head = View(ledger, ledger.blobs), str(ledger.head()[2])
    approvals = approvals_since(gate, head, view)
    policy = ledger.state().policy
    decision = grant_of(
        gate,
        approvals,
        ledger.get(policy) if policy else None,
        stored_tree(chosen_of(ledger, gate), view),
        head,
        view,
    )
    return approvals, decision


def refusal(gate: Record, decision: PromotionDecision) -> UsageError:
    """Why a gate carries no grant, every reason in one message under the first one's code."""
    first = decision.reasons[0]
    message = "; ".join(f"{item.code}: {item.message}" for item in decision.reasons)
    return UsageError(
        first.code, message, record=gate.id, hint=first.hint, actual=str(len(decision.reasons))
    )


def grant_refs(ledger: Ledger, gate: Record, approvals: list[Record]) -> Refs:
    """What a grant names: of each reviewer the first approval of this gate and checkpoint."""
    checkpoint = chosen_of(ledger, gate)
    first: dict[str, str] = {}
    for item in approvals:
        if item.ref("checkpoint") == checkpoint.id:
            first.setdefault(item.body["reviewer"], item.id)
    return {
        "gate": gate.id,
        "nomination": str(gate.ref("nomination")),
        "approval": list(first.values()),
        "checkpoint": checkpoint.id,
    }


def promotions(ledger: Ledger) -> Promotions:
    """Every grant and withdrawal, in order."""
    kinds = ("promotion.granted", "promotion.withdrawn")
    found = [record for kind in kinds for record in ledger.of_kind(kind)]
    return Promotions.among(sorted(found, key=lambda record: record.seq))
