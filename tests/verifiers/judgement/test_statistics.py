"""Exact tests and intervals, against SciPy, statsmodels and published figures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from ledger.errors import UsageError
from verifiers.judgement.statistics import (
    PairedTable,
    bonferroni,
    clustered_se,
    clustered_se_of_counts,
    holm,
    mcnemar,
    paired_table,
    pass_hat_k,
    sign_flip,
    smallest_p,
    standard_error,
    wilson,
)

# Successes in four trials of each of the 50 tasks of sierra-research/tau-bench (MIT),
# historical_trajectories/gpt-4o-airline.json.
AIRLINE = [
    *(0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4),
    *(0, 2, 2, 0, 1, 2, 2, 0, 0, 3, 4, 4, 3, 4, 1, 3, 2, 4, 1, 2, 2, 2, 1, 4, 4),
]
ROLLOUTS = [int(trial < count) for count in AIRLINE for trial in range(4)]
TASKS = [task for task in range(50) for _ in range(4)]


@pytest.mark.parametrize(
    ("split", "p"),
    [
        ((1, 1, 1, 1, 1, 1), 0.03125),
        ((2, 1, 1, 1, 1, 0), 0.0625),
        ((2, 2, 1, 1, 0, 0), 0.125),
        ((3, 1, 1, 1, 0, 0), 0.125),
        ((2, 2, 2, 0, 0, 0), 0.25),
        ((3, 2, 1, 0, 0, 0), 0.25),
        ((4, 1, 1, 0, 0, 0), 0.25),
        ((3, 3, 0, 0, 0, 0), 0.5),
        ((4, 2, 0, 0, 0, 0), 0.5),
        ((5, 1, 0, 0, 0, 0), 0.5),
        ((6, 0, 0, 0, 0, 0), 1.0),
    ],
)
def test_sign_flip_of_six_gains(split: tuple[int, ...], p: float) -> None:
    """Every split of six gains over six seeds has its exact p; ties are kept."""
    assert sign_flip(split) == p


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_sign_flip_agrees_with_brute_force(deltas: list[int]) -> None:
    """The count over sums is the count over all sign assignments."""
    signs = 1 - 2 * ((np.arange(2 ** len(deltas))[:, None] >> np.arange(len(deltas))) & 1)
    totals = np.abs(signs @ np.array(deltas))
    assert sign_flip(deltas) == float(np.mean(totals >= abs(sum(deltas))))


def test_sign_flip_agrees_with_scipy() -> None:
    """SciPy's exhaustive permutation test gives the same two-sided p."""
    deltas = (5, 3, -1, 4, 2, 6, 1)
    found = permutation_test(
        (np.array(deltas, dtype=float),), np.sum, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip(deltas) == pytest.approx(found.pvalue, abs=1e-15)


def test_sign_flip_keeps_ties_that_floats_would_break() -> None:
    """Gains of a tenth, two tenths and three tenths tie exactly, which 0.1 + 0.2 does not."""
    deltas = [Fraction(1, 10), Fraction(2, 10), Fraction(-3, 10)]
    assert sign_flip(deltas) == 1.0


def test_sign_flip_takes_many_seeds_of_small_counts() -> None:
    """Sixty-four seeds of one success each are counted exactly."""
    assert sign_flip([1] * 64) == smallest_p(64) == 2.0**-63


@pytest.mark.parametrize("deltas", [[], [1] * 65, [2**i for i in range(30)]])
def test_sign_flip_refuses_what_it_cannot_count(deltas: list[int]) -> None:
    """No seed, too many seeds, or too many different sums is refused, not approximated."""
    with pytest.raises(UsageError) as caught:
        sign_flip(deltas)
    assert caught.value.code == "STATISTIC_INPUT"


def test_pooled_mcnemar_of_the_published_study() -> None:
    """960 against 954 of 960, pooled, would have said p = 0.03125."""
    assert mcnemar(PairedTable(954, 6, 0, 0)) == 0.03125


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_agrees_with_statsmodels(gained: int, lost: int) -> None:
    """The exact test gives statsmodels' p for every discordant count."""
    theirs = statsmodels_mcnemar([[7, lost], [gained, 5]], exact=True).pvalue
    assert mcnemar(PairedTable(7, gained, lost, 5)) == pytest.approx(theirs, abs=1e-12)


def test_paired_table_counts_each_cell() -> None:
    """Each of the four kinds of pair lands in its own cell."""
    table = paired_table(
        [True, True, True, False, False, True], [True, False, False, True, False, True]
    )
    assert table == PairedTable(both=2, candidate_only=1, baseline_only=2, neither=1)
    assert (table.pairs, table.delta, table.gain) == (6, -1, -1 / 6)


def test_paired_table_refuses_unequal_arms() -> None:
    """Arms of different lengths are not paired."""
    with pytest.raises(UsageError, match="can't be paired"):
        paired_table([True], [True, False])


@given(st.integers(0, 60), st.integers(0, 60))
def test_wilson_agrees_with_statsmodels(successes: int, failures: int) -> None:
    """The interval is statsmodels' Wilson interval, and [0, 1] where nothing was tried."""
    trials = successes + failures
    found = wilson(successes, trials)
    theirs = proportion_confint(successes, trials, method="wilson") if trials else (0.0, 1.0)
    assert (found.lower, found.upper) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(3, 2), (-1, 2)])
