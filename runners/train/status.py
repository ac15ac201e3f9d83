"""How runs stand, from the ledger and, for a run without an end, from the machine.

A plan that nobody launched is *prepared*; what a launched one is, `run_status` says.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.train.processes import start_token
from runners.train.validation import newest_figures

if TYPE_CHECKING:
    from ledger.reading import Reading
    from ledger.record import Record

PREPARED = "prepared"
STATES = (PREPARED, "running", "completed", "failed", "stopped", "unconfirmed", "dead")
OVER = frozenset({"completed", "failed", "stopped", "dead"})
"""The states of an attempt that has ended."""


@dataclass(frozen=True)
class RunStatus:
    """One run: its launch, its state, its counters, its newest checkpoint and update on the live path.

    Attributes:
        claim: the launch or resumption with which the newest attempt began.
        attempts: the launch and every resumption.
        superseded: updates that are kept and do not count, since the run went back before them.
        validation: the newest figures on validation rows (`runners.train.validation`), None where there are none.
    """

    run: Record
    plan: Record
    claim: Record
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
            "plan": self.plan.id,
            "state": self.state,
            "counters": self.counters,
            "budget": self.budget,
            "checkpoint": self.checkpoint.id if self.checkpoint else None,
            "attempts": self.attempts,
            "superseded": self.superseded,
            "validation": self.validation,
            "detail": self.detail,
        }


def claims(ledger: Reading, run: Record) -> list[Record]:
    """The launch and every resumption, in order: each names the process that then worked at the run."""
    resumed = ledger.of_kind("run.resumed")
    return [run, *(item for item in resumed if item.ref("run") == run.id)]


def launch_of(ledger: Reading, plan: Record) -> Record | None:
    """A plan's one launch, None where it is only prepared."""
    return next(iter(ledger.referrers(plan.id, "plan", "run.launched")), None)


def unlaunched(ledger: Reading) -> list[Record]:
    """Plans that were prepared and never launched, in order."""
    launched = {item.ref("plan") for item in ledger.of_kind("run.launched")}
    return [item for item in ledger.of_kind("plan.prepared") if item.id not in launched]


def is_adopted(plan: Record) -> bool:
    """Whether a plan is of a script's own trainer (`LedgerCallback`): its process is the script's, and it is not resumed."""
    return "trainer" in plan.body["settings"]


def stop_requests(ledger: Reading, found: RunStatus) -> list[Record]:
    """The requests that the newest attempt stop, in order."""
    asked = ledger.of_kind("run.stop_requested")
    return [
        item for item in asked if item.seq > found.claim.seq and item.ref("run") == found.run.id
    ]


def run_status(ledger: Reading, run: Record) -> RunStatus:
    """How a run stands.

    A run whose newest attempt has no end is *running* where its process still lives on this machine, else
    *unconfirmed*: nobody can say whether it still works. A run that was open when the ledger was restored
    from a backup is *unconfirmed* too. It is *dead* once somebody recorded that it is.
    """
    plan = ledger.get(str(run.ref("plan")), "plan.prepared")
    own = _by_kind(ledger, run)
    attempts = [run, *own["run.resumed"]]
    newest = attempts[-1]
    since = {kind: [item for item in found if item.seq > newest.seq] for kind, found in own.items()}
    origin = _origin(ledger, plan, newest)
    updates = since.get("update.acknowledged", [])
    begun = newest.body.get("from_update", origin.body["spent_updates"] if origin else 0)
    live = begun + len(updates)
    ended = since.get("run.ended")
    if ended:
        body = ended[-1].body
        state, counters, detail = body["outcome"], body["counters"], body["detail"]
    else:
        spent = int(origin.body["spent_datums"]) if origin else 0
        built = sum(int(item.body["datums"]) for item in since.get("batch.built", []))
        counters = {"groups": 0, "datums": spent + built, "updates": live, "outcomes": 0}
        state, detail = _unended(ledger, newest, since.get("run.reconciled", []))
    inherited = _origin(ledger, plan, run)
    on_path = live - (inherited.body["spent_updates"] if inherited else 0)
    published = since.get("checkpoint.published")
    resumed_at = newest.ref("checkpoint")
    before = ledger.get(str(origin.ref("update")), "update.acknowledged") if origin else None
    return RunStatus(
        run=run,
        plan=plan,
        claim=newest,
        state=state,
        counters=counters,
        budget=plan.body["budget_updates"],
        checkpoint=published[-1]
        if published
        else ledger.get(resumed_at, "checkpoint.published")
        if resumed_at
        else None,
        update=updates[-1] if updates else before,
        detail=detail,
        attempts=len(attempts),
        superseded=len(own["update.acknowledged"]) - on_path,
        validation=newest_figures(own["update.acknowledged"]),
    )


def _by_kind(ledger: Reading, run: Record) -> dict[str, list[Record]]:
    """Everything recorded under a run, read once, by kind and in order."""
    found: dict[str, list[Record]] = {"run.resumed": [], "update.acknowledged": []}
    for record in ledger.referrers(run.id, "run"):
        found.setdefault(record.kind, []).append(record)
    return found


def _exact(plan: Record) -> bool:
    return bool(plan.body["start"] == "exact")


def _origin(ledger: Reading, plan: Record, claim: Record) -> Record | None:
    """The checkpoint whose place an attempt took: the one resumed from, or the parent of an exact plan."""
    name = claim.ref("checkpoint") or (plan.ref("parent") if _exact(plan) else None)
    return None if name is None else ledger.get(name, "checkpoint.published")


def _unended(ledger: Reading, newest: Record, reconciled: list[Record]) -> tuple[str, str]:
    if reconciled and reconciled[-1].body["found"] == "dead":
        return "dead", f"reconciled: {reconciled[-1].body['evidence']}"
    return _lost_sight(ledger, newest) or living(newest)


def _lost_sight(ledger: Reading, newest: Record) -> tuple[str, str] | None:
    """A restore after the attempt began: what the run did since the backup is not in the ledger."""
    later = [item for item in ledger.of_kind("ledger.restored") if item.seq > newest.seq]
    if not later:
        return None
    return "unconfirmed", f"the ledger was restored at seq {later[0].seq}, what came after is lost"


def is_here(claim: Record) -> bool:
    """Whether a launch or resumption was made on this machine."""
    return bool(claim.body["host"] == platform.node())


def living(claim: Record) -> tuple[str, str]:
    """Whether the process of a launch or resumption still works: `running` or `unconfirmed`, and what was seen."""
    body = claim.body
    if not is_here(claim):
        return "unconfirmed", f"launched on {body['host']}, which is not this machine"
    if start_token(body["process"]) == body["start_token"]:
        return "running", f"process {body['process']} on this machine"
    return "unconfirmed", f"process {body['process']} is gone and no end was recorded"
