"""The curve of one run out of MLflow's SQLite store; runs in an environment of its own, without our package.

    python mlflow_curve.py FOLDER TRIES

Reads FOLDER/losses.json, a list of runs, each a list of (step, loss). Prints the best of TRIES for the history of the
last one's loss, found by a search for its name as a user does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import mlflow
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

METRICS_A_CALL = 1000


def main() -> None:
    """Fill, measure and print."""
    folder, tries = Path(sys.argv[1]), int(sys.argv[2])
    runs = json.loads((folder / "losses.json").read_text())
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.sqlite'}")
    experiment = client.create_experiment("bench")
    for place, losses in enumerate(runs):
        run = client.create_run(experiment, run_name=f"run-{place}").info.run_id
        metrics = [Metric("loss", float(loss), step, step) for step, loss in losses]
        for start in range(0, len(metrics), METRICS_A_CALL):
            client.log_batch(run, metrics=metrics[start : start + METRICS_A_CALL])
    spent = []
    for _ in range(tries):
        begun = time.perf_counter()
        wanted = f"attributes.run_name = 'run-{len(runs) - 1}'"
        found = client.search_runs([experiment], filter_string=wanted)[0]
        history = client.get_metric_history(found.info.run_id, "loss")
        spent.append(time.perf_counter() - begun)
    stored = sum(map(len, runs))
    answer = {"best_s": round(min(spent), 4), "rows": len(history), "stored": stored}
    print(json.dumps(answer | {"mlflow": mlflow.__version__}))


if __name__ == "__main__":
    main()
