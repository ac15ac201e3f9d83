"""Power of the whole gate: against the closed form, SciPy, the published study, and the gate itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import permutation_test

from ledger.errors import UsageError
from verifiers.judgement import power
from verifiers.judgement.power import Design, best, gate_power, what_suffices
from verifiers.judgement.resampling import bootstrap, generator, sign_flip_rows

PUBLISHED = Design(
    baseline_rate=954 / 960,
    effect=6 / 960,
    spread=0.0,
    seeds=6,
    cases=32,
    families=8,
    rollouts=5,
    alpha=0.05,
    comparisons=1,
    minimum_gain=0.0,
)
PINNED = [0.456, 0.456, 0.461]
ROOMY = replace(PUBLISHED, baseline_rate=0.5, effect=0.15, minimum_gain=0.03)


def test_the_published_design_had_power_0_064() -> None:
    """Simulated with every statistic, a candidate that never fails is found as rarely as the closed form says."""
    closed = best(PUBLISHED).perfect_power
    assert round(closed, 3) == 0.064
    assert gate_power(PUBLISHED, 1, trials=4000) == pytest.approx(closed, abs=0.012)


def test_what_would_have_sufficed() -> None:
    """Eleven seeds, or some 528 answers a seed, reach 0.80 against the published baseline."""
    found = what_suffices(PUBLISHED, 0.8, 1)
    assert found.seeds in (11, 12)
    assert found.answers is not None
    assert 512 <= found.answers <= 608


def test_nothing_suffices_where_the_minimum_gain_is_out_of_reach() -> None:
    """A minimum gain beyond what the baseline leaves is reached by no number of seeds or answers."""
    found = what_suffices(replace(PUBLISHED, minimum_gain=0.03), 0.8, 1)
    assert (found.seeds, found.answers) == (None, None)


@pytest.mark.parametrize(
    ("change", "grows"),
    [
        ({"effect": 0.2}, True),
        ({"seeds": 8}, True),
        ({"rollouts": 10}, True),
        ({"spread": 0.1}, False),
        ({"comparisons": 2}, False),
        ({"minimum_gain": 0.14}, False),
        ({"cases": 8}, False),
    ],
)
def test_power_moves_the_way_it_must(change, grows) -> None:
    """More effect, seeds or answers raise the power; spread, comparisons and a larger minimum gain lower it."""
    middling = replace(ROOMY, effect=0.1)
    before, after = (gate_power(item, 3) for item in (middling, replace(middling, **change)))
    assert (after > before) == grows
    assert abs(after - before) > 0.02


def test_each_statistic_of_the_gate_can_fail_a_study(monkeypatch) -> None:
    """With one bootstrap replicate in twenty below zero the interval alone takes power away."""
    wide = replace(ROOMY, cases=4, families=1, rollouts=40, effect=0.05, minimum_gain=0.0)
    whole = gate_power(wide, 3)
    monkeypatch.setattr(power, "_above_zero", lambda *_: True)
    assert whole < gate_power(wide, 3)


def test_equal_arms_pass_no_more_often_than_half_of_alpha() -> None:
    """With hardly an effect the gate passes by chance at most, in the one direction that counts."""
    nothing = replace(ROOMY, effect=1e-9, minimum_gain=0.0)
    assert gate_power(nothing, 3, trials=4000) <= 0.022


def test_power_is_pinned() -> None:
    """One recorded seed gives one figure, so that a verifier with other libraries must agree."""
    found = [gate_power(replace(ROOMY, effect=0.08, spread=0.03), seed) for seed in (1, 1, 2)]
    assert found == PINNED


def test_the_sign_flip_of_simulated_studies_is_scipys() -> None:
    """The exact p of each simulated row is that of SciPy's exhaustive permutation test."""
    rows = np.array([[5, 3, -1, 4, 2, 6], [1, 0, 0, 2, 1, 0], [-3, 2, -1, 0, 1, -2]])
    theirs = [
        permutation_test(
            (row.astype(float),), np.sum, permutation_type="samples", n_resamples=np.inf
        ).pvalue
        for row in rows
    ]
    assert sign_flip_rows(rows) == pytest.approx(theirs, abs=1e-15)


def test_the_interval_of_simulated_studies_is_the_gates() -> None:
    """A study's lower endpoint lies above zero in the simulation where the gate's own bootstrap says so."""
    rng = np.random.default_rng(5)
    by_seed = power.seed_weights(generator(1), 4000, 6, drawn=True)
    by_case = power.case_weights(generator(2), 4000, ["a"] * 16 + ["b"] * 16, drawn=True)
    checked = 0
    for _ in range(40):
        delta = rng.integers(-1, 2, (6, 32)) + (rng.random((6, 32)) < 0.2)
        gate = bootstrap(delta, np.ones((6, 32)), ["a"] * 16 + ["b"] * 16, generator(9))
        if abs(gate.lower) < 0.02:
            continue  # within the noise of replicates
        checked += 1
        assert power._above_zero(delta, by_seed, by_case) == (gate.lower > 0)
    assert checked > 12


@pytest.mark.parametrize(
    "change",
    [
        {"baseline_rate": 1.5},
        {"effect": 0.0},
        {"spread": -0.1},
        {"seeds": 17},
        {"cases": 0},
        {"families": 33},
        {"rollouts": 10**6},
        {"alpha": 0.0},
        {"comparisons": 0},
        {"minimum_gain": 2.0},
    ],
)
def test_an_impossible_design_is_refused_by_its_field(change) -> None:
    """Each field out of its range is one error that names it."""
    with pytest.raises(UsageError) as caught:
        gate_power(replace(PUBLISHED, **change), 1)
    assert (caught.value.code, caught.value.field) == ("STATISTIC_INPUT", next(iter(change)))
