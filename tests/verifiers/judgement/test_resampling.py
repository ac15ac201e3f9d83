"""The two-level bootstrap and attainable power, against exact enumeration and published figures."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from ledger.errors import UsageError
from verifiers.judgement.resampling import attainable, bootstrap, generator, power
from verifiers.judgement.statistics import Interval

PINNED = Interval(-42 / 144, 2 / 144)
SPLITS = [(2, 2, 1, 1, 0, 0), (3, 1, 1, 1, 0, 0)]


def layout(split: tuple[int, ...], cases: int, families: int, step: int):
    """Deltas, rollouts and families of 960 rollouts an arm; each gain lies on a case of its own."""
    deltas = np.zeros((6, cases))
    failing = (index * step for index in range(sum(split)))
    for seed, gains in enumerate(split):
        for _ in range(gains):
            deltas[seed, next(failing)] += 1
    sizes = np.full((6, cases), 160 // cases)
    return deltas, sizes, [f"family{case * families // cases}" for case in range(cases)]


def chance_of_no_gain(deltas: np.ndarray, families: list[str]) -> float:
    """Exact probability that a replicate draws no gain, summed over the supports of the seeds."""
    seeds = len(deltas)
    labels = np.array(families)
    total = 0.0
    for size in range(1, seeds + 1):
        chance = sum(
            (-1) ** (size - j) * comb(size, j) * (j / seeds) ** seeds for j in range(1, size + 1)
        )
        for support in combinations(range(seeds), size):
            bad = deltas[list(support)].any(axis=0)
            spared = 1.0
            for family in set(families):
                members = int((labels == family).sum())
                spared *= ((members - int(bad[labels == family].sum())) / members) ** members
            total += chance * spared
    return total


@pytest.mark.parametrize(
    ("split", "upper"), [(SPLITS[0], 14 / 960), (SPLITS[1], 15 / 960)], ids=["2211", "3111"]
)
def test_published_study_has_lower_endpoint_zero(split: tuple[int, ...], upper: float) -> None:
    """Seeds x cases on 32 cases in 8 families: the lower endpoint is exactly 0, so no gate passes."""
    found = bootstrap(*layout(split, 32, 8, step=4), generator(7))
    assert found.lower == 0.0
    assert found.upper == pytest.approx(upper, abs=1e-12)


def test_six_improved_seeds_have_a_positive_endpoint() -> None:
    """With a gain in every seed the same design is above zero, so zero above is no artefact."""
    found = bootstrap(*layout((1, 1, 1, 1, 1, 1), 32, 8, step=4), generator(7))
    assert round(found.lower, 5) == 0.00104


@pytest.mark.parametrize(("split", "upper"), [(SPLITS[0], 0.0104), (SPLITS[1], 0.0115)])
def test_seeds_alone_would_have_said_more(split: tuple[int, ...], upper: float) -> None:
    """Resampling seeds only gives +0.21 points as the lower endpoint, on the same data."""
    found = bootstrap(*layout(split, 32, 8, step=4), generator(7), levels="seeds")
    assert found.lower == 2 / 960
    assert round(found.upper, 4) == upper


@pytest.mark.parametrize("split", SPLITS, ids=["2211", "3111"])
@pytest.mark.parametrize("cases", [20, 40, 80, 160])
@pytest.mark.parametrize("families", [1, 2, 4])
@pytest.mark.parametrize("packed", [True, False])
def test_endpoint_agrees_with_exact_enumeration(split, cases, families, packed) -> None:
    """The share of replicates without a gain is the exact chance: the endpoint leaves 0 just there."""
    deltas, sizes, labels = layout(split, cases, families, step=1 if packed else cases // 8)
    chance = chance_of_no_gain(deltas, labels)
    below, above = (
        bootstrap(deltas, sizes, labels, generator(11), level=1 - 2 * tail).lower
        for tail in (chance * 0.8, chance * 1.2)
    )
    assert below == 0.0
    assert above > 0.0


def test_bootstrap_of_cases_alone_is_the_binomial_spread() -> None:
    """One family, one seed: the interval of a mean of independent cases has the normal width."""
    deltas = np.array([[1] * 100 + [0] * 100])
    found = bootstrap(deltas, np.ones_like(deltas), ["f"] * 200, generator(5), levels="cases")
    half = 1.96 * np.sqrt(0.25 / 200)
    assert (found.lower, found.upper) == pytest.approx((0.5 - half, 0.5 + half), abs=0.006)


def test_families_are_strata() -> None:
    """Where outcomes are constant inside each family, resampling cases adds no spread at all."""
    deltas = np.array([[1] * 10 + [0] * 30])
    families = ["gained"] * 10 + ["tied"] * 30
    found = bootstrap(deltas, np.ones_like(deltas), families, generator(5), levels="cases")
    assert (found.lower, found.upper) == (0.25, 0.25)


def test_all_seeds_share_the_drawn_cases() -> None:
    """Two seeds with opposite gains on every case cancel in every replicate of the cases."""
    row = np.array([1, 0, 1, 1, 0, 0, 1, 0])
    deltas = np.stack([row, -row])
    found = bootstrap(deltas, np.ones_like(deltas), ["f"] * 8, generator(5), levels="cases")
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_bootstrap_is_reproducible() -> None:
    """One recorded seed gives one interval, pinned here so that another numpy must agree."""
    rows = [[(3 * seed + 5 * case) % 7 % 3 - 1 for case in range(24)] for seed in range(6)]
    data = (rows, np.ones((6, 24)), [f"family{case % 3}" for case in range(24)])
    first, again, other = (bootstrap(*data, generator(seed)) for seed in (1, 1, 2))
    assert first == again
    assert (first.lower, first.upper) == pytest.approx((PINNED.lower, PINNED.upper), abs=1e-12)
    assert first != other


@pytest.mark.parametrize(
    ("deltas", "sizes", "families"),
    [
        ([[1, 0]], [[1]], ["a", "b"]),
        ([[1, 0]], [[1, 1]], ["a"]),
        ([1, 0], [1, 1], ["a", "b"]),
        ([[1, 0]], [[0, 0]], ["a", "b"]),
        ([[1, 0]], [[1, -1]], ["a", "b"]),
    ],
    ids=["sizes", "families", "flat", "nothing decided", "negative"],
)
def test_bootstrap_refuses_shapes_that_do_not_fit(deltas, sizes, families) -> None:
    """Each malformed input is one clear error."""
    with pytest.raises(UsageError) as caught:
        bootstrap(deltas, sizes, families, generator(1))
    assert caught.value.code == "STATISTIC_INPUT"


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [(6, 0.064), (7, 0.206), (8, 0.389), (9, 0.567), (10, 0.714), (11, 0.822), (12, 0.894)],
)
def test_attainable_power_of_the_published_study(seeds: int, expected: float) -> None:
    """Against a baseline of 954 in 960 even a perfect candidate has this power with 160 rollouts a seed."""
    assert round(attainable(954 / 960, 160, seeds, alpha=0.05).perfect_power, 3) == expected


def test_attainable_gain_and_smallest_p() -> None:
    """The published design can gain 0.625 points at most; six seeds reach p = 0.03125, five only 0.0625."""
    six = attainable(954 / 960, 160, 6, alpha=0.05)
    five = attainable(954 / 960, 160, 5, alpha=0.05)
    assert (round(six.gain, 5), six.minimum_p) == (0.00625, 0.03125)
    assert (five.minimum_p, five.perfect_power) == (0.0625, 0.0)
    assert round(attainable(954 / 960, 528, 6, alpha=0.05).perfect_power, 2) == 0.8
    assert attainable(0.5, 160, 6, alpha=0.05, comparisons=2).perfect_power == 0.0


def test_simulated_power_agrees_with_the_closed_form() -> None:
    """A candidate without a failure, simulated, has the power of the closed form."""
    simulated = power(954 / 960, 1.0, 160, 10, generator(3), alpha=0.05, trials=20_000)
    closed = attainable(954 / 960, 160, 10, alpha=0.05).perfect_power
    assert simulated == pytest.approx(closed, abs=0.012)


def test_power_without_an_effect_is_below_alpha() -> None:
    """Equal arms are found to differ in one direction no more often than half of alpha."""
    assert power(0.5, 0.0, 100, 8, generator(3), alpha=0.05, trials=20_000) <= 0.027


@pytest.mark.parametrize(
    ("rate", "rollouts", "seeds"), [(1.5, 10, 6), (0.5, 0, 6), (0.5, 10, 0), (0.5, 10, 17)]
)
def test_power_refuses_impossible_designs(rate: float, rollouts: int, seeds: int) -> None:
    """A rate outside [0, 1], no rollout, no seed or too many seeds is refused."""
    with pytest.raises(UsageError):
        power(rate, 0.1, rollouts, seeds, generator(3), alpha=0.05)
