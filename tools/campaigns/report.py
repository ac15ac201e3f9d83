"""What a campaign is given, and what it must say at its end."""

from __future__ import annotations

import os
import platform
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "docs" / "campaigns"
FAILURES_SHOWN = 20


@dataclass(frozen=True)
class Settings:
    """How a campaign is to be run.

    Args:
        seed: every choice of the campaign comes from it.
        full: the campaign's full numbers; without it a slice of them, in well under a minute.
        folder: an empty folder for the campaign's files.
        workers: processes to use where the campaign can.
        progress: called with (done, total) now and then.
        case: run this one case only, to look at a failure again; None for all.
        model: what campaigns that train train: `tiny`, made in a second, or a model of the catalogue.
    """

    seed: int
    full: bool
    folder: Path
    workers: int
    progress: Callable[[int, int], None]
    case: int | None = None
    model: str = "tiny"

    def random(self, *parts: object) -> random.Random:
        """A source of choices of its own for a part of the campaign, the same in every run."""
        return random.Random(f"{self.seed}:{':'.join(map(str, parts))}")  # noqa: S311 - choices, no secrets


@dataclass
class Outcome:
    """What a campaign tried and found.

    Attributes:
        cases: how many attacks were tried.
        counts: how many of each sort, by what became of them.
        excluded: what is left out of the claim, and why.
        figures: other numbers worth keeping.
        failures: one line for each case that went wrong, with what reruns it.
    """

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    excluded: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in a part that another process ran."""
        self.cases += other.cases
        self.counts += other.counts
        self.excluded |= other.excluded
        self.figures |= other.figures
        self.failures += other.failures

    def as_json(self, name: str, settings: Settings, elapsed_s: float) -> dict[str, Any]:
        """The report: what was run, on what, and what came of it."""
        return {
            "campaign": name,
            "verdict": "held" if self.cases and not self.failures else "failed",
            "seed": settings.seed,
            "full": settings.full,
            "workers": settings.workers,
            "model": settings.model,
            "cases": self.cases,
            "counts": dict(sorted(self.counts.items())),
            "excluded": self.excluded,
            "figures": self.figures,
            "failures": len(self.failures),
            "first_failures": self.failures[:FAILURES_SHOWN],
            "elapsed_s": round(elapsed_s, 1),
            "commit": commit(),
            "machine": machine(),
        }


def commit() -> str:
    """The commit that was run, with `+changes` where the work tree differs from it."""
    head = _git("rev-parse", "HEAD")
    return head + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")


def machine() -> dict[str, str | int]:
    """What it was run on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"
