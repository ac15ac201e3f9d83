"""How runs stand, from the ledger and, for a run without an end, from the machine."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.train.supervisor import start_token

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

STATES = ("running", "completed", "failed", "stopped", "unconfirmed", "dead")


@dataclass(frozen=True)
class RunStatus:
    """One run: its launch, its state, its counters, its newest checkpoint, its newest update."""

    run: Record
    state: str
    counters: dict[str, int]
    budget: int
    checkpoint: Record | None
    update: Record | None
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """The `result` of `run status`."""
        return {
            "run": self.run.id,
            "state": self.state,
            "counters": self.counters,
            "budget": self.budget,
            "checkpoint": self.checkpoint.id if self.checkpoint else None,
            "detail": self.detail,
        }


def run_status(ledger: Ledger, run: Record) -> RunStatus:
    """How a run stands.

    A run without `run.ended` is *running* where its process still lives on this machine, else
    *unconfirmed*: nobody can say whether it still works. A run that was open when the ledger was restored
    from a backup is *unconfirmed* too, and *dead* once it was reconciled so.
    """
    plan = ledger.get(str(run.ref("plan")))
    ended = ledger.referrers(run.id, "run", "run.ended")
    checkpoints = ledger.referrers(run.id, "run", "checkpoint.published")
    updates = ledger.referrers(run.id, "run", "update.acknowledged")
    if ended:
        body = ended[-1].body
        state, counters, detail = body["outcome"], body["counters"], body["detail"]
    else:
        batches = ledger.referrers(run.id, "run", "batch.built")
        datums = sum(item.body["datums"] for item in batches)
        counters = {"groups": 0, "datums": datums, "updates": len(updates), "outcomes": 0}
        state, detail = _dead(ledger, run) or _lost_sight(ledger, run) or _living(run)
    return RunStatus(
        run=run,
        state=state,
        counters=counters,
        budget=plan.body["budget_updates"],
        checkpoint=checkpoints[-1] if checkpoints else None,
        update=updates[-1] if updates else None,
        detail=detail,
    )


def _dead(ledger: Ledger, run: Record) -> tuple[str, str] | None:
    for item in reversed(ledger.referrers(run.id, "run", "run.reconciled")):
        if item.body["found"] == "dead":
            return "dead", f"reconciled: {item.body['evidence']}"
    return None


def _lost_sight(ledger: Ledger, run: Record) -> tuple[str, str] | None:
    """A restore after the launch: what the run did since the backup is not in the ledger."""
    later = [item for item in ledger.of_kind("ledger.restored") if item.seq > run.seq]
    if not later:
        return None
    return "unconfirmed", f"the ledger was restored at seq {later[0].seq}, what came after is lost"


def _living(run: Record) -> tuple[str, str]:
    body = run.body
    if body["host"] != platform.node():
        return "unconfirmed", f"launched on {body['host']}, which is not this machine"
    if start_token(body["process"]) == body["start_token"]:
        return "running", f"process {body['process']} on this machine"
    return "unconfirmed", f"process {body['process']} is gone and no end was recorded"
