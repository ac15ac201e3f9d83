"""Small times that a person waits for, measured side by side with their limits; nothing here fails a build.

    python tools/bench/small.py

Prints one JSON object. Run it on a quiet machine: best of five, wall-clock seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from verifiers.judgement.resampling import bootstrap, generator

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "small-ledger"
EVIDENCE = [sys.executable, "-P", "-m", "runners.cli.main"]
TRIES = 5


def best_s(work: Callable[[], object]) -> float:
    """The best of some tries, in seconds."""
    found = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return round(min(found), 4)


def run(*command: str) -> Callable[[], object]:
    """A command as work; it must succeed."""
    return lambda: subprocess.run(command, capture_output=True, check=True)


def replicates() -> object:
    """10,000 replicates of the two-level bootstrap over 6 seeds and 160 cases in 8 families."""
    deltas = np.zeros((6, 160), dtype=np.int64)
    deltas[:2, :2] = 1
    sizes = np.ones_like(deltas)
    return bootstrap(deltas, sizes, [f"f{case % 8}" for case in range(160)], generator(1))


def main() -> None:
    """Measure and print."""
    verify = (*EVIDENCE, "verify", "--ledger", str(EXAMPLE))
    rows = {
        "python -c pass": (best_s(run(sys.executable, "-c", "pass")), None),
        "evidence --help": (best_s(run(*EVIDENCE, "--help")), 0.15),
        "evidence verify, 37 records": (best_s(run(*verify)), None),
        "evidence verify --level blobs": (best_s(run(*verify, "--level", "blobs")), None),
        "bootstrap, 10,000 replicates": (best_s(replicates), 0.5),
    }
    print(
        json.dumps(
            {name: {"seconds": took, "limit": limit} for name, (took, limit) in rows.items()},
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
