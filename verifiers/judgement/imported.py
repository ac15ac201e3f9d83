"""What the gate would say of outcomes from elsewhere, beside what weaker analyses would have said.

An imported table satisfies no gate: it names no study, no checkpoint and no re-run, so lines that need them fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from scipy.stats import binomtest, fisher_exact, ttest_1samp

from ledger.canonical import parse_real, real
from ledger.errors import UsageError
from verifiers.judgement.gates import GATES, GateLine
from verifiers.judgement.outcome_table import Table
from verifiers.judgement.resampling import REPLICATES, Attainable, attainable, bootstrap, generator
from verifiers.judgement.statistics import (
    MAX_SEEDS,
    Interval,
    PairedTable,
    clustered_se_of_counts,
    mcnemar,
    sign_flip,
    wilson,
)

STANDING: Final = "imported: satisfies no gate"
NOT_SHOWN: Final = "not in a table"
LEVEL: Final = 0.95
MAX_CASES: Final = 4096


@dataclass(frozen=True)
class Outcomes:
    """A table as the statistics read it.

    `deltas` and `sizes` have a row for each seed and a column for each case; a case that a seed was not given has size 0.
    """

    seeds: tuple[int, ...]
    cases: tuple[str, ...]
    families: tuple[str, ...]
    baseline: np.ndarray[Any, np.dtype[np.int64]]
    candidate: np.ndarray[Any, np.dtype[np.int64]]
    sizes: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def deltas(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Successes of the candidate less those of the baseline."""
        return self.candidate - self.baseline

    @property
    def gains(self) -> list[Fraction]:
        """Gain of each seed as a fraction of its rollouts."""
        pairs = zip(self.deltas.sum(axis=1), self.sizes.sum(axis=1), strict=True)
        return [Fraction(int(delta), int(size)) for delta, size in pairs]

    @property
    def mean_gain(self) -> Fraction:
        """Mean of the seeds' gains."""
        return sum(self.gains, Fraction(0)) / len(self.seeds)


def outcomes(table: Table) -> Outcomes:
    """A table in rows and columns: seeds by number, cases by name.

    Raises:
        UsageError: `STATISTIC_INPUT`, more seeds or cases than can be resampled.
    """
    seeds = sorted({seed for seed, _ in table})
    family = {case: cell.family for (_, case), cell in table.items()}
    for name, count, limit in (("seed", len(seeds), MAX_SEEDS), ("case", len(family), MAX_CASES)):
        if count > limit:
            raise UsageError(
                "STATISTIC_INPUT", f"{count} different {name}s, at most {limit}", field=name
            )
    cases = sorted(family)
    row = {seed: index for index, seed in enumerate(seeds)}
    column = {case: index for index, case in enumerate(cases)}
    counts = np.zeros((3, len(seeds), len(cases)), dtype=np.int64)
    for (seed, case), cell in table.items():
        counts[:, row[seed], column[case]] = cell.baseline, cell.candidate, cell.rollouts
    names = tuple(family[case] for case in cases)
    return Outcomes(tuple(seeds), tuple(cases), names, *counts)


@dataclass(frozen=True)
class Analysis:
    """The gate's figures, its lines, what could be attained, and the figures that are not the gate."""

    found: Outcomes
    p: float
    interval: Interval
    attainable: Attainable
    lines: tuple[GateLine, ...]
    rivals: Mapping[str, float | None]


def analyse(
    table: Table, floors: Mapping[str, Any], *, comparisons: int = 1, seed: int = 0
) -> Analysis:
    """Everything that a table shows.

    Args:
        table: cells of `read_table`.
        floors: a policy's body: `seeds`, `alpha`, `cases`, `minimum_gain`.
        comparisons: planned comparisons.
        seed: of the bootstrap's random source.

    Raises:
        UsageError: `STATISTIC_INPUT`, more seeds or cases than can be counted.
    """
    found = outcomes(table)
    p = min(1.0, sign_flip(found.gains) * comparisons)
    interval = bootstrap(found.deltas, found.sizes, found.families, generator(seed))
    best = attainable(
        int(found.baseline.sum()) / int(found.sizes.sum()),
        int(found.sizes.sum()) // len(found.seeds),
        len(found.seeds),
        alpha=parse_real(floors["alpha"]),
        comparisons=comparisons,
    )
    shown = _shown(found, floors, p, interval, comparisons)
    lines = tuple(_line(name, code, shown.get(name)) for name, code, _ in GATES)
    return Analysis(found, p, interval, best, lines, rivals(found, seed))


def as_result(analysis: Analysis) -> dict[str, Any]:
    """The figures as a command prints them; numbers are JSON numbers, p and rates in [0, 1]."""
    found = analysis.found
    return {
        "seeds": list(found.seeds),
        "mean_gain": float(found.mean_gain),
        "sign_flip_p": analysis.p,
        "bootstrap": {
            "lower": analysis.interval.lower,
            "upper": analysis.interval.upper,
            "level": LEVEL,
            "replicates": REPLICATES,
        },
        "attainable": {
            "gain": analysis.attainable.gain,
            "minimum_p": analysis.attainable.minimum_p,
            "power": analysis.attainable.perfect_power,
        },
        "gates": [line.as_dict() for line in analysis.lines],
        "rivals": dict(analysis.rivals),
        "standing": STANDING,
    }


