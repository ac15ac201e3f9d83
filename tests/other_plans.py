"""A plan like an honest one but for a setting, so that its run is no twin of the honest run."""

from __future__ import annotations

from ledger.book import Ledger
from ledger.record import Record
from ledger.twins import fresh_digest


def another_plan(
    ledger: Ledger, plan: Record, *, budget_updates: int | None = None, **settings: object
) -> Record:
    """Append a plan that starts fresh with other settings, its digest derived as the rules demand."""
    budget = plan.body["budget_updates"] if budget_updates is None else budget_updates
    body = {
        **plan.body,
        "settings": {**plan.body["settings"], **settings},
        "budget_updates": budget,
    }
    if "seed" in settings:
        body["seeds"] = {**plan.body["seeds"], "training": settings["seed"]}
    tree = ledger.get(str(plan.ref("model"))).body["tree"]
    body["settings_digest"] = fresh_digest(
        body["method"], body["settings"], str(plan.ref("split")), tree
    )
    return ledger.append("plan.prepared", body, dict(plan.refs))
