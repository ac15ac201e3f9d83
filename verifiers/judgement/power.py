"""What a study can show: how far a perfect candidate could come, and how often the whole gate would find a gain.

Power is simulated under a stated effect and spread, with every statistic of the gate: the exact sign flip, the bootstrap
over seeds and family-stratified cases, the minimum gain. Draws are compared with rates as the raw stream gives them, so
that another numpy or SciPy finds the same count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from ledger.canonical import real
from ledger.errors import UsageError
from verifiers.judgement.resampling import (
    Attainable,
    attainable,
    case_weights,
    generator,
    seed_weights,
    sign_flip_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

METHOD: Final = "gate-power/1"
TRIALS: Final = 1000
REPLICATES: Final = 1000
TAIL: Final = 0.025
MAX_SIMULATED_SEEDS: Final = 16
MAX_CASES: Final = 5_000
MAX_ANSWERS: Final = 50_000
_BLOCK_DRAWS: Final = 1 << 20
_UNIFORMS: Final = 12
_SEARCH_TRIALS: Final = 400
_SEARCH_ANSWERS: Final = 40_000


@dataclass(frozen=True)
class Design:
    """What a study plans. Rates, gains and the spread are fractions of 1.

    Attributes:
        baseline_rate: share of cases that the baseline gets right.
        effect: the gain that the study wants to be able to find.
        spread: standard deviation of the true gain between training seeds.
        seeds: training seeds.
        cases: cases of the test, the same for every seed.
        families: how many families the cases come from, as even as can be.
        rollouts: answers to each case, per seed and arm.
        alpha: largest p that counts.
        comparisons: planned comparisons.
        minimum_gain: smallest mean gain that passes.
    """

    baseline_rate: float
    effect: float
    spread: float
    seeds: int
    cases: int
    families: int
    rollouts: int
    alpha: float
    comparisons: int
    minimum_gain: float

    @property
    def answers(self) -> int:
        """Answers of one seed and arm."""
        return self.cases * self.rollouts


def check_design(design: Design) -> None:
    """Refuse a design that no power can be simulated for.

    Raises:
        UsageError: `STATISTIC_INPUT`, with the field.
    """
    bounds = {
        "baseline_rate": 0.0 <= design.baseline_rate <= 1.0,
        "effect": 0.0 < design.effect <= 1.0,
        "spread": 0.0 <= design.spread <= 1.0,
        "seeds": 1 <= design.seeds <= MAX_SIMULATED_SEEDS,
        "cases": 1 <= design.cases <= MAX_CASES,
        "families": 1 <= design.families <= design.cases,
        "rollouts": design.rollouts >= 1 and design.seeds * design.answers <= MAX_ANSWERS,
        "alpha": 0.0 < design.alpha < 1.0,
        "comparisons": design.comparisons >= 1,
        "minimum_gain": 0.0 <= design.minimum_gain <= 1.0,
    }
    for field, fits in bounds.items():
        if not fits:
            limits = f"1 to {MAX_SIMULATED_SEEDS} seeds, {MAX_CASES} cases, {MAX_ANSWERS} answers"
            raise UsageError(
                "STATISTIC_INPUT",
                f"{field} {getattr(design, field)} is out of range (at most {limits})",
                field=field,
            )


def best(design: Design) -> Attainable:
    """What a candidate that never fails could reach in this design.

    Raises:
        UsageError: `STATISTIC_INPUT`.
    """
    check_design(design)
    return attainable(
        design.baseline_rate,
        design.answers,
        design.seeds,
        alpha=design.alpha,
        comparisons=design.comparisons,
    )


def gate_power(
    design: Design, seed: int, *, trials: int = TRIALS, replicates: int = REPLICATES
) -> float:
    """Share of simulated studies whose statistics all pass.

    Answers are independent given their rate, which is cautious: pairing by case can only help. The true gain of a
    training seed is effect + spread * z, z a sum of twelve uniform numbers less six; a rate is cut to [0, 1].

    Args:
        design: what is planned.
        seed: recorded seed of the random source.
        trials: simulated studies.
        replicates: bootstrap replicates of each; all studies share one set of draws.

    Raises:
        UsageError: `STATISTIC_INPUT`.
    """
    check_design(design)
    rng = generator(seed)
    labels = [str(case * design.families // design.cases) for case in range(design.cases)]
    by_seed = seed_weights(rng, replicates, design.seeds, drawn=True)
    by_case = case_weights(rng, replicates, labels, drawn=True)
    block = max(1, _BLOCK_DRAWS // (design.seeds * design.answers))
    passed = 0
    for start in range(0, trials, block):
        deltas = _studies(design, rng, min(block, trials - start))
        passed += _passed(design, deltas, by_seed, by_case)
    return passed / trials


@dataclass(frozen=True)
class Enough:
    """What would reach the power that is demanded, each alone; None where nothing within the limits does."""

    seeds: int | None
    answers: int | None


def what_suffices(design: Design, floor: float, seed: int) -> Enough:
    """About the fewest seeds, and the fewest answers a seed, with which the simulated gate has the power demanded.

    Raises:
        UsageError: `STATISTIC_INPUT`.
    """
    # a mean gain around the minimum passes half the time at best, whatever is added
    if design.minimum_gain >= min(design.effect, best(design).gain):
        return Enough(None, None)

    def enough(changed: Design) -> bool:
        if changed.seeds * changed.answers > _SEARCH_ANSWERS:
            return False
        # the closed form bounds the simulation from above and costs nothing
        return (
            best(changed).perfect_power >= floor
            and gate_power(changed, seed, trials=_SEARCH_TRIALS) >= floor
        )

    more = (replace(design, seeds=n) for n in range(design.seeds, MAX_SIMULATED_SEEDS + 1))
    seeds = next((changed.seeds for changed in more if enough(changed)), None)
    return Enough(seeds, _answers(design, enough))


def _answers(design: Design, enough: Callable[[Design], bool]) -> int | None:
    def changed(rollouts: int) -> Design:
        return replace(design, rollouts=rollouts)

    high = design.rollouts
    while not enough(changed(high)):
        high *= 2
        if design.seeds * design.cases * high > _SEARCH_ANSWERS:
            return None
    low = high // 2
    while high - low > max(1, high // 32):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(changed(middle)) else (middle, high)
    return high * design.cases


def _uniform(rng: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) from the raw stream, whose every bit numpy promises to keep."""
    raw = rng.bit_generator.random_raw(math.prod(shape))
    return ((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def _studies(design: Design, rng: np.random.Generator, trials: int) -> NDArray[np.int64]:
    """Gains of simulated studies, shape (trials, seeds, cases)."""
    shape = (trials, design.seeds, design.cases, design.rollouts)
    z = _uniform(rng, _UNIFORMS, trials, design.seeds).sum(axis=0) - _UNIFORMS / 2
    rate = np.clip(design.baseline_rate + design.effect + design.spread * z, 0.0, 1.0)
    baseline = (_uniform(rng, *shape) < design.baseline_rate).sum(axis=3)
    candidate = (_uniform(rng, *shape) < rate[:, :, None, None]).sum(axis=3)
    return np.asarray(candidate - baseline, dtype=np.int64)


def _passed(
    design: Design,
    deltas: NDArray[np.int64],
    by_seed: NDArray[np.float64],
    by_case: NDArray[np.float64],
) -> int:
    """How many of the studies pass every statistic of the gate."""
    gains = deltas.sum(axis=2)
    totals = gains.sum(axis=1)
    floor = Fraction(real(design.minimum_gain)) * design.seeds * design.answers
    significant = sign_flip_rows(gains) * design.comparisons <= design.alpha
    candidates = np.flatnonzero(significant & (totals > 0) & (totals >= math.ceil(floor)))
    return sum(_above_zero(deltas[index], by_seed, by_case) for index in candidates)


def _above_zero(
    delta: NDArray[np.int64], by_seed: NDArray[np.float64], by_case: NDArray[np.float64]
) -> bool:
    """Whether the lower endpoint of the bootstrap lies above 0: every replicate has as many answers as the study."""
    totals = np.sum((by_case @ delta.T.astype(np.float64)) * by_seed, axis=1)
    return bool(np.quantile(totals, TAIL) > 0.0)