def rivals(found: Outcomes, seed: int = 0) -> dict[str, float | None]:
    """What weaker analyses would have said: the wrong unit, one level of resampling, ties dropped. Not the gate.

    Pooled figures count rollouts of all seeds as if each stood alone. McNemar pairs them so that as few as possible
    disagree. A figure that is not defined (a t test of equal gains) is None.
    """
    total = int(found.sizes.sum())
    right = {name: int(getattr(found, name).sum()) for name in ("baseline", "candidate")}
    rates = {name: wilson(count, total) for name, count in right.items()}
    alone = bootstrap(found.deltas, found.sizes, found.families, generator(seed), levels="seeds")
    cases = bootstrap(found.deltas, found.sizes, found.families, generator(seed), levels="cases")
    return {
        "mcnemar_p": mcnemar(_pooled(found)),
        "fisher_p": _fisher(right, total),
        "paired_t_p": _paired_t(found.gains),
        "one_sided_sign_test_p": _sign_test(found.gains),
        "seeds_only_lower": alone.lower,
        "seeds_only_upper": alone.upper,
        "cases_only_lower": cases.lower,
        "cases_only_upper": cases.upper,
        "baseline_rate": right["baseline"] / total,
        "baseline_wilson_lower": rates["baseline"].lower,
        "baseline_wilson_upper": rates["baseline"].upper,
        "candidate_rate": right["candidate"] / total,
        "candidate_wilson_lower": rates["candidate"].lower,
        "candidate_wilson_upper": rates["candidate"].upper,
        "baseline_naive_se": _naive(right["baseline"], total),
        "baseline_clustered_se": _clustered(found, "baseline"),
        "candidate_naive_se": _naive(right["candidate"], total),
        "candidate_clustered_se": _clustered(found, "candidate"),
    }


_Said = tuple[str, str, bool]


def _shown(
    found: Outcomes,
    floors: Mapping[str, Any],
    p: float,
    interval: Interval,
    comparisons: int,
) -> dict[str, _Said]:
    """The lines that a table can show: number, threshold, verdict."""
    seeds, cases = len(found.seeds), int((found.sizes > 0).sum(axis=1).min())
    whole = bool((found.sizes > 0).all())
    alpha, floor = floors["alpha"], floors["minimum_gain"]
    delta = found.deltas.sum(axis=0)
    fallen = sorted(
        name
        for name in set(found.families)
        if delta[[family == name for family in found.families]].sum() < 0
    )
    named = f": {', '.join(fallen)}" if fallen else ""
    return {
        "seeds": (str(seeds), f"at least {floors['seeds']}", seeds >= floors["seeds"]),
        "pairing": (
            "same cases in every seed" if whole else "a seed lacks cases of another",
            "same cases in every seed",
            whole,
        ),
        "cases": (str(cases), f"at least {floors['cases']}", cases >= floors["cases"]),
        "significance": (
            real(p),
            f"at most {alpha} after {comparisons} planned comparison(s)",
            p <= parse_real(alpha) and found.mean_gain > 0,
        ),
        "interval": (real(interval.lower), "above 0.0", interval.lower > 0.0),
        "gain": (
            real(float(found.mean_gain)),
            f"at least {floor}",
            found.mean_gain >= Fraction(floor),
        ),
        "families": (f"{len(fallen)} fell{named}"[:200], "no family falls", not fallen),
    }


def _line(name: str, code: str, said: _Said | None) -> GateLine:
    if said is None:
        return GateLine(name, NOT_SHOWN, "evidence in a ledger", passed=False, code=code)
    value, threshold, passed = said
    return GateLine(name, value, threshold, passed, None if passed else code)


def _pooled(found: Outcomes) -> PairedTable:
    both = int(np.minimum(found.baseline, found.candidate).sum())
    gained = int(np.maximum(found.deltas, 0).sum())
    lost = int(np.maximum(-found.deltas, 0).sum())
    return PairedTable(both, gained, lost, int(found.sizes.sum()) - both - gained - lost)


def _fisher(right: Mapping[str, int], total: int) -> float:
    counts = [[count, total - count] for count in right.values()]
    return float(fisher_exact(counts).pvalue)


def _paired_t(gains: Sequence[Fraction]) -> float | None:
    if len(set(gains)) < 2:
        return None
    return float(ttest_1samp([float(gain) for gain in gains], 0.0).pvalue)


def _sign_test(gains: Sequence[Fraction]) -> float:
    up, down = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    return float(binomtest(up, up + down, alternative="greater").pvalue) if up + down else 1.0


def _naive(right: int, total: int) -> float:
    rate = right / total
    return math.sqrt(rate * (1.0 - rate) / total)


def _clustered(found: Outcomes, arm: str) -> float | None:
    if len(found.cases) < 2:
        return None
    counts = getattr(found, arm).sum(axis=0)
    return clustered_se_of_counts(counts.tolist(), found.sizes.sum(axis=0).tolist())
