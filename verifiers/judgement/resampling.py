"""Bootstrap over seeds and cases, and what a study can attain. The random source is passed in.

Numpy promises the raw stream of a bit generator for ever, but not the method that turns it into
bounded integers. So indices are made here from the raw stream: a verifier with another numpy gets
the same replicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import binom

from ledger.errors import UsageError
from verifiers.judgement.statistics import MAX_SEEDS, Interval, smallest_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Levels = Literal["seeds", "cases", "seeds_and_cases"]
REPLICATES = 10_000
POWER_TRIALS = 2_000


def generator(seed: int) -> np.random.Generator:
    """The random source of a recorded seed (PCG64, whose raw stream numpy guarantees)."""
    return np.random.Generator(np.random.PCG64(seed))


def bootstrap(
    deltas: ArrayLike,
    sizes: ArrayLike,
    families: Sequence[str],
    rng: np.random.Generator,
    *,
    replicates: int = REPLICATES,
    level: float = 0.95,
    levels: Levels = "seeds_and_cases",
) -> Interval:
    """Percentile interval of the mean gain, seeds and case clusters drawn with replacement.

    Each replicate draws training seeds, and inside each family draws case clusters; the same drawn
    clusters serve all drawn seeds. Rate = total delta / total rollouts of the replicate. Quantiles
    are interpolated linearly.

    Args:
        deltas: candidate minus baseline successes, shape (seeds, clusters), whole numbers.
        sizes: rollouts behind each delta, same shape, zero where nothing was decided.
        families: the family of each cluster.
        rng: a generator of `generator`.
        replicates: how many.
        level: coverage of the interval.
        levels: what is drawn; `seeds` and `cases` alone show what a weaker analysis would say.

    Raises:
        UsageError: `STATISTIC_INPUT`, shapes that do not fit, or nothing decided.
    """
    delta, size = _matrices(deltas, sizes, families)
    seeds = seed_weights(rng, replicates, delta.shape[0], drawn=levels != "cases")
    cases = case_weights(rng, replicates, families, drawn=levels != "seeds")
    totals = np.sum((seeds @ delta) * cases, axis=1)
    rollouts = np.sum((seeds @ size) * cases, axis=1)
    # A replicate that drew nothing decided shows no gain; leaving it out would narrow the interval.
    rates = np.divide(totals, rollouts, out=np.zeros_like(totals), where=rollouts > 0)
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(rates, [tail, 1.0 - tail])
    return Interval(float(lower), float(upper))


@dataclass(frozen=True)
class Attainable:
    """What the best possible result of a study could be."""

    gain: float
    minimum_p: float
    perfect_power: float


def attainable(
    baseline_rate: float, rollouts: int, seeds: int, *, alpha: float, comparisons: int = 1
) -> Attainable:
    """Largest gain, smallest p and the power of a candidate that never fails.

    A perfect candidate has no negative seed, so p = 2^(1-k) with k improved seeds, and a seed
    improves where the baseline fails at least once in its `rollouts`.

    Raises:
        UsageError: `STATISTIC_INPUT`, a rate outside [0, 1] or a count below 1.
    """
    _check_design(baseline_rate, rollouts, seeds)
    threshold = alpha / comparisons
    needed = next((k for k in range(1, seeds + 1) if smallest_p(k) <= threshold), seeds + 1)
    improves = 1.0 - baseline_rate**rollouts
    return Attainable(
        gain=1.0 - baseline_rate,
        minimum_p=min(1.0, smallest_p(seeds) * comparisons),
        perfect_power=float(binom.sf(needed - 1, seeds, improves)),
    )


def power(
    baseline_rate: float,
    effect: float,
    rollouts: int,
    seeds: int,
    rng: np.random.Generator,
    *,
    alpha: float,
    comparisons: int = 1,
    trials: int = POWER_TRIALS,
) -> float:
    """Share of simulated studies in which the sign-flip test finds a gain of `effect`.

    The arms are drawn independently, which is cautious: pairing by case can only help. A gain that
    the baseline's rate does not leave room for is cut to what is left.

    Raises:
        UsageError: `STATISTIC_INPUT`, a rate outside [0, 1], a count below 1, more than 16 seeds.
    """
    _check_design(baseline_rate, rollouts, seeds)
    if seeds > 16:
        raise UsageError("STATISTIC_INPUT", f"power of {seeds} seeds, at most 16", field="seeds")
    candidate = _binomial(rng, rollouts, min(1.0, max(0.0, baseline_rate + effect)), trials, seeds)
    deltas = candidate - _binomial(rng, rollouts, baseline_rate, trials, seeds)
    found = (sign_flip_rows(deltas) * comparisons <= alpha) & (deltas.sum(axis=1) > 0)
    return float(np.mean(found))


def _matrices(
    deltas: ArrayLike, sizes: ArrayLike, families: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    delta = np.asarray(deltas, dtype=np.float64)
    size = np.asarray(sizes, dtype=np.float64)
    if delta.ndim != 2 or delta.shape != size.shape or delta.shape[1] != len(families):
        raise UsageError(
            "STATISTIC_INPUT",
            f"deltas {delta.shape}, sizes {size.shape} and {len(families)} families do not fit",
            field="deltas",
        )
    if delta.size == 0 or size.sum() <= 0 or (size < 0).any():
        raise UsageError("STATISTIC_INPUT", "nothing was decided", field="sizes")
    return delta, size


def _draw(rng: np.random.Generator, replicates: int, count: int) -> NDArray[np.float64]:
    """How often each of `count` things is drawn in `count` draws, shape (replicates, count)."""
    raw = rng.bit_generator.random_raw(replicates * count)
    # Multiply and shift: the bias of at most count / 2^32 is far below what replicates can show.
    drawn = ((raw >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
    rows = np.repeat(np.arange(replicates, dtype=np.int64) * count, count)
    flat = np.bincount(rows + drawn.astype(np.int64), minlength=replicates * count)
    return flat.reshape(replicates, count).astype(np.float64)


def seed_weights(
    rng: np.random.Generator, replicates: int, seeds: int, *, drawn: bool
) -> NDArray[np.float64]:
    """How often each replicate draws each training seed, shape (replicates, seeds); once each where not drawn."""
    return _draw(rng, replicates, seeds) if drawn else np.ones((replicates, seeds))


def case_weights(
    rng: np.random.Generator, replicates: int, families: Sequence[str], *, drawn: bool
) -> NDArray[np.float64]:
    """How often each replicate draws each case within its family, shape (replicates, cases); once each where not drawn."""
    weights = np.ones((replicates, len(families)))
    if not drawn:
        return weights
    labels = np.asarray(families, dtype=object)
    for family in sorted(set(families)):
        columns = np.flatnonzero(labels == family)
        weights[:, columns] = _draw(rng, replicates, len(columns))
    return weights


def _binomial(
    rng: np.random.Generator, rollouts: int, rate: float, trials: int, seeds: int
) -> NDArray[np.int64]:
    """Binomial counts by inversion of the raw stream, shape (trials, seeds)."""
    raw = rng.bit_generator.random_raw(trials * seeds)
    uniform = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    cumulative = binom.cdf(np.arange(rollouts + 1), rollouts, rate)
    counts = np.searchsorted(cumulative, uniform, side="right")
    return np.minimum(counts, rollouts).reshape(trials, seeds).astype(np.int64)


def sign_flip_rows(deltas: NDArray[np.int64]) -> NDArray[np.float64]:
    """The exact two-sided sign-flip p of each row."""
    seeds = deltas.shape[1]
    bits = (np.arange(2**seeds)[:, None] >> np.arange(seeds)[None, :]) & 1
    signs = (1 - 2 * bits).astype(np.float64)
    observed = np.abs(deltas.sum(axis=1)).astype(np.float64)
    extreme: NDArray[np.float64] = np.zeros(len(deltas))
    for block in np.array_split(signs, max(1, len(signs) // 1024)):
        extreme += (np.abs(deltas @ block.T) >= observed[:, None]).sum(axis=1)
    p: NDArray[np.float64] = extreme / 2.0**seeds
    return p


def _check_design(baseline_rate: float, rollouts: int, seeds: int) -> None:
    if not 0.0 <= baseline_rate <= 1.0:
        raise UsageError("STATISTIC_INPUT", f"rate {baseline_rate}", field="baseline_rate")
    if rollouts < 1 or not 1 <= seeds <= MAX_SEEDS:
        raise UsageError("STATISTIC_INPUT", f"{seeds} seeds of {rollouts} rollouts", field="seeds")
