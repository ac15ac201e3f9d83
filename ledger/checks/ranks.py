"""Rules about runs of several processes: how many there are, and that each step's came to one state (P9, U9)."""

from __future__ import annotations

from typing import Any, cast

from ledger.checks.context import Context
from ledger.records.learning import UpdateAcknowledged
from ledger.records.run import PlanPrepared


def plan_processes(context: Context) -> None:
    """P9: the processes that a plan's settings name are those of its hardware."""
    body = cast("PlanPrepared", context.body)
    named = body.settings.get("processes", 1)
    if named != body.hardware.processes:
        raise context.fail(
            "WORLD_SIZE",
            "the settings name another number of processes than the hardware",
            field="body.hardware.processes",
            expected=str(named),
            actual=str(body.hardware.processes),
        )


def update_ranks(context: Context) -> None:
    """U9: an update of several processes names each of the plan's once, in order, and all came to its state."""
    body = cast("UpdateAcknowledged", context.body)
    planned = context.open_run().ranks or 1
    if planned == 1 and not body.ranks:
        return
    if len(body.ranks) != planned:
        raise context.fail(
            "WORLD_SIZE",
            f"the update comes from {len(body.ranks)} processes, the plan has {planned}",
            field="body.ranks",
            expected=str(planned),
            actual=str(len(body.ranks)),
        )
    for place, rank in enumerate(body.ranks):
        if rank.rank != place:
            raise context.fail(
                "RANKS_WRONG",
                "the ranks are not each named once, in order from 0",
                field="body.ranks",
                expected=str(place),
                actual=str(rank.rank),
            )
        if rank.after != body.after.value:
            raise context.fail(
                "RANKS_DISAGREE",
                f"rank {place} came to another state than the update's",
                field="body.ranks",
                expected=body.after.value,
                actual=rank.after,
            )


def processes_of(plan: dict[str, Any]) -> int:
    """How many processes each step of a plan takes, by its body; 1 where it names none."""
    return int(plan["hardware"].get("processes", 1))


def several(plan: dict[str, Any]) -> int:
    """How many processes a plan's runs have, as the reducer's state counts them: 0 for one."""
    processes = processes_of(plan)
    return processes if processes > 1 else 0
