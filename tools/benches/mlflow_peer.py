"""An update's facts into MLflow's SQLite store; runs in an environment of its own, without our package.

    python mlflow_peer.py FOLDER '{"1": 100, "10": 40}'

Prints updates a second by group size. An update is four metrics with their step, a param (the state after it) and
a tag (its batch), so that a hundred of them still fit in one call.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import mlflow
from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient


def main() -> None:
    """Measure and print."""
    folder, calls = Path(sys.argv[1]), json.loads(sys.argv[2])
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.sqlite'}")
    run = client.create_run(client.create_experiment("bench")).info.run_id
    client.log_batch(run, **_facts(range(1)))  # the tables are warm
    rates: dict[str, float] = {}
    step = 1
    for size in map(int, calls):
        begun = time.perf_counter()
        for _ in range(calls[str(size)]):
            client.log_batch(run, **_facts(range(step, step + size)))
            step += size
        rates[str(size)] = round(calls[str(size)] * size / (time.perf_counter() - begun), 1)
    print(json.dumps({"version": mlflow.__version__, "updates_per_s": rates}))


def _facts(steps: range) -> dict[str, Any]:
    figures = {"loss": 1.6094379, "learning_rate": 1e-4, "gradient_norm": 0.7071, "entropy": 2.3}
    now = int(time.time() * 1000)
    return {
        "metrics": [
            Metric(name, value, now, step) for step in steps for name, value in figures.items()
        ],
        "params": [Param(f"after.{step}", _digest("after", step)) for step in steps],
        "tags": [RunTag(f"batch.{step}", _digest("batch", step)) for step in steps],
    }


def _digest(what: str, step: int) -> str:
    return "sha256:" + hashlib.sha256(f"{what} {step}".encode()).hexdigest()


if __name__ == "__main__":
    main()
