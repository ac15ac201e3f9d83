"""One attempt at a run while it goes on: what the child says becomes records, or is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ledger.blobs import BINARY, JSON, SAFETENSORS
from ledger.digests import inventory, tree_digest
from ledger.errors import EvidenceError
from runners.prepare.data import put_lines
from runners.train.binding import check_folder, weights_left
from runners.train.child_events import (
    FIELDS,
    ROW_COUNTS,
    check_event,
    checkpoint_folder,
    row_counts,
    rows_read,
)
from runners.train.world_size import check_child, processes_of
from verifiers.learning.learner_state import parts_of_folder
from verifiers.replay.learning import batch_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.child import Event, Reply

MAX_ROWS_IN_RECORD = 512
NOT_ESTABLISHED = [
    "that the recorded loss and gradient were computed as stated: re-execution of its steps shows it",
    "that the trained weights are better than their base: an evaluation shows it",
]
OTHER_HARDWARE = (
    "that redone updates are bit for bit those before: the run went on on other hardware"
)


@dataclass
class Supervised:
    """An attempt at a run: where it goes on from, its records so far, and what the child said.

    Attributes:
        ledger: open for writing.
        plan: of the run.
        run: its launch.
        origin: the checkpoint that this attempt goes on from or takes its weights from.
        given: digests of the rows that the child may read.
        output: the child's own folder.
        tell: called with (event, fields) for progress.
        exact: redone updates are promised to be bit for bit those before.
        not_established: what more the attempt does not show, beside what none of them does.
    """

    fields: ClassVar[Mapping[str, Mapping[str, type]]] = FIELDS

    ledger: Ledger
    plan: Record
    run: Record
    origin: Record | None
    given: Collection[str]
    output: Path
    tell: Callable[[str, dict[str, Any]], None]
    exact: bool = True
    not_established: tuple[str, ...] = ()
    batch: Record | None = None
    checkpoint: Record | None = None
    restored: bool = False
    rows: dict[str, int] = field(init=False)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    last_update: str | None = field(init=False)
    datums: int = field(init=False)
    superseded: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        state = self.ledger.state().runs[self.run.id]
        planned = self.plan.body["rows"]
        self.rows = {name: planned.get(name, 0) for name in ROW_COUNTS}
        self.last_update, self.datums = state.last_update, state.datums
        self.superseded = dict(state.superseded)

    @property
    def budget(self) -> int:
        """In updates, those inherited or redone included."""
        return int(self.plan.body["budget_updates"])

    @property
    def fork(self) -> bool:
        """Whether the plan is a fork."""
        return bool(self.plan.body.get("fork", False))

    def answer(self, event: Event) -> Reply:
        """Write what an event says; the reply names the record.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`.
            UsageError: what the rules refuse.
        """
        check_event(event, self.fields)
        return self.handlers()[event["event"]](event)

    def handlers(self) -> dict[str, Callable[[Event], Reply]]:
        """What answers each event."""
        return {
            "start": self._start,
            "restored": lambda event: _named(self._restored(event)),
            "batch": lambda event: _named(self.build(event)),
            "update": lambda event: _named(self._update(event)),
            "checkpoint": lambda event: _named(self._checkpoint(event)),
        }

    def _start(self, event: Event) -> Reply:
        check_child(self.plan, event.get("processes", 1))
        self.rows = row_counts(event)
        self.tell("start", event)
        return {}

    def _restored(self, event: Event) -> Record:
        if self.origin is None or self.restored:
            raise EvidenceError("CHILD_PROTOCOL", "nothing was given to restore")
        self.restored = True
        return self.ledger.append(
            "checkpoint.restored",
            {
                "mode": event["mode"],
                "state": {"scheme": "tensors", "value": event["state"]},
                "digests": event["digests"],
                "fork": self.fork,
            },
            {"run": self.run.id, "checkpoint": self.origin.id},
        )

    def check_restored(self, event: Event) -> None:
        """Refuse what comes before the state to go on from was put back.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`.
        """
        if self.origin is not None and not self.restored:
            name = event["event"]
            raise EvidenceError("CHILD_PROTOCOL", f"a {name} came before the state was restored")

    def build(self, event: Event) -> Record:
        """Record what the next step is about to read.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`.
        """
        self.check_restored(event)
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
            {"run": self.run.id, "split": str(self.plan.ref("split"))},
        )
        self.datums += len(rows)
        return self.batch

    def _update(self, event: Event) -> Record:
        if self.batch is None:
            raise EvidenceError("CHILD_PROTOCOL", "an update came before its batch")
        refs: dict[str, str | list[str]] = {"run": self.run.id, "batch": [self.batch.id]}
        if self.last_update is not None:
            refs["previous"] = self.last_update
        redone = self.superseded.pop(str(event["step"]), None)
        if redone is not None:
            refs["replays"] = redone
        names = ("step", "learning_rate", "loss", "gradient_norm")
        body = {name: event[name] for name in names}
        update = self.ledger.append(
            "update.acknowledged",
            {
                **body,
                "before": {"scheme": "tensors", "value": event["before"]},
                "after": {"scheme": "tensors", "value": event["after"]},
                "figures": event["figures"],
                "ranks": event.get("ranks", []),
                "provider": {},
            },
            refs,
        )
        self.last_update = update.id
        self.metrics.append({**body, "time": update.time, **event["figures"]})
        self.tell("update", {**body, "budget": self.budget})
        return update

    def _checkpoint(self, event: Event) -> Record:
        if self.last_update is None:
            raise EvidenceError("CHILD_PROTOCOL", "a checkpoint came before any update")
        folder = checkpoint_folder(event, self.output)
        check_folder(self.ledger, self.plan, folder, self.last_update)
        entries = inventory(folder)
        parts = parts_of_folder(folder, event["step"], processes_of(self.plan))
        files = [self._keep(folder, item.path) for item in entries]
        self.checkpoint = self.ledger.append(
            "checkpoint.published",
            {
                "step": event["step"],
                "files": files,
                "tree": tree_digest(entries),
                "state": {"scheme": "tensors", "value": event["state"]},
                "completeness": parts,
                "spent_updates": event["step"],
                "spent_datums": self.datums,
                "hosted": None,
            },
            {"run": self.run.id, "update": self.last_update},
        )
        self.tell("checkpoint", {"step": event["step"], "id": self.checkpoint.id})
        return self.checkpoint

    def _keep(self, folder: Path, path: str) -> dict[str, Any]:
        kinds = {".safetensors": SAFETENSORS, ".json": JSON}
        media_type = kinds.get(Path(path).suffix, BINARY)
        blob = self.ledger.blobs.put_file(folder / path, media_type)
        return {"path": path, "size": blob.size, "digest": blob.digest}

    def newest_checkpoint(self) -> Record | None:
        """The checkpoint of the last update: published by this attempt, or the one that it went on from."""
        last = self.ledger.state().runs[self.run.id].last_update
        found = [item for item in (self.checkpoint, self.origin) if item is not None]
        return next((item for item in found if item.ref("update") == last), None)

    def end(self, outcome: str, failure: str | None, detail: str) -> Record:
        """Record how the attempt ended, with the ledger's own counters."""
        state = self.ledger.state().runs[self.run.id]
        metrics = put_lines(self.ledger, self.metrics) if self.metrics else None
        refs: dict[str, str | list[str]] = {"run": self.run.id}
        if state.last_update is not None:
            refs["last_update"] = state.last_update
        checkpoint = self.checkpoint
        bound: dict[str, Any] = {}
        if outcome == "completed":
            checkpoint = self.newest_checkpoint()
            bound = {"weights": weights_left(self.ledger, checkpoint)} if checkpoint else {}
        if checkpoint is not None:
            refs["checkpoint"] = checkpoint.id
        return self.ledger.append(
            "run.ended",
            {
                **bound,
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
                "not_established": [
                    *NOT_ESTABLISHED,
                    *self.not_established,
                    *([] if self.exact else [OTHER_HARDWARE]),
                ],
                "metrics": metrics.model_dump() if metrics else None,
            },
            refs,
        )


def _named(record: Record) -> Reply:
    return {"id": record.id}
