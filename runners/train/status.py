"""How runs stand, from the ledger and, for a run without an end, from the machine."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.train.processes import start_token
from runners.train.validation import newest_figures

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

STATES = ("running", "completed", "failed", "stopped", "unconfirmed", "dead")


@dataclass(frozen=True)
class RunStatus:
    """One run: its launch, its state, its counters, its newest checkpoint and update on the live path.

    Attributes:
        attempts: the launch and every resumption.
        superseded: updates that are kept and do not count, since the run went back before them.
        validation: the newest figures on validation rows (`runners.train.validation`), None where there are none.
    """

    run: Record
    state: str
    counters: dict[str, int]
    budget: int
    checkpoint: Record | None
    update: Record | None
    detail: str
    attempts: int
    superseded: int
    validation: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The `result` of `run status`."""
        return {
            "run": self.run.id,
            "state": self.state,
            "counters": self.counters,
            "budget": self.budget,
            "checkpoint": self.checkpoint.id if self.checkpoint else None,
            "attempts": self.attempts,
            "superseded": self.superseded,
            "validation": self.validation,
            "detail": self.detail,
        }


def claims(ledger: Ledger, run: Record) -> list[Record]:
    """The launch and every resumption, in order: each names the process that then worked at the run."""
    return [run, *ledger.referrers(run.id, "run", "run.resumed")]


def stop_requested(ledger: Ledger, run: Record) -> bool:
    """Whether somebody asked the newest attempt to stop."""
    since = claims(ledger, run)[-1].seq
    return any(item.seq > since for item in ledger.referrers(run.id, "run", "run.stop_requested"))


def run_status(ledger: Ledger, run: Record) -> RunStatus:
    """How a run stands.

    A run whose newest attempt has no end is *running* where its process still lives on this machine, else
    *unconfirmed*: nobody can say whether it still works. A run that was open when the ledger was restored
    from a backup is *unconfirmed* too. It is *dead* once somebody recorded that it is.
    """
    plan = ledger.get(str(run.ref("plan")))
    attempts = claims(ledger, run)
    newest = attempts[-1]
    origin = _origin(ledger, plan, newest)
    all_updates = ledger.referrers(run.id, "run", "update.acknowledged")
    updates = [item for item in all_updates if item.seq > newest.seq]
    begun = newest.body.get("from_update", origin.body["spent_updates"] if origin else 0)
    live = begun + len(updates)
    ended = _last(ledger, run, newest, "run.ended")
    if ended is not None:
        body = ended.body
        state, counters, detail = body["outcome"], body["counters"], body["detail"]
    else:
        counters = {
            "groups": 0,
            "datums": _datums(ledger, run, newest, origin),
            "updates": live,
            "outcomes": 0,
        }
        state, detail = _unended(ledger, run, newest)
    inherited = _origin(ledger, plan, run)
    own = live - (inherited.body["spent_updates"] if inherited else 0)
    checkpoints = ledger.referrers(run.id, "run", "checkpoint.published")
    published = [item for item in checkpoints if item.seq > newest.seq]
    resumed_at = newest.ref("checkpoint")
    return RunStatus(
        run=run,
        state=state,
        counters=counters,
        budget=plan.body["budget_updates"],
        checkpoint=published[-1] if published else ledger.get(resumed_at) if resumed_at else None,
        update=updates[-1]
        if updates
        else ledger.get(str(origin.ref("update")))
        if origin
        else None,
        detail=detail,
        attempts=len(attempts),
        superseded=len(all_updates) - own,
        validation=newest_figures(all_updates),
    )


def _exact(plan: Record) -> bool:
    return bool(plan.body["start"] == "exact")


def _origin(ledger: Ledger, plan: Record, claim: Record) -> Record | None:
    """The checkpoint whose place an attempt took: the one resumed from, or the parent of an exact plan."""
    name = claim.ref("checkpoint") or (plan.ref("parent") if _exact(plan) else None)
    return None if name is None else ledger.get(name)


def _datums(ledger: Ledger, run: Record, newest: Record, origin: Record | None) -> int:
    batches = ledger.referrers(run.id, "run", "batch.built")
    spent = int(origin.body["spent_datums"]) if origin else 0
    return spent + sum(int(item.body["datums"]) for item in batches if item.seq > newest.seq)


def _last(ledger: Ledger, run: Record, since: Record, kind: str) -> Record | None:
    found = [item for item in ledger.referrers(run.id, "run", kind) if item.seq > since.seq]
    return found[-1] if found else None


def _unended(ledger: Ledger, run: Record, newest: Record) -> tuple[str, str]:
    reconciled = _last(ledger, run, newest, "run.reconciled")
    if reconciled is not None and reconciled.body["found"] == "dead":
        return "dead", f"reconciled: {reconciled.body['evidence']}"
    return _lost_sight(ledger, newest) or living(newest)


def _lost_sight(ledger: Ledger, newest: Record) -> tuple[str, str] | None:
    """A restore after the attempt began: what the run did since the backup is not in the ledger."""
    later = [item for item in ledger.of_kind("ledger.restored") if item.seq > newest.seq]
    if not later:
        return None
    return "unconfirmed", f"the ledger was restored at seq {later[0].seq}, what came after is lost"


def living(claim: Record) -> tuple[str, str]:
    """Whether the process of a launch or resumption still works: `running` or `unconfirmed`, and what was seen."""
    body = claim.body
    if body["host"] != platform.node():
        return "unconfirmed", f"launched on {body['host']}, which is not this machine"
    if start_token(body["process"]) == body["start_token"]:
        return "running", f"process {body['process']} on this machine"
    return "unconfirmed", f"process {body['process']} is gone and no end was recorded"
