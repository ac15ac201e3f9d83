"""The learning curve of one run, asked of what people use: a plain SQLite table with an index, and MLflow.

Both hold the loss of every update of the bench's ledger, and nothing else. Neither can say whether a row was
changed afterwards, and neither names the moment that its answer is of.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from campaigns.report import ROOT

from benches.report import Row, Settings
from ledger.book import Ledger
from ledger.query.segments import History

TRIES = 3
MLFLOW_RUNS = 4
"""Runs that MLflow is given: a thousand metrics a call take it about a second."""

Losses = dict[str, list[tuple[int, str]]]


def run(settings: Settings, ledger: Path, history: History, asked: str) -> list[Row]:
    """Seconds to the same curve from each, best of three in one process that is already there."""
    folder = settings.scratch / "query-peers"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    losses = _losses(ledger, history)
    rows = [_sqlite(folder, losses, asked), _mlflow(settings, folder, losses, asked)]
    shutil.rmtree(folder)
    return rows


def _losses(ledger: Path, history: History) -> Losses:
    """(step, loss) of each run's updates, superseded ones as well."""
    with Ledger.read(ledger) as opened:
        database = opened.duckdb("updates", history=history)
    found: Losses = {}
    rows = database.execute("SELECT ref_run, step, loss FROM updates ORDER BY seq").fetchall()
    for name, step, loss in rows:
        found.setdefault(name, []).append((step, loss))
    return found


def _sqlite(folder: Path, losses: Losses, asked: str) -> Row:
    with closing(sqlite3.connect(folder / "plain.sqlite")) as database:
        database.execute("CREATE TABLE updates (run TEXT, step INTEGER, loss REAL)")
        database.executemany(
            "INSERT INTO updates VALUES (?, ?, ?)",
            ((name, *item) for name, items in losses.items() for item in items),
        )
        database.execute("CREATE INDEX by_run ON updates (run, step)")
        database.commit()
        spent = []
        for _ in range(TRIES):
            begun = time.perf_counter()
            rows = database.execute(
                "SELECT step, loss FROM updates WHERE run = ? ORDER BY step", (asked,)
            ).fetchall()
            spent.append(time.perf_counter() - begun)
    stored = sum(map(len, losses.values()))
    details = {"rows": len(rows), "stored": stored}
    return Row("curve, plain SQLite", round(min(spent), 4), "s", "less", details=details)


def _mlflow(settings: Settings, folder: Path, losses: Losses, asked: str) -> Row:
    """MLflow in its own environment, without our package; only some of the runs, the one asked for among them."""
    settings.say("curve, MLflow on its SQLite store")
    others = [name for name in losses if name != asked][: MLFLOW_RUNS - 1]
    (folder / "losses.json").write_text(json.dumps([losses[name] for name in (*others, asked)]))
    environment = [sys.executable, "tools/environment.py", "--folder", ".venv-bench", "--bench"]
    done = subprocess.run(environment, cwd=ROOT, capture_output=True, text=True, check=True)
    program = str(Path(__file__).with_name("mlflow_curve.py"))
    command = [done.stdout.strip(), program, str(folder), str(TRIES)]
    answer = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    found = json.loads(answer.stdout)
    return Row("curve, MLflow", found.pop("best_s"), "s", "less", details=found)
