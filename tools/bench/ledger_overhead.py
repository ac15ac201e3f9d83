"""What the ledger costs a supervised run: the same training with it and without it, in turns.

    python tools/bench/ledger_overhead.py [--model smollm2] [--pairs 5] [--epochs 4]

Prints one JSON object: wall-clock seconds from the child's first event to its end, medians and their ratio; the limit is
2 percent. Without the ledger the child runs the same trainer on the same rows in the same order, and takes no digest of
a state, asks nobody, and reads nothing back that it wrote (`tools/bench/unledgered.py`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests")]

from campaigns import sft_world  # noqa: E402 - after the path is set
from campaigns.sft_world import SftWorld, make_world  # noqa: E402

from runners.child import run_child  # noqa: E402
from runners.prepare.shelf import model_folder  # noqa: E402
from runners.train.plans import training_rows, write_rows  # noqa: E402
from runners.train.supervisor import launch_sft  # noqa: E402

LIMIT = 0.02


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    sft_world.SETTINGS |= {"threads": options.threads, "save_steps": 0, "batch_size": 4}
    sft_world.EPOCHS = options.epochs
    with_it, without = [], []
    with tempfile.TemporaryDirectory() as scratch:
        world = make_world(Path(scratch) / "world", options.model)
        for pair in range(options.pairs):
            with_it.append(ledgered_s(world.copied(Path(scratch) / f"on-{pair}")))
            without.append(unledgered_s(world, Path(scratch) / f"off-{pair}"))
    share = statistics.median(with_it) / statistics.median(without) - 1
    print(
        json.dumps(
            {
                "model": options.model,
                "ledger_on_s": [round(took, 3) for took in with_it],
                "ledger_off_s": [round(took, 3) for took in without],
                "overhead": round(share, 4),
                "limit": LIMIT,
            },
            indent=2,
        )
    )


def ledgered_s(world: SftWorld) -> float:
    """The run as the product does it, in seconds from its first event."""
    marks: list[float] = []
    with world.opened() as ledger:

        def tell(event: str, _fields: dict[str, Any]) -> None:
            marks.extend([time.perf_counter()] if event == "start" else [])

        done = launch_sft(ledger, ledger.get(world.plan), world.shelf, tell)
    assert done.ended.body["outcome"] == "completed", done.ended.body["detail"]
    return time.perf_counter() - marks[0]


def unledgered_s(world: SftWorld, folder: Path) -> float:
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
    ended = run_child("tools.bench.unledgered", job, answer, folder / "log", threads=threads)
    assert ended.outcome == "completed", ended
    return time.perf_counter() - marks[0]


if __name__ == "__main__":
    main()
