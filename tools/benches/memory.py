"""Resident memory of `verify` as the ledger grows: a process of its own for each size, peaks as the system counts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches.report import ENVIRONMENT, Row, Settings
from benches.workload import grown

MAX_MB = 200.0
MAX_GROWTH = 1.2


def run(settings: Settings) -> list[Row]:
    """The smallest and the largest size against each other."""
    sizes = (10_000, 100_000, 1_000_000) if settings.full else (10_000, 20_000)
    peaks: dict[str, Any] = {}
    for size in sizes:
        folder = grown(settings, size)
        settings.say(f"peak memory of verify at {size:,} records")
        peaks[str(size)] = _peak(folder)
    sums = [peak["sum_mb"] for peak in peaks.values()]
    parents = [peak["parent_mb"] for peak in peaks.values()]
    growth = f"growth of verify's memory, {sizes[0]:,} to {sizes[-1]:,} records"
    return [
        Row(
            f"{growth}, parent",
            _ratio(parents),
            "ratio",
            "less",
            MAX_GROWTH,
            details={"peaks": peaks},
        ),
        Row(f"{growth}, parent and workers", _ratio(sums), "ratio", "less", MAX_GROWTH),
        Row(f"peak of verify at {sizes[-1]:,} records, parent", parents[-1], "MB", "less", MAX_MB),
        Row(
            f"peak of verify at {sizes[-1]:,} records, parent and workers",
            sums[-1],
            "MB",
            "less",
            MAX_MB,
        ),
    ]


def _ratio(values: list[float]) -> float:
    return round(values[-1] / values[0], 3)


def _peak(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-P", "-m", "benches.peak", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
    parent_kib, workers_kib = json.loads(done.stdout)
    return {
        "parent_mb": round(parent_kib * 1024 / 1e6, 1),
        "largest_worker_mb": round(max(workers_kib, default=0) * 1024 / 1e6, 1),
        "sum_mb": round((parent_kib + sum(workers_kib)) * 1024 / 1e6, 1),
        "workers": len(workers_kib),
    }
