"""Exact tests and intervals on paired outcomes. Counts go in, so that ties are exact.

SciPy has the binomial test and the Wilson interval; what it lacks is here: the sign flip on whole
numbers, McNemar by name, the clustered standard error, pass^k, Holm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest

from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SEEDS = 64
MAX_SUMS = 2**20


@dataclass(frozen=True)
class PairedTable:
    """Pairs of outcomes: both right, only the candidate, only the baseline, neither."""

    both: int
    candidate_only: int
    baseline_only: int
    neither: int

    @property
    def pairs(self) -> int:
        """How many pairs the table counts."""
        return self.both + self.candidate_only + self.baseline_only + self.neither

    @property
    def delta(self) -> int:
        """Successes of the candidate minus successes of the baseline."""
        return self.candidate_only - self.baseline_only

    @property
    def gain(self) -> float:
        """Difference of the success rates, in [-1, 1]; 0 for an empty table."""
        return self.delta / self.pairs if self.pairs else 0.0


@dataclass(frozen=True)
class Interval:
    """A closed interval of a rate or a difference of rates."""

    lower: float
    upper: float


def paired_table(baseline: Sequence[bool], candidate: Sequence[bool]) -> PairedTable:
    """Count pairs of outcomes of the same cases in the same order.

    Raises:
        UsageError: `STATISTIC_INPUT`, the two arms have different lengths.
    """
    if len(baseline) != len(candidate):
        raise _input("arms", f"{len(baseline)} and {len(candidate)} outcomes can't be paired")
    pairs = list(zip(map(bool, baseline), map(bool, candidate), strict=True))
    return PairedTable(
        both=pairs.count((True, True)),
        candidate_only=pairs.count((False, True)),
        baseline_only=pairs.count((True, False)),
        neither=pairs.count((False, False)),
    )


def mcnemar(table: PairedTable) -> float:
    """Two-sided p of the exact McNemar test: a binomial test on the discordant pairs.

    Without a discordant pair p is 1. Source: McNemar, Psychometrika 12 (1947), in its exact form.
    """
    discordant = table.candidate_only + table.baseline_only
    if discordant == 0:
        return 1.0
    return float(binomtest(table.candidate_only, discordant).pvalue)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a rate; [0, 1] where nothing was tried.

    Raises:
        UsageError: `STATISTIC_INPUT`, more successes than trials, or a negative count.
    """
    if not 0 <= successes <= trials:
        raise _input("successes", f"{successes} of {trials} is not a share")
    if trials == 0:
        return Interval(0.0, 1.0)
    found = binomtest(successes, trials).proportion_ci(confidence_level=level, method="wilson")
    return Interval(float(found.low), float(found.high))


def sign_flip(deltas: Sequence[int | Fraction]) -> float:
    """Two-sided p of the exact sign-flip test over training seeds, ties kept.

    p = #{s in {-1, 1}^n : |sum s_i d_i| >= |sum d_i|} / 2^n. A tied seed doubles both counts, so it
    weakens nothing and is never dropped. Whole numbers or fractions only: with floats a tie
    could come out unequal.

    Args:
        deltas: the gain of each seed, in any one unit, 1 to 64 of them; above 20 they must be
            counts small enough that the sums stay few.

    Raises:
        UsageError: `STATISTIC_INPUT`, no seed or too many.
    """
    if not 1 <= len(deltas) <= MAX_SEEDS:
        raise _input("seeds", f"{len(deltas)} seeds, the exact test takes 1 to {MAX_SEEDS}")
    whole = _whole(deltas)
    if min(2 ** len(whole), 2 * sum(map(abs, whole)) + 1) > MAX_SUMS:
        raise _input("seeds", f"{len(deltas)} seeds with too many different sums to count")
    observed = abs(sum(whole))
    extreme = sum(ways for total, ways in _flipped_sums(whole).items() if abs(total) >= observed)
    return float(Fraction(extreme, 2 ** len(whole)))


def smallest_p(seeds: int) -> float:
    """The smallest two-sided p that the sign-flip test can reach with so many seeds."""
    return min(1.0, 2.0 ** (1 - seeds))


