"""The supervisor of a run, whatever its method: it claims the plan, starts the child and writes every record.

The child holds no key and waits for each answer, so an optimizer step whose record cannot be written does not
happen. Whatever ends the run, `run.ended` says with which counters, and what that does not establish. Launching and
resuming differ in their first record and in where the child begins; everything after that is the same attempt.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from runners.child import ChildExit, run_child
from runners.environment import machine
from runners.interrupts import first_is_a_wish
from runners.prepare.shelf import model_folder
from runners.train.attempt import Attempt, Material
from runners.train.logs import child_log
from runners.train.methods import method_of
from runners.train.plans import check_fresh, write_rows
from runners.train.precision import accelerator
from runners.train.processes import start_token, this_process
from runners.train.recovery import recover
from runners.train.supervised import NOT_ESTABLISHED
from runners.train.world_size import check_surroundings, processes_of, rank_wait_s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.supervised import Supervised

    Tell = Callable[[str, dict[str, Any]], None]

CHILD = "runners.train.sft"


@dataclass(frozen=True)
class RunResult:
    """An attempt that ended: its run's launch, its end, its last checkpoint, and where its log lies."""

    run: Record
    ended: Record
    checkpoint: Record | None
    log: Path


def launch_sft(
    ledger: Ledger,
    plan: Record,
    shelf: Path,
    tell: Tell,
    stop_requested: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Claim a plan, train, and record how it ended; returns when the run is over.

    Args:
        ledger: open for writing with a train key.
        plan: a plan that was never launched.
        shelf: where model folders lie.
        tell: called with (event, fields) for progress: claimed, start, update, checkpoint.
        stop_requested: asked at every event, beside the ledger's own requests; the child then stops at its next safe
            boundary, as after a Ctrl-C.

    Raises:
        UsageError: `PLAN_STALE`, `WORLD_SIZE`, `PLAN_LAUNCHED`, or what the rules refuse; the run is then not launched.
        LedgerError: a record of the run could not be written; `run.ended` says so where that still can be.
        OSError: the machine refused a file; `run.ended` says so too.
        KeyboardInterrupt: the second Ctrl-C.
    """
    material = _material(ledger, plan, shelf, _parent(ledger, plan))
    body = {**this_process(), "seen": ledger.seen().model_dump()}
    with first_is_a_wish() as wish:  # from the claim on somebody has to record an end
        with wish.held():
            run = ledger.append("run.launched", body, {"plan": plan.id})
        return _attempt(Attempt(ledger, run, run, material, tell, stop_requested, wish))


def resume_sft(
    ledger: Ledger,
    run: Record,
    checkpoint: Record | None,
    shelf: Path,
    tell: Tell,
    stop_requested: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Go on with a run whose last attempt ended or was reconciled; returns when this attempt is over.

    Args:
        ledger: open for writing with a train key.
        run: its launch.
        checkpoint: one of the run's own on its live path, with a complete state; None to begin again where it began.
        shelf: where model folders lie.
        tell: see `launch_sft`.
        stop_requested: see `launch_sft`.

    Raises:
        UsageError: `PLAN_STALE`, `WORLD_SIZE`, `RUN_STILL_OPEN`, `STATE_INCOMPLETE`, or what else the rules refuse; nothing is then begun.
        EvidenceError: `BLOB_MISSING` or `BLOB_WRONG`, the checkpoint's bytes are not what its record says; the same.
        LedgerError: see `launch_sft`.
        OSError: see `launch_sft`.
        KeyboardInterrupt: the second Ctrl-C.
    """
    plan = ledger.get(str(run.ref("plan")))
    material = _material(ledger, plan, shelf, checkpoint or _parent(ledger, plan))
    refs: dict[str, str | list[str]] = {"run": run.id}
    if checkpoint is not None:
        refs["checkpoint"] = checkpoint.id
    body = {**this_process(), "from_update": _first_step(material), "exact": promised(plan)}
    with first_is_a_wish() as wish:
        with wish.held():
            claim = ledger.append("run.resumed", body, refs)
        return _attempt(Attempt(ledger, run, claim, material, tell, stop_requested, wish))


def newest_checkpoint(ledger: Ledger, run: Record) -> Record | None:
    """The checkpoint from which least is redone: complete, the run's own, on its live path; None where there is none."""
    checkpoints = {
        str(item.ref("update")): item
        for item in ledger.referrers(run.id, "run", "checkpoint.published")
        if all(item.body["completeness"].values())
    }
    state = ledger.state().runs.get(run.id)
    update = state.last_update if state is not None else None
    while update is not None and update not in checkpoints:
        record = ledger.find(update)
        update = record.ref("previous") if record and record.ref("run") == run.id else None
    return checkpoints[update] if update is not None else None


def promised(plan: Record) -> bool:
    """Whether bit-exactness is promised here: the hardware is the plan's, as threads and libraries are anyway."""
    planned = plan.body["hardware"]
    if machine().processor != planned["processor"]:
        return False
    return planned["accelerator"] is None or planned["accelerator"] == accelerator()[0]


def _parent(ledger: Ledger, plan: Record) -> Record | None:
    parent = plan.ref("parent")
    return None if parent is None else ledger.get(parent)


def _material(ledger: Ledger, plan: Record, shelf: Path, origin: Record | None) -> Material:
    check_surroundings(plan, os.environ)
    check_fresh(plan)
    if origin is not None:
        for item in origin.body["files"]:
            ledger.blobs.check(item["digest"])
    split = ledger.get(str(plan.ref("split")))
    model = ledger.get(str(plan.ref("model")))
    folder = model_folder(shelf, model)
    rows, evaluated = method_of(plan).rows(ledger, plan, split)
    return Material(plan, model, folder, rows, evaluated, origin)


def _first_step(material: Material) -> int:
    """The step that an attempt stands at before its first: 0 unless it goes on exactly."""
    weights_only = material.origin is None or (
        material.plan.body["start"] == "weights"
        and material.origin.id == material.plan.ref("parent")
    )
    return 0 if weights_only or material.origin is None else int(material.origin.body["step"])


def _attempt(attempt: Attempt) -> RunResult:
    """Everything after the claim, whether it launched or resumed the run."""
    material, place = attempt.material, attempt.place
    method = method_of(material.plan)
    supervised = method.supervised(
        attempt,
        {
            "ledger": attempt.ledger,
            "plan": material.plan,
            "run": attempt.run,
            "origin": material.origin,
            "given": frozenset(row.digest for row in material.rows),
            "output": place / "output",
            "tell": attempt.tell,
            "exact": promised(material.plan),
        },
    )
    log = child_log(attempt.work)
    try:
        place.mkdir(parents=True, mode=0o700)
        claimed = {"run": attempt.run.id, "work": str(attempt.work), "attempt": attempt.number}
        attempt.tell("claimed", claimed)
        write_rows(place / "rows.jsonl", material.rows)
        if material.validation:
            write_rows(place / "validation.jsonl", material.validation)
        job = _job(attempt, supervised) | method.job(attempt)
        threads = material.plan.body["settings"]["threads"]
        ended = run_child(
            method.child or CHILD,
            job,
            supervised.answer,
            log,
            threads=threads,
            processes=processes_of(material.plan),
            rank_wait_s=rank_wait_s(material.plan),
            stop_requested=attempt,
        )
    except (EvidenceError, UsageError) as error:
        attempt.end(supervised, "failed", "refused", f"{error.code}: {error.message}")
        raise
    except OSError as error:
        attempt.end(supervised, "failed", "internal", f"the machine refused a file: {error}")
        raise
    except KeyboardInterrupt:
        attempt.end(supervised, "stopped", None, "interrupted: the child was killed")
        raise
    end = attempt.end(supervised, *_how_it_ended(supervised, ended))
    return RunResult(attempt.run, end, supervised.checkpoint, log)


def _job(attempt: Attempt, supervised: Supervised) -> dict[str, Any]:
    """What the child's job has whatever the method: model, rows, settings, where to begin and where to end."""
    ledger, material, place = attempt.ledger, attempt.material, attempt.place
    model, plan = material.model, material.plan
    return {
        **planned_job(plan, model, material.folder),
        "rows": str(place / "rows.jsonl"),
        "validation": str(place / "validation.jsonl") if material.validation else None,
        "output": str(supervised.output),
        "until": supervised.budget,
        "start": start_job(ledger, material.origin, _first_step(material), place / "start"),
    }


def planned_job(plan: Record, model: Record, folder: Path) -> dict[str, Any]:
    """What a job takes from a plan: model, settings, and what it says of libraries, tensors and hardware."""
    named = {name: model.body[name] for name in ("name", "files", "revision")}
    return {
        "model": {"path": str(folder), **named},
        "settings": plan.body["settings"],
        "library_settings": plan.body.get("library_settings"),
        "trained": plan.body.get("trained"),
        "accelerator": plan.body["hardware"]["accelerator"],
    }


def start_job(ledger: Ledger, origin: Record | None, step: int, folder: Path) -> dict[str, Any]:
    """The job's `start`, the checkpoint recovered from the ledger into a folder.

    Raises:
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`: its bytes are not what the record says.
    """
    if origin is None:
        return {"mode": "fresh", "step": 0, "checkpoint": None}
    recover(ledger, origin, folder)
    checkpoint = {
        "path": str(folder),
        "files": origin.body["files"],
        "state": origin.body["state"]["value"],
    }
    return {"mode": "exact" if step else "weights", "step": step, "checkpoint": checkpoint}


def _how_it_ended(supervised: Supervised, ended: ChildExit) -> tuple[str, str | None, str]:
    """Outcome, failure and detail of the record."""
    live = supervised.ledger.state().runs[supervised.run.id].live
    if ended.outcome == "completed" and live < supervised.budget:
        return "failed", "short_run", f"{live} of {supervised.budget} updates"
    if ended.outcome == "completed" and supervised.newest_checkpoint() is None:
        return "failed", "protocol", "no checkpoint of the last update was published"
    detail = f"{ended.code}: {ended.message}" if ended.code else ended.message or ended.outcome
    return ended.outcome, ended.failure, detail


__all__ = [
    "CHILD",
    "NOT_ESTABLISHED",
    "RunResult",
    "launch_sft",
    "newest_checkpoint",
    "promised",
    "resume_sft",
    "start_job",
    "start_token",
]
