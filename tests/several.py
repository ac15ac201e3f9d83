"""Runs of several processes, for tests of the rules: a good update of two, and what spoils it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import samples
from descent import launch, next_update, plan, replace
from world import Draft, World

from ledger.record import Record

Spoil = Callable[[World, Draft], None]


def begun_by(world: World, processes: int) -> Record:
    """A run of a plan with so many processes; its launch."""
    body = samples.body("plan.prepared")
    hardware = {**body["hardware"], "processes": processes}
    settings = {**body["settings"], "processes": processes}
    return launch(world, plan(world, hardware=hardware, settings=settings))


def ranks(*states: tuple[int, int]) -> list[dict[str, Any]]:
    """Ranks as an update names them: each by its number and the step whose weights it came to."""
    return [{"rank": rank, "after": samples.weights(step)["value"]} for rank, step in states]


def by_two(*states: tuple[int, int]) -> Spoil:
    """Make the draft the first update of a run of two processes, with these ranks."""

    def spoil(world: World, draft: Draft) -> None:
        made = next_update(world, begun_by(world, 2))
        replace(draft, Draft(made.kind, {**made.body, "ranks": ranks(*states)}, made.refs))

    return spoil


def two_ranks(world: World, draft: Draft) -> None:
    """An update of two processes in order."""
    by_two((0, 1), (1, 1))(world, draft)


def ranks_of_one(world: World, draft: Draft) -> None:
    """Two processes acknowledge where the plan names one."""
    draft.body["ranks"] = ranks((0, 1), (1, 1))


def other_hardware(_: World, draft: Draft) -> None:
    """Settings for two processes on hardware for one."""
    draft.body["settings"] = {**draft.body["settings"], "processes": 2}


__all__ = ["begun_by", "by_two", "other_hardware", "ranks", "ranks_of_one", "two_ranks"]
