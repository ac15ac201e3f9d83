"""The supervisor of a supervised run: it claims the plan, starts the child and writes every record.

The child holds no key and waits for each answer, so an optimizer step whose record cannot be written does not
happen. Whatever ends the run, `run.ended` says with which counters, and what that does not establish. Launching and
resuming differ in their first record and in where the child begins; everything after that is the same attempt.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from runners.child import ChildExit, run_child
from runners.environment import machine
from runners.interrupts import first_is_a_wish
from runners.prepare.shelf import model_folder
from runners.train.plans import check_fresh, training_rows, write_rows
from runners.train.processes import start_token, this_process
from runners.train.recovery import recover
from runners.train.supervised import NOT_ESTABLISHED, Supervised
from runners.train.world_size import check_surroundings, processes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.data.hand_out import HandedOut

    Tell = Callable[[str, dict[str, Any]], None]

CHILD = "runners.train.sft"


@dataclass(frozen=True)
class RunResult:
    """An attempt that ended: its run's launch, its end, its last checkpoint, and where its log lies."""

    run: Record
    ended: Record
    checkpoint: Record | None
    log: Path


@dataclass(frozen=True)
class _Material:
    """What an attempt works with, looked up before anything is claimed."""

    plan: Record
    model: Record
    folder: Path
    rows: list[HandedOut]
    origin: Record | None


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
        tell: called with (event, fields) for progress: start, update, checkpoint.
        stop_requested: asked at every event; the child then stops at its next safe boundary, as after a Ctrl-C.

    Raises:
        UsageError: `PLAN_STALE`, `WORLD_SIZE`, `PLAN_LAUNCHED`, or what the rules refuse; the run is then not launched.
        LedgerError: a record of the run could not be written; `run.ended` says so where that still can be.
        OSError: the machine refused a file; `run.ended` says so too.
        KeyboardInterrupt: the second Ctrl-C.
    """
    material = _material(ledger, plan, shelf, _parent(ledger, plan))
    body = {**this_process(), "seen": ledger.seen().model_dump()}
    run = ledger.append("run.launched", body, {"plan": plan.id})
    return _attempt(ledger, run, material, tell, stop_requested)


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
    ledger.append("run.resumed", body, refs)
    return _attempt(ledger, run, material, tell, stop_requested)


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
    """Whether bit-exactness is promised here: the processor is the plan's, as threads and libraries are anyway."""
    return bool(machine().processor == plan.body["hardware"]["processor"])


def _parent(ledger: Ledger, plan: Record) -> Record | None:
    parent = plan.ref("parent")
    return None if parent is None else ledger.get(parent)


def _material(ledger: Ledger, plan: Record, shelf: Path, origin: Record | None) -> _Material:
    check_surroundings(plan, os.environ)
    check_fresh(plan)
    if origin is not None:
        for item in origin.body["files"]:
            ledger.blobs.check(item["digest"])
    split = ledger.get(str(plan.ref("split")))
    model = ledger.get(str(plan.ref("model")))
    folder = model_folder(shelf, model)
    return _Material(plan, model, folder, training_rows(ledger, split), origin)


def _first_step(material: _Material) -> int:
    """The step that an attempt stands at before its first: 0 unless it goes on exactly."""
    weights_only = material.origin is None or (
        material.plan.body["start"] == "weights"
        and material.origin.id == material.plan.ref("parent")
    )
    return 0 if weights_only or material.origin is None else int(material.origin.body["step"])


def _attempt(
    ledger: Ledger,
    run: Record,
    material: _Material,
    tell: Tell,
    stop_requested: Callable[[], bool],
) -> RunResult:
    """Everything after the claim, whether it launched or resumed the run."""
    work = ledger.path / "work" / run.id[7:23]
    number = 1 + len(ledger.referrers(run.id, "run", "run.resumed"))
    place = work / f"attempt-{number}"
    supervised = Supervised(
        ledger,
        material.plan,
        run,
        material.origin,
        frozenset(row.digest for row in material.rows),
        place / "output",
        tell,
        promised(material.plan),
    )
    log = work / "child.log"
    settings = material.plan.body["settings"]
    try:
        place.mkdir(parents=True, mode=0o700)
        write_rows(place / "rows.jsonl", material.rows)
        job = _job(ledger, material, place, supervised)
        with first_is_a_wish() as interrupted:
            ended = run_child(
                CHILD,
                job,
                supervised.answer,
                log,
                threads=settings["threads"],
                processes=processes_of(material.plan),
                stop_requested=lambda: interrupted() or stop_requested(),
            )
    except (EvidenceError, UsageError) as error:
        supervised.end("failed", "refused", f"{error.code}: {error.message}")
        raise
    except OSError as error:
        supervised.end("failed", "internal", f"the machine refused a file: {error}")
        raise
    except KeyboardInterrupt:
        supervised.end("stopped", None, "interrupted: the child was killed")
        raise
    return RunResult(run, _record_end(supervised, ended), supervised.checkpoint, log)


def _job(
    ledger: Ledger, material: _Material, place: Path, supervised: Supervised
) -> dict[str, Any]:
    """The child's job: model, rows, settings, where to begin and where to end."""
    model, plan = material.model, material.plan
    files = {"name": model.body["name"], "files": model.body["files"]}
    return {
        "model": {"path": str(material.folder), **files},
        "rows": str(place / "rows.jsonl"),
        "settings": plan.body["settings"],
        "output": str(supervised.output),
        "until": supervised.budget,
        "start": start_job(ledger, material.origin, _first_step(material), place / "start"),
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


def _record_end(supervised: Supervised, ended: ChildExit) -> Record:
    live = supervised.ledger.state().runs[supervised.run.id].live
    if ended.outcome == "completed" and live < supervised.budget:
        return supervised.end("failed", "short_run", f"{live} of {supervised.budget} updates")
    detail = f"{ended.code}: {ended.message}" if ended.code else ended.message or ended.outcome
    return supervised.end(ended.outcome, ended.failure, detail)


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