def test_wilson_refuses_what_is_no_share(successes: int, trials: int) -> None:
    """More successes than trials, or fewer than none, is refused."""
    with pytest.raises(UsageError, match="is not a share"):
        wilson(successes, trials)


def test_clustered_se_of_published_rollouts() -> None:
    """200 published rollouts: mean 0.42, naive error 0.0349, clustered 0.0522, as for task means."""
    means = [count / 4 for count in AIRLINE]
    assert sum(ROLLOUTS) / 200 == 0.42
    assert round(standard_error(ROLLOUTS), 4) == 0.0349
    assert round(clustered_se(ROLLOUTS, TASKS), 4) == 0.0522
    assert clustered_se(ROLLOUTS, TASKS) == pytest.approx(np.std(means, ddof=1) / np.sqrt(50))


def test_clustered_se_agrees_with_statsmodels() -> None:
    """A regression on a constant with clustered covariance gives the same error, up to its factor."""
    values = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0])
    groups = np.array([0, 0, 1, 1, 1, 2, 3])
    fitted = OLS(values, np.ones(7)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    ours = clustered_se(list(values), list(groups))
    assert ours == pytest.approx(float(fitted.bse[0]) * np.sqrt(4 / 3))


def test_clustered_se_from_counts_is_that_from_rollouts() -> None:
    """The published figure follows from the 50 tasks' counts alone; clusters of other sizes agree too."""
    assert round(clustered_se_of_counts(AIRLINE, [4] * 50), 4) == 0.0522
    values, groups = [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1, 1, 2, 3]
    found = clustered_se_of_counts([1, 3, 0, 0], [2, 3, 1, 1])
    assert found == pytest.approx(clustered_se(values, groups), abs=1e-15)


@pytest.mark.parametrize(
    ("successes", "trials"), [([1], [1]), ([1, 2], [1]), ([2, 0], [1, 1]), ([0, 0], [0, 0])]
)
def test_clustered_se_from_counts_refuses_what_is_no_count(successes, trials) -> None:
    """One cluster, lists of two lengths, more successes than trials, or nothing tried is refused."""
    with pytest.raises(UsageError) as caught:
        clustered_se_of_counts(successes, trials)
    assert caught.value.code == "STATISTIC_INPUT"


@pytest.mark.parametrize("clusters", [[1, 1], [1]])
def test_clustered_se_refuses_one_cluster(clusters: list[int]) -> None:
    """One cluster, or labels that do not match the values, has no clustered error."""
    with pytest.raises(UsageError) as caught:
        clustered_se([1.0, 2.0], clusters)
    assert caught.value.code == "STATISTIC_INPUT"


def test_standard_error_refuses_nothing() -> None:
    """No value has no standard error."""
    with pytest.raises(UsageError, match="no value"):
        standard_error([])


@pytest.mark.parametrize(("k", "expected"), [(1, 0.42), (2, 0.2733), (3, 0.22), (4, 0.2)])
def test_pass_hat_k_of_published_rollouts(k: int, expected: float) -> None:
    """pass^1 to pass^4 of the published rollouts."""
    assert round(pass_hat_k(AIRLINE, 4, k), 4) == expected


@pytest.mark.parametrize(
    ("counts", "trials", "k"), [([], 4, 1), ([1], 4, 5), ([1], 4, 0), ([5], 4, 1)]
)
def test_pass_hat_k_refuses_impossible_counts(counts: list[int], trials: int, k: int) -> None:
    """No task, k outside the trials, or more successes than trials is refused."""
    with pytest.raises(UsageError):
        pass_hat_k(counts, trials, k)


@pytest.mark.parametrize(
    "p_values",
    [[0.04], [0.01, 0.02, 0.03], [0.03, 0.01, 0.02, 0.9], [0.5, 0.5], [1.0, 0.0, 0.013, 0.013]],
)
def test_adjusted_p_values_agree_with_statsmodels(p_values: list[float]) -> None:
    """Holm and Bonferroni give statsmodels' adjusted p-values in the order given."""
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)
    theirs = multipletests(p_values, method="bonferroni")[1]
    assert bonferroni(p_values) == pytest.approx(theirs, abs=1e-12)


def test_bonferroni_counts_planned_comparisons() -> None:
    """Comparisons planned but not made still cost; made but not planned are refused."""
    assert bonferroni([0.01], comparisons=4) == [0.04]
    with pytest.raises(UsageError, match="2 comparisons made, 1 planned"):
        bonferroni([0.1, 0.2], comparisons=1)
