"""Small times that a person waits for: best of five, wall-clock seconds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
from campaigns.report import ROOT

from benches.report import Row, Settings, timed
from verifiers.judgement.resampling import bootstrap, generator

EXAMPLE = ROOT / "examples" / "small-ledger"
EVIDENCE = (sys.executable, "-P", "-m", "runners.cli.entry")
TRIES = 5


def run(_settings: Settings) -> list[Row]:
    """Commands on a small ledger, and one bootstrap."""
    verify = (*EVIDENCE, "verify", "--ledger", str(EXAMPLE))
    return [
        _row("python -c pass", command(sys.executable, "-c", "pass")),
        _row("evidence --help", command(*EVIDENCE, "--help"), 0.15),
        _row("evidence verify, the example", command(*verify)),
        _row("evidence verify --level blobs, the example", command(*verify, "--level", "blobs")),
        _row("bootstrap, 10,000 replicates", replicates, 0.5),
    ]


def _row(name: str, work: Callable[[], object], limit: float | None = None) -> Row:
    best = min(timed(work)[1].wall_s for _ in range(TRIES))
    return Row(name, round(best, 4), "s", "less", limit)


def command(*words: str) -> Callable[[], object]:
    """A command as work; it must succeed."""
    return lambda: subprocess.run(words, capture_output=True, check=True)


def replicates() -> object:
    """10,000 replicates of the two-level bootstrap over 6 seeds and 160 cases in 8 families."""
    deltas = np.zeros((6, 160), dtype=np.int64)
    deltas[:2, :2] = 1
    sizes = np.ones_like(deltas)
    return bootstrap(deltas, sizes, [f"f{case % 8}" for case in range(160)], generator(1))
