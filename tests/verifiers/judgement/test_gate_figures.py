"""The numbers behind a gate: on the published result they are the published ones, and weaker analyses would have been pleased."""

from __future__ import annotations

import pytest
from judgement_rows import POLICY, line
from published import SPLITS

from verifiers.judgement.gate_evidence import Evidence, SeedEvidence, limits
from verifiers.judgement.gate_figures import NO_FIGURES, figures_of
from verifiers.judgement.gates import decide_gates
from verifiers.judgement.resampling import generator

CASES = 160
SETTINGS = {"protocol": "sha256:p"}


def seed(number: int, bad: set[int], decided: bool | None = True) -> SeedEvidence:
    """A seed whose candidate never fails, and whose baseline fails on these of 160 cases in 8 families."""
    arms = [
        [
            line(f"case{case:03d}", decided and case not in wrong, family=f"family{case // 20}")
            for case in range(CASES)
        ]
        for wrong in (bad, set())
    ]
    return SeedEvidence(
        seed=number,
        checkpoint=f"sha256:{number}",
        state=f"state {number}",
        traced=True,
        baseline=arms[0],
        candidate=arms[1],
        settings=(SETTINGS, SETTINGS),
        metadata={},
    )


@pytest.mark.parametrize("split", SPLITS)
def test_the_published_result_and_its_rivals(split) -> None:
    """The p is 0.125 and the lower end 0 in both layouts; McNemar would have said 0.03125, seeds alone above 0: not the gate."""
    failing = iter(range(0, CASES, 20))
    seeds = [
        seed(number, {next(failing) for _ in range(count)}) for number, count in enumerate(split, 1)
    ]
    found = figures_of(Evidence(seeds, judge_qualified=True), limits(POLICY))
    assert found["overall"]["p"] == 0.125
    assert found["overall"]["lower"] == 0.0
    assert found["rivals"]["mcnemar_p"] == 0.03125
    assert found["rivals"]["seeds_only_lower"] > 0.002
    assert [item["candidate_only"] for item in found["seeds"]] == list(split)
    assert sum(item["candidate"] - item["baseline"] for item in found["families"]) == 6


def test_figures_are_those_of_the_lines() -> None:
    """Mean gain, p and lower end are, digit by digit, what the gate's lines say."""
    seeds = [seed(number, {number, 20 + number, 40 + number}) for number in range(1, 7)]
    evidence, demanded = Evidence(seeds, judge_qualified=True), limits(POLICY)
    found = figures_of(evidence, demanded)["overall"]
    lines = {item.name: item.value for item in decide_gates(evidence, demanded, generator(0)).lines}
    assert str(found["p"]) == lines["significance"]
    assert str(found["lower"]) == lines["interval"]
    assert str(found["mean_gain"]) == lines["gain"]


def test_without_a_decided_case_there_is_no_figure() -> None:
    """Where a seed has no case that counts, or the seeds cannot be paired, there are reasons instead of figures."""
    undecided = [seed(1, set(), decided=None)]
    found = figures_of(Evidence(undecided, judge_qualified=True), limits(POLICY))
    assert (found["overall"], found["rivals"], found["problem"]) == (None, None, NO_FIGURES)
    assert found["seeds"][0]["undecided"] == CASES
    other = seed(2, set())
    other = SeedEvidence(**{**other.__dict__, "settings": (SETTINGS, {"protocol": "sha256:q"})})
    found = figures_of(Evidence([seed(1, set()), other], judge_qualified=True), limits(POLICY))
    assert found["overall"] is None
    assert "differ" in found["problem"]
