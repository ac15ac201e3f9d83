"""The ledger that the benches grow: a hundred training runs side by side, by the real rules.

Every hundred records are one step of each run: its batch, then its update, then a note about both. Entries
have about 1 kB and 2.7 refs on average. What a group refers to was appended by groups before it, so a group
can be one transaction.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import samples
from world import World, key

from benches.report import Settings
from ledger.appending import Draft
from ledger.book import Ledger
from ledger.canonical import MAX_INTEGER
from ledger.digests import sha256
from ledger.record import Refs

RUNS = 100
ROWS_A_BATCH = 8
_REMARK = (
    "Looked at the rows of this batch by hand: each answer names the order that the customer asked about, "
    "no text is cut off at the limit, and the loss of this step lies within what the last ten steps would "
    "lead one to expect. Two rows ask for the same exchange in other words, which the plan allows; a third one "
    "was hard to read and is right all the same. Nothing here was changed afterwards. "
)


class Training:
    """The drafts of a hundred runs, group by group.

    Args:
        ledger: open with the writer's key; its live runs are those of `make`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._runs = list(ledger.state().runs)

    def groups(self) -> Iterator[list[Draft]]:
        """Groups of a hundred drafts without end; append each before taking the next."""
        while True:
            yield [self._batch(run) for run in self._runs]
            yield [self._update(run) for run in self._runs]
            yield [self._note(run) for run in self._runs]

    def _batch(self, run_id: str) -> Draft:
        run = self._ledger.state().runs[run_id]
        step = run.live + 1
        digest = sha256(f"{run_id} {step}".encode())
        rows = [sha256(f"{digest} {row}".encode()) for row in range(ROWS_A_BATCH)]
        body = {
            "step": step,
            "digest": digest,
            "rows": rows,
            "datums": ROWS_A_BATCH,
            "trainable_tokens": 40 * ROWS_A_BATCH,
        }
        return Draft("batch.built", body, {"run": run_id, "split": run.split})

    def _update(self, run_id: str) -> Draft:
        run = self._ledger.state().runs[run_id]
        refs: Refs = {"run": run_id, "batch": list(run.pending)}
        if run.last_update is not None:
            refs["previous"] = run.last_update
        body = {
            "step": run.live + 1,
            "learning_rate": "0.0001",
            "loss": "1.6094379124341003",
            "gradient_norm": "0.7071067811865476",
            "before": samples.weights(run.live),
            "after": samples.weights(run.live + 1),
            "figures": {"entropy": "2.302585092994046", "tokens": 40 * ROWS_A_BATCH},
            "ranks": [],
        }
        return Draft("update.acknowledged", body, refs)

    def _note(self, run_id: str) -> Draft:
        update = self._ledger.find(str(self._ledger.state().runs[run_id].last_update))
        assert update is not None  # the group before appended it
        about = [run_id, update.id, *update.ref_list("batch")]
        return Draft(
            "note.added", {"text": _REMARK + f"Step {update.body['step']}."}, {"about": about}
        )


def make(folder: Path) -> None:
    """A new ledger whose hundred runs are launched and not begun."""
    world = World()
    for _ in range(RUNS):
        world.add("plan.prepared", budget_updates=MAX_INTEGER)
        world.add("run.launched")
    world.replay(folder).close()


def open_ledger(folder: Path) -> Ledger:
    """A ledger of `make`, opened to append, with a high-water file as in earnest."""
    return Ledger.open(folder, key=key("writer"), state_dir=folder.with_suffix(".state"))


def grow(folder: Path, size: int) -> None:
    """Append whole steps until the ledger has `size` records."""
    with open_ledger(folder) as ledger:
        groups = Training(ledger).groups()
        while ledger.size < size:
            for _ in range(3):
                ledger.append_many(next(groups))


def grown(settings: Settings, size: int) -> Path:
    """A ledger of at least `size` records in the scratch folder, made where none is there yet."""
    folder = settings.scratch / f"ledger-{size}"
    if not folder.exists():
        settings.say(f"building a ledger of {size:,} records in {settings.scratch}")
        building = folder.with_suffix(".building")
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(building.with_suffix(".state"), ignore_errors=True)
        make(building)
        grow(building, size)
        building.rename(folder)
    return folder
