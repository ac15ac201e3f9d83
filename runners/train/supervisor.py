"""The supervisor of a supervised run: it claims the plan, starts the child and writes every record.

The child holds no key and waits for each answer, so an optimizer step whose record cannot be written does
not happen. Whatever ends the run, `run.ended` says with which counters, and what that does not establish.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.blobs import BINARY, JSON, SAFETENSORS
from ledger.digests import inventory, tree_digest
from ledger.errors import EvidenceError, UsageError
from runners.child import ChildExit, Event, Reply, run_child
from runners.interrupts import first_is_a_wish
from runners.prepare.data import put_lines
from runners.prepare.shelf import model_folder
from runners.train.child_events import (
    ROW_COUNTS,
    check_event,
    checkpoint_folder,
    row_counts,
    rows_read,
)
from runners.train.plans import check_fresh, training_rows, write_rows
from verifiers.replay.learning import batch_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ledger.book import Ledger
    from ledger.record import Record

CHILD = "runners.train.sft"
MAX_ROWS_IN_RECORD = 512
NOT_ESTABLISHED = [
    "that the recorded loss and gradient were computed as stated: re-execution shows it",
    "that the adapter is better than its base: an evaluation shows it",
]


@dataclass
class _Supervised:
    """One run while it goes on: its records so far, and what the child said."""

    ledger: Ledger
    run: Record
    split: Record
    budget: int
    given: Collection[str]
    output: Path
    tell: Callable[[str, dict[str, Any]], None]
    batch: Record | None = None
    update: Record | None = None
    checkpoint: Record | None = None
    datums: int = 0
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROW_COUNTS, 0))
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, event: Event) -> Reply:
        """Write what an event says; the reply names the record.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`.
            UsageError: what the rules refuse.
        """
        check_event(event)
        handlers = {
            "start": self._start,
            "batch": self._batch,
            "update": self._update,
            "checkpoint": self._checkpoint,
        }
        record = handlers[event["event"]](event)
        return {"id": record.id} if record is not None else {}

    def _start(self, event: Event) -> None:
        self.rows = row_counts(event)
        self.tell("start", event)

    def _batch(self, event: Event) -> Record:
        rows = rows_read(event, self.given)
        inline = len(rows) <= MAX_ROWS_IN_RECORD
        blob = None if inline else put_lines(self.ledger, ({"row": row} for row in rows))
        self.batch = self.ledger.append(
            "batch.built",
            {
                "step": event["step"],
                "digest": batch_digest(rows),
                "rows": rows if inline else [],
                "rows_blob": blob.model_dump() if blob else None,
                "datums": len(rows),
                "trainable_tokens": event["trainable_tokens"],
                "dropped": [],
            },
            {"run": self.run.id, "split": self.split.id},
        )
        self.datums += len(rows)
        return self.batch

    def _update(self, event: Event) -> Record:
        if self.batch is None:
            raise EvidenceError("CHILD_PROTOCOL", "an update came before its batch")
        refs: dict[str, str | list[str]] = {"run": self.run.id, "batch": [self.batch.id]}
        if self.update is not None:
            refs["previous"] = self.update.id
        names = ("step", "learning_rate", "loss", "gradient_norm")
        body = {name: event[name] for name in names}
        self.update = self.ledger.append(
            "update.acknowledged",
            {
                **body,
                "before": {"scheme": "tensors", "value": event["before"]},
                "after": {"scheme": "tensors", "value": event["after"]},
                "figures": event["figures"],
                "ranks": [],
                "provider": {},
            },
            refs,
        )
        self.metrics.append({**body, "time": self.update.time, **event["figures"]})
        self.tell("update", {**body, "budget": self.budget})
        return self.update

    def _checkpoint(self, event: Event) -> Record:
        if self.update is None:
            raise EvidenceError("CHILD_PROTOCOL", "a checkpoint came before any update")
        folder = checkpoint_folder(event, self.output)
        entries = inventory(folder)
        files = [self._keep(folder, item.path) for item in entries]
        self.checkpoint = self.ledger.append(
            "checkpoint.published",
            {
                "step": event["step"],
                "files": files,
                "tree": tree_digest(entries),
                "state": {"scheme": "tensors", "value": event["state"]},
                "completeness": {
                    "weights": True,
                    "optimizer": False,
                    "scheduler": False,
                    "random": False,
                    "sampler": False,
                },
                "spent_updates": event["step"],
                "spent_datums": self.datums,
                "hosted": None,
            },
            {"run": self.run.id, "update": self.update.id},
        )
        self.tell("checkpoint", {"step": event["step"], "id": self.checkpoint.id})
        return self.checkpoint

    def _keep(self, folder: Path, path: str) -> dict[str, Any]:
        kinds = {".safetensors": SAFETENSORS, ".json": JSON}
        media_type = kinds.get(Path(path).suffix, BINARY)
        blob = self.ledger.blobs.put_file(folder / path, media_type)
        return {"path": path, "size": blob.size, "digest": blob.digest}

    def end(self, outcome: str, failure: str | None, detail: str) -> Record:
        """Record how the run ended, with the ledger's own counters."""
        state = self.ledger.state().runs[self.run.id]
        metrics = put_lines(self.ledger, self.metrics) if self.metrics else None
        refs: dict[str, str | list[str]] = {"run": self.run.id}
        if state.last_update is not None:
            refs["last_update"] = state.last_update
        if self.checkpoint is not None:
            refs["checkpoint"] = self.checkpoint.id
        return self.ledger.append(
            "run.ended",
            {
                "outcome": outcome,
                "failure": failure,
                "detail": detail[:4000],
                "counters": {
                    "groups": state.groups,
                    "datums": state.datums,
                    "updates": state.live,
                    "outcomes": 0,
                },
                "rows": self.rows,
                "not_established": NOT_ESTABLISHED,
                "metrics": metrics.model_dump() if metrics else None,
            },
            refs,
        )


@dataclass(frozen=True)
class RunResult:
    """A run that ended: its launch, its end, its last checkpoint, and where its log lies."""

    run: Record
    ended: Record
    checkpoint: Record | None
    log: Path


def launch_sft(
    ledger: Ledger,
    plan: Record,
    shelf: Path,
    tell: Callable[[str, dict[str, Any]], None],
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
        UsageError: `PLAN_STALE`, `PLAN_LAUNCHED`, or what the rules refuse; the run is then not launched.
        LedgerError: a record of the run could not be written; `run.ended` says so where that still can be.
        OSError: the machine refused a file; `run.ended` says so too.
        KeyboardInterrupt: the second Ctrl-C.
    """
    check_fresh(plan)
    split = ledger.get(str(plan.ref("split")))
    model = ledger.get(str(plan.ref("model")))
    folder = model_folder(shelf, model)
    rows = training_rows(ledger, split)
    run = ledger.append(
        "run.launched",
        {
            "host": platform.node()[:200] or "unknown",
            "process": os.getpid(),
            "start_token": start_token(os.getpid()),
            "seen": ledger.seen().model_dump(),
        },
        {"plan": plan.id},
    )
    work = ledger.path / "work" / run.id[7:23]
    given = frozenset(row.digest for row in rows)
    budget = plan.body["budget_updates"]
    supervised = _Supervised(ledger, run, split, budget, given, work / "output", tell)
    settings = plan.body["settings"]
    job = {
        "model": {"path": str(folder), "name": model.body["name"], "files": model.body["files"]},
        "rows": str(work / "rows.jsonl"),
        "settings": settings,
        "output": str(work / "output"),
    }
    log = work / "child.log"
    try:
        work.mkdir(parents=True, mode=0o700)
        write_rows(work / "rows.jsonl", rows)
        with first_is_a_wish() as interrupted:
            ended = run_child(
                CHILD,
                job,
                supervised.answer,
                log,
                threads=settings["threads"],
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


def _record_end(supervised: _Supervised, ended: ChildExit) -> Record:
    live = supervised.ledger.state().runs[supervised.run.id].live
    if ended.outcome == "completed" and live < supervised.budget:
        return supervised.end("failed", "short_run", f"{live} of {supervised.budget} updates")
    detail = f"{ended.code}: {ended.message}" if ended.code else ended.message or ended.outcome
    return supervised.end(ended.outcome, ended.failure, detail)


def start_token(pid: int) -> str:
    """What tells this process from a later one with the same number: its start in clock ticks since boot."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return "gone" if Path("/proc/self").exists() else "unknown"
    return stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
