"""The published replication, analysed: the gate fails, and each weaker analysis is named as one."""

from __future__ import annotations

import numpy as np
import pytest
from published import SPLITS, published
from scipy.stats import bootstrap as scipy_bootstrap

from ledger.errors import UsageError
from ledger.floors import DEFAULT_POLICY
from verifiers.judgement.imported import NOT_SHOWN, STANDING, analyse, as_result, outcomes, rivals
from verifiers.judgement.outcome_table import Cell


@pytest.mark.parametrize("split", SPLITS, ids=["2211", "3111"])
def test_the_published_result_does_not_pass(split) -> None:
    """Both splits that fit give p = 0.125 exactly and a lower endpoint of exactly 0; rivals would have said otherwise."""
    result = as_result(analyse(published(split), DEFAULT_POLICY))
    assert result["sign_flip_p"] == 0.125
    assert result["bootstrap"]["lower"] == 0.0
    assert result["mean_gain"] == 6 / 960
    failed = {line["name"] for line in result["gates"] if not line["passed"]}
    assert {"significance", "interval", "gain"} < failed
    assert result["standing"] == STANDING
    assert round(result["attainable"]["power"], 3) == 0.064
    assert result["attainable"]["gain"] == pytest.approx(0.00625)
    shown = result["rivals"]
    assert shown["mcnemar_p"] == 0.03125
    assert round(shown["fisher_p"], 4) == 0.0310
    assert shown["one_sided_sign_test_p"] == 0.0625
    assert shown["seeds_only_lower"] == 2 / 960
    assert round(shown["paired_t_p"], 4) == {SPLITS[0]: 0.0409, SPLITS[1]: 0.0756}[split]


def test_an_imported_table_satisfies_no_gate_however_good_it_is() -> None:
    """Lines that need a study, checkpoints or re-runs fail, so the conjunction does."""
    good = {key: Cell(cell.family, 2, 5, 5) for key, cell in published(SPLITS[0]).items()}
    lines = analyse(good, DEFAULT_POLICY).lines
    passed = {line.name for line in lines if line.passed}
    assert passed == {"seeds", "pairing", "cases", "significance", "interval", "gain", "families"}
    assert {line.value for line in lines if not line.passed} == {NOT_SHOWN}


def test_lines_fail_by_what_the_table_shows() -> None:
    """A seed without a case, a family that falls, planned comparisons and too few seeds each fail their own line."""
    table = published(SPLITS[0])
    table |= {(seed, "case31"): Cell("family7", 5, 0, 5) for seed in range(1, 7)}
    del table[2, "case00"]
    short = {key: cell for key, cell in table.items() if key[0] < 6}
    values = {line.name: line.value for line in analyse(short, DEFAULT_POLICY).lines}
    assert values["seeds"] == "5"
    assert values["pairing"] == "a seed lacks cases of another"
    assert values["cases"] == "31"
    assert values["families"] == "1 fell: family7"
    single, double = (analyse(table, DEFAULT_POLICY, comparisons=n).p for n in (1, 2))
    assert double == min(1.0, 2 * single)


def test_resampling_seeds_alone_agrees_with_scipy() -> None:
    """The one-level interval is SciPy's percentile bootstrap of the seeds' gains, within its noise."""
    split = (9, 7, 5, 4, 2, 0)
    deltas = np.array(split) / 160
    theirs = scipy_bootstrap(
        (deltas,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    table = {
        (seed, f"case{case}"): Cell("f", 160 - count * (case == 0), 160, 160)
        for seed, count in enumerate(split)
        for case in range(2)
    }
    ours = rivals(outcomes(table))
    found = (2 * ours["seeds_only_lower"], 2 * ours["seeds_only_upper"])
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.001)


def test_figures_that_are_not_defined_are_left_out() -> None:
    """Equal gains have no t test, one case no clustered error; nothing divides by zero."""
    table = {(seed, "only"): Cell("f", 1, 2, 2) for seed in range(3)}
    shown = rivals(outcomes(table))
    assert (shown["paired_t_p"], shown["baseline_clustered_se"]) == (None, None)
    tied = {key: Cell("f", 1, 1, 2) for key in table}
    assert rivals(outcomes(tied))["one_sided_sign_test_p"] == 1.0


@pytest.mark.parametrize(("seeds", "cases", "field"), [(65, 1, "seed"), (1, 4097, "case")])
def test_more_than_can_be_counted_is_refused(seeds, cases, field) -> None:
    """Too many seeds or cases are one clear error, before anything is resampled."""
    table = {(s, str(c)): Cell("f", 0, 1, 1) for s in range(seeds) for c in range(cases)}
    with pytest.raises(UsageError) as caught:
        outcomes(table)
    assert (caught.value.code, caught.value.field) == ("STATISTIC_INPUT", field)
