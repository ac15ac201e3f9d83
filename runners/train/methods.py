"""What differs between the methods of runs: the child, its rows, who records what it says, and what its job has besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.train.config import SftSettings
from runners.train.planned_rows import template_job
from runners.train.plans import training_rows
from runners.train.recovery import recover
from runners.train.rl_config import RlSettings
from runners.train.sampled import Sampled
from runners.train.serving.place import checked, kept
from runners.train.supervised import Supervised
from runners.train.tasks import task_rows
from runners.train.templates import in_effect, model_template
from runners.train.validation import validation_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.attempt import Attempt
    from verifiers.data.hand_out import HandedOut

JOURNAL = "rollouts"
"""The folder of a run in which draws are kept, whatever attempt made them."""


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes:
        child: the module that trains; None for the supervisor's own.
        rows: the rows it reads, and those it is evaluated on, of a plan and its split.
        supervised: who records an attempt, by what every method gives it.
        job: what the child's job has beside what all have.
    """

    child: str | None
    rows: Callable[[Ledger, Record, Record], tuple[list[HandedOut], list[HandedOut]]]
    supervised: Callable[[Attempt, dict[str, Any]], Supervised]
    job: Callable[[Attempt], dict[str, Any]]


def method_of(plan: Record) -> Method:
    """The method of a plan that this version runs (`runners.cli.run_start.check_method` refuses others)."""
    return METHODS[str(plan.body["method"])]


def _sft_rows(
    ledger: Ledger, plan: Record, split: Record
) -> tuple[list[HandedOut], list[HandedOut]]:
    settings = SftSettings.from_values(plan.body["settings"])
    return training_rows(ledger, split), validation_rows(ledger, split, settings)


def _sft_supervised(_attempt: Attempt, given: dict[str, Any]) -> Supervised:
    return Supervised(**given)


def _sft_job(attempt: Attempt) -> dict[str, Any]:
    return template_job(attempt.ledger, attempt.material.plan, attempt.place)


def _rl_rows(
    ledger: Ledger, plan: Record, split: Record
) -> tuple[list[HandedOut], list[HandedOut]]:
    settings = RlSettings.from_values(plan.body["settings"])
    checked(ledger.path, plan)  # before anything is claimed
    return task_rows(ledger, split, settings.reward)[0], []


def _rl_supervised(attempt: Attempt, given: dict[str, Any]) -> Supervised:
    return Sampled(**given, journal=attempt.work / JOURNAL)


def _rl_job(attempt: Attempt) -> dict[str, Any]:
    """What every job of groups has, the journal, which outlives the attempt, and where a sampling server is."""
    material = attempt.material
    common = groups_job(attempt.ledger, material.plan, material.folder, attempt.place)
    place = kept(attempt.ledger.path, material.plan.id)
    served = material.plan.body["settings"]["engine"] == "vllm"
    return {
        **common,
        "journal": str(attempt.work / JOURNAL),
        "sampler": place.as_dict() if served and place is not None else None,
    }


def groups_job(ledger: Ledger, plan: Record, folder: Path, place: Path) -> dict[str, Any]:
    """The template in effect, the counts of rows, and the checkpoint that the run began with.

    Args:
        ledger: holds the plan.
        plan: of the run.
        folder: the base model's.
        place: where files of the job are put.
    """
    model = ledger.get(str(plan.ref("model")))
    template = place / "template.jinja"
    template.write_bytes(in_effect(model_template(folder, str(model.body["name"])), None).encode())
    parent, rows = plan.ref("parent"), plan.body["rows"]
    return {
        "template": str(template),
        "counts": {name: rows[name] for name in ("input", "truncated", "dropped")},
        "reference": None
        if parent is None
        else _checkpoint_job(ledger, ledger.get(parent), place / "reference"),
    }


def _checkpoint_job(ledger: Ledger, checkpoint: Record, folder: Path) -> dict[str, Any]:
    recover(ledger, checkpoint, folder)
    return {
        "path": str(folder),
        "files": checkpoint.body["files"],
        "state": checkpoint.body["state"]["value"],
    }


METHODS = {
    "sft": Method(None, _sft_rows, _sft_supervised, _sft_job),
    "rl": Method("runners.train.rl", _rl_rows, _rl_supervised, _rl_job),
}
