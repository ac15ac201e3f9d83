"""What people use for the same facts, side by side on one disk: MLflow on SQLite, and a JSONL file with fdatasync.

Group sizes are equal: so many updates in one durable call. Ours are whole records, signed and admitted by the
rules; the JSONL file gets the very same entries; MLflow gets an update's facts as four metrics, a param and a tag.
Neither peer signs, chains or refuses anything: the figures say what that costs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from campaigns.report import ROOT

from benches.report import Row, Settings, Spent, timed
from benches.workload import Training, make, open_ledger
from ledger.record import Record

SIZES = (1, 10, 100)
MLFLOW_CALLS = {1: 100, 10: 40, 100: 10}
MLFLOW_SLICE_CALLS = {1: 20, 10: 5, 100: 2}


def run(settings: Settings) -> list[Row]:
    """Updates a second at each group size."""
    folder = settings.scratch / "peers"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ours, lines = _ours_and_jsonl(settings, folder)
    mlflow, version = _mlflow(settings, folder)
    shutil.rmtree(folder)
    rows = []
    for size in SIZES:
        figures = {"jsonl_per_s": lines[size], "mlflow_per_s": mlflow[size], "mlflow": version}
        figures["against_jsonl"] = round(ours[size] / lines[size], 3)
        figures["against_mlflow"] = round(ours[size] / mlflow[size], 2)
        name = f"updates in groups of {size}"
        rows.append(Row(name, ours[size], "updates/s", "more", details=figures))
    return rows


def _ours_and_jsonl(settings: Settings, folder: Path) -> tuple[dict[int, float], dict[int, float]]:
    """Updates a second of each, in turns, group by group."""
    make(folder / "ledger")
    rounds = 10 if settings.full else 2
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    with open_ledger(folder / "ledger") as ledger, (folder / "updates.jsonl").open("ab") as lines:
        groups = Training(ledger).groups()
        for size in SIZES:
            settings.say(f"our append and a JSONL file, groups of {size}")
            spent = {"ours": Spent(), "jsonl": Spent()}
            for _ in range(rounds):
                ledger.append_many(next(groups))
                updates = next(groups)
                for start in range(0, len(updates), size):
                    part = updates[start : start + size]
                    records, took = timed(ledger.append_many, part)
                    spent["ours"] += took
                    spent["jsonl"] += timed(_append, lines.fileno(), records)[1]
                ledger.append_many(next(groups))
            count = rounds * len(updates)
            ours[size] = round(count / spent["ours"].wall_s)
            theirs[size] = round(count / spent["jsonl"].wall_s)
    return ours, theirs


def _append(handle: int, records: list[Record]) -> None:
    """Lines that are on the disk when this returns."""
    os.write(handle, b"".join(record.entry + b"\n" for record in records))
    os.fdatasync(handle)


def _mlflow(settings: Settings, folder: Path) -> tuple[dict[int, float], str]:
    """Updates a second of MLflow, measured in its own environment; and its version."""
    settings.say("MLflow on its SQLite store")
    environment = [sys.executable, "tools/environment.py", "--folder", ".venv-bench", "--bench"]
    done = subprocess.run(environment, cwd=ROOT, capture_output=True, text=True, check=True)
    calls = MLFLOW_CALLS if settings.full else MLFLOW_SLICE_CALLS
    program = str(Path(__file__).with_name("mlflow_peer.py"))
    command = [done.stdout.strip(), program, str(folder), json.dumps(calls)]
    answer = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    found = json.loads(answer.stdout)
    return {int(size): rate for size, rate in found["updates_per_s"].items()}, found["version"]
