"""How many processes a run has: what a plan says, what the surroundings say, and whether they fit (torch-free)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.checks import ranks
from ledger.errors import EvidenceError, UsageError
from runners.torchrun import RANK_WAIT_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.record import Record
    from runners.train.learner_settings import LearnerSettings

VARIABLE = "WORLD_SIZE"
"""What launchers of several processes set; the supervisor starts them itself and is none of them."""


def processes_of(plan: Record) -> int:
    """How many processes each step of a plan takes; 1 where it names none."""
    return ranks.processes_of(plan.body)


def rank_wait_s(plan: Record) -> int:
    """How long a process of a plan's run waits for the others; plans of before this was a setting have its default."""
    return int(plan.body["settings"].get("rank_wait_s", RANK_WAIT_S))


def check_surroundings(plan: Record, environment: Mapping[str, str]) -> None:
    """Refuse to start a run from inside a launcher of another number of processes.

    Raises:
        UsageError: `WORLD_SIZE`.
    """
    told, planned = environment.get(VARIABLE), str(processes_of(plan))
    if told is not None and told != planned:
        raise UsageError(
            "WORLD_SIZE",
            f"{VARIABLE} is {told[:20]} here, the plan's runs have {_counted(planned)}",
            field=VARIABLE,
            record=plan.id,
            expected=planned,
            actual=told[:20],
            hint=f"unset {VARIABLE}: evidence run launch starts the processes itself",
        )


def check_child(plan: Record, said: object) -> None:
    """Refuse a child that works in another number of processes than the plan's.

    Raises:
        EvidenceError: `WORLD_SIZE`.
    """
    planned = processes_of(plan)
    if said != planned:
        raise EvidenceError(
            "WORLD_SIZE",
            f"the child works in {str(said)[:20]}, the plan's runs have {_counted(str(planned))}",
            field="processes",
            record=plan.id,
            expected=str(planned),
            actual=str(said)[:20],
        )


def check_size(settings: LearnerSettings, size: int) -> None:
    """Refuse, within the child, settings for another number of processes than there are.

    Raises:
        UsageError: `WORLD_SIZE`.
    """
    if settings.processes != size:
        raise UsageError(
            "WORLD_SIZE",
            f"the settings are for {_counted(str(settings.processes))}, here is {size}",
            field="processes",
            expected=str(settings.processes),
            actual=str(size),
        )


def crowded(settings: LearnerSettings, cores: int) -> list[str]:
    """A plan's warning where its processes have more threads than there are cores, which then wait for one another."""
    threads = settings.processes * settings.threads
    if settings.processes == 1 or threads <= cores:
        return []
    return [f"{settings.processes} processes of {settings.threads} threads share {cores} cores"]


def _counted(number: str) -> str:
    return "1 process" if number == "1" else f"{number} processes"