def clustered_se(values: Sequence[float], clusters: Sequence[object]) -> float:
    """Standard error of a mean whose observations come in clusters.

    sqrt(G/(G-1) * sum_g (sum_i (x_gi - mean))^2) / n for G clusters (arXiv 2411.00640, with the
    small-sample factor).

    Raises:
        UsageError: `STATISTIC_INPUT`, different lengths or fewer than two clusters.
    """
    if len(values) != len(clusters):
        raise _input("clusters", f"{len(clusters)} labels for {len(values)} values")
    labels = {label: index for index, label in enumerate(dict.fromkeys(clusters))}
    if len(labels) < 2:
        raise _input("clusters", "a clustered standard error needs two clusters or more")
    sample = np.asarray(values, dtype=np.float64)
    sums = np.zeros(len(labels))
    np.add.at(sums, [labels[label] for label in clusters], sample - sample.mean())
    factor = len(labels) / (len(labels) - 1)
    return math.sqrt(factor * float(np.sum(sums**2))) / len(values)


def clustered_se_of_counts(successes: Sequence[int], trials: Sequence[int]) -> float:
    """Clustered standard error of a success rate from the counts of each cluster.

    The formula of `clustered_se` where every observation is 0 or 1: the sum inside a cluster is its successes less
    its trials times the rate.

    Raises:
        UsageError: `STATISTIC_INPUT`, counts that do not fit, or fewer than two clusters.
    """
    if len(successes) != len(trials) or len(trials) < 2:
        raise _input("clusters", f"{len(successes)} and {len(trials)} counts of clusters")
    if any(not 0 <= count <= of for count, of in zip(successes, trials, strict=True)):
        raise _input("successes", "a cluster has more successes than trials or fewer than none")
    total = sum(trials)
    if total == 0:
        raise _input("trials", "nothing was tried")
    rate = Fraction(sum(successes), total)
    squares = sum((count - of * rate) ** 2 for count, of in zip(successes, trials, strict=True))
    return math.sqrt(squares * Fraction(len(trials), len(trials) - 1)) / total


def standard_error(values: Sequence[float]) -> float:
    """Standard error of a mean as if every observation stood alone (population variance).

    Raises:
        UsageError: `STATISTIC_INPUT`, no value.
    """
    if not values:
        raise _input("values", "no value")
    return float(np.std(np.asarray(values, dtype=np.float64))) / math.sqrt(len(values))


def pass_hat_k(successes: Sequence[int], trials: int, k: int) -> float:
    """pass^k: the chance that k trials of one task all succeed, averaged over tasks.

    mean over tasks of C(c, k) / C(n, k) for c successes in n trials (arXiv 2406.12045).

    Raises:
        UsageError: `STATISTIC_INPUT`, no task, k outside 1..trials, or a count above trials.
    """
    if not successes or not 1 <= k <= trials:
        raise _input("k", f"pass^{k} of {trials} trials over {len(successes)} tasks")
    if any(not 0 <= count <= trials for count in successes):
        raise _input("successes", f"a task has more than {trials} successes or fewer than none")
    return sum(math.comb(count, k) for count in successes) / (math.comb(trials, k) * len(successes))


def bonferroni(p_values: Sequence[float], comparisons: int | None = None) -> list[float]:
    """p-values times the number of planned comparisons, at most 1.

    Args:
        p_values: raw p-values.
        comparisons: how many were planned; as many as there are p-values where not given.

    Raises:
        UsageError: `STATISTIC_INPUT`, fewer planned than made.
    """
    planned = len(p_values) if comparisons is None else comparisons
    if planned < len(p_values):
        raise _input("comparisons", f"{len(p_values)} comparisons made, {planned} planned")
    return [min(1.0, p * planned) for p in p_values]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Scand. J. Statist. 6, 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = running
    return adjusted


def _whole(deltas: Sequence[int | Fraction]) -> list[int]:
    """The deltas over their common denominator."""
    fractions = [Fraction(delta) for delta in deltas]
    scale = math.lcm(*(fraction.denominator for fraction in fractions))
    return [int(fraction * scale) for fraction in fractions]


def _flipped_sums(deltas: Sequence[int]) -> dict[int, int]:
    """How many sign assignments give each total."""
    ways = {0: 1}
    for delta in deltas:
        grown: dict[int, int] = {}
        for total, count in ways.items():
            for flipped in (total - delta, total + delta):
                grown[flipped] = grown.get(flipped, 0) + count
        ways = grown
    return ways


def _input(field: str, message: str) -> UsageError:
    return UsageError("STATISTIC_INPUT", message, field=field)
