"""What a bench is given, how it measures, and the one JSON object that it prints."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from campaigns.report import ROOT, commit, machine

REPORTS = ROOT / "docs" / "benches"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": ":".join(map(str, (ROOT, ROOT / "tools", ROOT / "tests"))),
}
"""For processes of a bench's own: they find what it finds."""

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """How a bench is to be run.

    Args:
        full: the full sizes; without it a slice in about a minute.
        scratch: where ledgers are built; those of an earlier run are used again.
        say: called with a line about what is being done.
    """

    full: bool
    scratch: Path
    say: Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One figure beside its limit.

    Args:
        name: what was measured.
        value: the figure.
        unit: its unit; `ratio` where it has none.
        better: whether more or less is better.
        limit: what it must reach, None where it is only reported.
        stretch: what it should reach.
        details: what the figure was made from.
    """

    name: str
    value: float
    unit: str
    better: Literal["more", "less"]
    limit: float | None = None
    stretch: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def reaches(self, bound: float | None) -> bool | None:
        """Whether the figure is on the right side of a bound."""
        if bound is None:
            return None
        return self.value >= bound if self.better == "more" else self.value <= bound

    def as_json(self) -> dict[str, Any]:
        """The row as the report has it."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "better": self.better,
            "limit": self.limit,
            "held": self.reaches(self.limit),
            "stretch": self.stretch,
            "stretch_held": self.reaches(self.stretch),
            **self.details,
        }


@dataclass
class Spent:
    """Time that went by: on the wall and on the processors, in seconds; processes that ended count."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def as_json(self) -> dict[str, float]:
        """Both, rounded."""
        return {"wall_s": round(self.wall_s, 4), "cpu_s": round(self.cpu_s, 4)}


def _now() -> Spent:
    own, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu_s = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    return Spent(time.perf_counter(), cpu_s)


def timed(work: Callable[..., T], *arguments: Any) -> tuple[T, Spent]:
    """What a piece of work gave, and what it cost."""
    before = _now()
    result = work(*arguments)
    after = _now()
    return result, Spent(after.wall_s - before.wall_s, after.cpu_s - before.cpu_s)


def ratios(pairs: list[tuple[Spent, Spent]]) -> dict[str, float]:
    """Medians over rounds of (theirs / ours): 1.0 is as fast as what we are held against."""
    return {
        "wall": round(statistics.median(theirs.wall_s / ours.wall_s for ours, theirs in pairs), 3),
        "cpu": round(statistics.median(theirs.cpu_s / ours.cpu_s for ours, theirs in pairs), 3),
    }


def as_json(name: str, settings: Settings, rows: list[Row], elapsed_s: float) -> dict[str, Any]:
    """The report of a bench."""
    return {
        "bench": name,
        "full": settings.full,
        "rows": [row.as_json() for row in rows],
        "elapsed_s": round(elapsed_s, 1),
        "commit": commit(),
        "machine": machine(),
    }
