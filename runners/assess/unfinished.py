"""What an evaluation that died has left in the ledger: an arm that nobody counted, and passes over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


def unfinished_arm(
    ledger: Ledger, protocol: Record, subject: Record, review: str | None = None
) -> Record | None:
    """The newest arm of a subject under a protocol and a review that no evaluation counts, or None."""
    role = "model" if subject.kind == "model.registered" else "checkpoint"
    found = [
        arm
        for arm in ledger.referrers(protocol.id, "protocol", "arm.transcribed")
        if arm.ref(role) == subject.id
        and arm.ref("review") == review
        and not ledger.referrers(arm.id, "arm", "evaluation.completed")
    ]
    return found[-1] if found else None


def unfinished_passes(ledger: Ledger, arm: Record) -> list[Record]:
    """The passes over such an arm, one an order."""
    by_order = {
        item.body["order"]: item for item in ledger.referrers(arm.id, "arm", "judge.passed")
    }
    return [by_order[order] for order in sorted(by_order)]
