"""What the ledger costs a supervised run: the same training with it and without it, in turns.

Wall-clock seconds from the child's first event to its end. Without the ledger the child runs the same trainer on the same
rows in the same order, and takes no digest of a state, asks nobody, and reads nothing back that it wrote
(`benches.unledgered`). With --full it is SmolLM2-135M, which takes long; the slice trains a tiny model, whose steps are
so short that its ratio says nothing.
"""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from campaigns import sft_world
from campaigns.sft_world import SftWorld, make_world

from benches.report import Row, Settings
from runners.child import run_child
from runners.prepare.shelf import model_folder
from runners.train.plans import training_rows, write_rows
from runners.train.supervisor import launch_sft

LIMIT = 0.02
CHILD = "tools.benches.unledgered"
SETTINGS = {"threads": 2, "save_steps": 0, "batch_size": 4}


def run(settings: Settings) -> list[Row]:
    """Medians of the pairs, and their ratio less one."""
    model, pairs, epochs = ("smollm2", 5, 4) if settings.full else ("tiny", 2, 2)
    folder = settings.scratch / "overhead"
    shutil.rmtree(folder, ignore_errors=True)
    sft_world.SETTINGS |= SETTINGS
    sft_world.EPOCHS = epochs
    world = make_world(folder / "world", model)
    with_it, without = [], []
    for pair in range(pairs):
        settings.say(f"{model} with and without the ledger, pair {pair + 1} of {pairs}")
        with_it.append(_ledgered_s(world.copied(folder / f"on-{pair}")))
        without.append(_unledgered_s(world, folder / f"off-{pair}"))
    shutil.rmtree(folder)
    share = statistics.median(with_it) / statistics.median(without) - 1
    return [
        Row(
            f"training with the ledger against without, {model}",
            round(share, 4),
            "ratio",
            "less",
            LIMIT if settings.full else None,
            details={
                "ledger_on_s": [round(took, 3) for took in with_it],
                "ledger_off_s": [round(took, 3) for took in without],
            },
        )
    ]


def _ledgered_s(world: SftWorld) -> float:
    """The run as the product does it, in seconds from its first event."""
    marks: list[float] = []
    with world.opened() as ledger:

        def tell(event: str, _fields: dict[str, Any]) -> None:
            marks.extend([time.perf_counter()] if event == "start" else [])

        done = launch_sft(ledger, ledger.get(world.plan), world.shelf, tell)
    assert done.ended.body["outcome"] == "completed", done.ended.body["detail"]
    return time.perf_counter() - marks[0]


def _unledgered_s(world: SftWorld, folder: Path) -> float:
    """The same child work without the ledger, in seconds from its first event."""
    folder.mkdir()
    marks: list[float] = []
    with world.opened() as ledger:
        plan = ledger.get(world.plan)
        model = ledger.get(str(plan.ref("model")))
        rows = training_rows(ledger, ledger.get(str(plan.ref("split"))))
        path = model_folder(world.shelf, model)
    write_rows(folder / "rows.jsonl", rows)
    named = {"name": model.body["name"], "files": model.body["files"]}
    job = {
        "model": {"path": str(path), **named},
        "rows": str(folder / "rows.jsonl"),
        "settings": plan.body["settings"],
        "output": str(folder / "output"),
        "until": plan.body["budget_updates"],
        "start": {"mode": "fresh", "step": 0, "checkpoint": None},
    }

    def answer(_event: dict[str, Any]) -> dict[str, Any]:
        marks.append(time.perf_counter())
        return {}

    threads = plan.body["settings"]["threads"]
    ended = run_child(CHILD, job, answer, folder / "log", threads=threads)
    assert ended.outcome == "completed", ended
    return time.perf_counter() - marks[0]
