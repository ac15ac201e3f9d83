"""A long unsigned ledger with every kind that grows: runs on rows and on rollouts, checkpoints, evaluations, notes.

Unsigned (every signature is 64 zero bytes) and written row by row without the rules: reading looks at neither, and
signing a million records would take longer than all of the bench. Bodies are those of the record models.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import samples
from world import ORIGIN, World, clock_at, key, row_of

from benches.report import Settings
from ledger import record as records
from ledger.book import DATABASE, Ledger
from ledger.digests import sha256
from ledger.record import Record, Refs
from ledger.store.sqlite import SqliteStore

RUNS = 40
ROWS_A_BATCH = 4
CHECKPOINT_EVERY = 50
NOTE_EVERY = 10
BACK_EVERY = 400
GROUP_ROWS = 10_000
UNSIGNED = bytes(64)


def built(settings: Settings, size: int) -> Path:
    """The ledger in the scratch folder, made where it is not there yet."""
    folder = settings.scratch / f"history-{size}"
    if not folder.exists():
        settings.say(f"building an unsigned ledger of {size:,} records in {settings.scratch}")
        building = folder.with_suffix(".building")
        shutil.rmtree(building, ignore_errors=True)
        build(building, size)
        building.rename(folder)
    return folder


def build(folder: Path, size: int) -> None:
    """Write a ledger of this many records into a folder that is not there yet."""
    world = World()
    for kind in ("promotion.granted", "promotion.refused", "blob.withheld", "leakage.accepted"):
        world.add(kind)
    launches = []
    for _ in range(RUNS):
        world.add("plan.prepared")
        launches.append(world.add("run.launched"))
    protocol, split = world.need("protocol.registered"), world.need("split.declared")
    world.write(folder)
    store = SqliteStore.open_writer(folder / DATABASE)
    story = _Story(world.records[-1], protocol.id, split.id)
    rows = story.records([_Run(launch.id, place) for place, launch in enumerate(launches)], size)
    while group := [row_of(record) for record in islice(rows, GROUP_ROWS)]:
        with store.transaction():
            store.append(group)
    store.close()
    with Ledger.open(folder, key=key("writer")):
        pass  # writes the derived index, as a ledger in use has it


@dataclass
class _Run:
    """A run as the story goes on; every second one is trained on rollouts."""

    id: str
    place: int
    step: int = 0
    update: str | None = None
    checkpoint: tuple[str, int] | None = None
    left: dict[int, str] = field(default_factory=dict)
    went_back_at: int = 0

    @property
    def samples(self) -> bool:
        return self.place % 2 == 1


class _Story:
    """Records one after the other, each chained to the one before."""

    def __init__(self, last: Record, protocol: str, split: str) -> None:
        self._last = last
        self._protocol = protocol
        self._split = split

    def records(self, runs: list[_Run], size: int) -> Iterator[Record]:
        """Steps of all runs by turns, until the ledger has its size."""
        while True:
            for run in runs:
                for record in self._step(run):
                    if record.seq >= size:
                        return
                    yield record

    def _step(self, run: _Run) -> Iterator[Record]:
        run.step += 1
        refs: Refs = {"run": run.id}
        if run.samples:
            groups = [self._group(run, task) for task in ("easy", "hard")]
            yield from groups
            refs["group"] = [item.id for item in groups]
        else:
            refs["split"] = self._split
        digest = sha256(f"{run.place} {run.step}".encode())
        rows = [sha256(f"row {(run.step * 7 + row) % 997}".encode()) for row in range(ROWS_A_BATCH)]
        batch = self._next(
            "batch.built", refs, step=run.step, digest=digest, rows=rows, datums=ROWS_A_BATCH
        )
        yield batch
        update = self._update(run, batch.id)
        yield update
        if run.step % NOTE_EVERY == 0:
            yield self._next("note.added", {"about": [run.id, update.id]}, text="looked at by hand")
        if run.step % CHECKPOINT_EVERY == 0:
            yield from self._checkpoint(run)
        if run.step % BACK_EVERY == BACK_EVERY - 10 and run.step > run.went_back_at:
            yield self._back(run)

    def _group(self, run: _Run, task: str) -> Record:
        level = str(float(run.step % 3 > 0))  # every third group had no signal
        return self._next(
            "rollout.group",
            {"run": run.id, "policy": run.update or run.id},
            task=sha256(task.encode()),
            script=sha256(f"{run.place} {run.step} {task}".encode()),
            rewards=["1.0", "0.0"] if level != "0.0" else ["1.0", "1.0"],
            advantages=[level, "-" + level if level != "0.0" else level],
        )

    def _update(self, run: _Run, batch: str) -> Record:
        refs: Refs = {"run": run.id, "batch": [batch]}
        if run.update is not None:
            refs["previous"] = run.update
        if run.step in run.left:
            refs["replays"] = run.left.pop(run.step)
        states = {"before": samples.weights(run.step - 1), "after": samples.weights(run.step)}
        made = self._next(
            "update.acknowledged", refs, step=run.step, loss=str(1 + 1 / run.step), **states
        )
        run.update = made.id
        if run.step % BACK_EVERY > BACK_EVERY - 50:
            run.left[run.step] = made.id
        return made

    def _checkpoint(self, run: _Run) -> Iterator[Record]:
        made = self._next(
            "checkpoint.published",
            {"run": run.id, "update": str(run.update)},
            step=run.step,
            tree=sha256(f"tree {run.place} {run.step}".encode()),
            state=samples.weights(run.step),
        )
        run.checkpoint = (made.id, run.step)
        yield made
        arm = self._next("arm.transcribed", {"protocol": self._protocol, "checkpoint": made.id})
        yield arm
        yield self._next("evaluation.completed", {"protocol": self._protocol, "arm": [arm.id]})

    def _back(self, run: _Run) -> Record:
        """The run goes back to its newest checkpoint; what came after it does not count any more."""
        assert run.checkpoint is not None  # the first comes long before
        run.went_back_at = run.step
        checkpoint, run.step = run.checkpoint
        refs: Refs = {"run": run.id, "checkpoint": checkpoint}
        return self._next("run.resumed", refs, from_update=run.step)

    def _next(self, kind: str, refs: Refs, **changes: object) -> Record:
        seq = self._last.seq + 1
        entry = records.build_entry(
            ledger=ORIGIN,
            seq=seq,
            prev=self._last.id,
            kind=kind,
            schema=1,
            time=clock_at(seq),
            actor=key("writer").id,
            refs=refs,
            body=samples.body(kind, **changes),
            statement=None,
        )
        self._last = records.parse(entry, UNSIGNED)
        return self._last
