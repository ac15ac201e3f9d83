"""The numbers behind a gate's lines, for a reader: each seed's, each family's, and what weaker analyses would have said.

They are made by the very properties that the lines are decided on. Nothing here decides anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from verifiers.judgement import comparison
from verifiers.judgement.assemble import GATE_SEED
from verifiers.judgement.gate_evidence import Facts
from verifiers.judgement.imported import LEVEL, Outcomes, rivals
from verifiers.judgement.resampling import REPLICATES, generator
from verifiers.judgement.statistics import MAX_SEEDS, sign_flip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verifiers.judgement.comparison import Pair
    from verifiers.judgement.gate_evidence import Evidence, Limits, SeedEvidence

Item = dict[str, Any]
NO_FIGURES: Final = "some seed has no case that was decided in both arms"


def figures_of(evidence: Evidence, demanded: Limits) -> Item:
    """The numbers behind a gate's lines; rates, gains and p-values are fractions of 1.

    `overall` and `rivals` are None where no seed can be counted.
    """
    facts = Facts(evidence, demanded, generator(GATE_SEED))
    computable = facts.computable and len(facts.counted) <= MAX_SEEDS
    return {
        "limits": {
            "alpha": demanded.alpha,
            "comparisons": demanded.comparisons,
            "minimum_gain": demanded.minimum_gain,
        },
        "problem": facts.problem or (None if computable else NO_FIGURES),
        "seeds": [
            _seed(seed, found)
            for seed, found in zip(
                evidence.seeds, facts.scored, strict=False
            )  # none where unpaired
        ],
        "families": _families(facts.counted),
        "overall": _overall(facts) if computable else None,
        "rivals": rivals(_outcomes(facts), GATE_SEED) if computable else None,
    }


def _seed(seed: SeedEvidence, scored: Sequence[Pair]) -> Item:
    decided = [pair for pair in scored if pair.decided]
    counts = comparison.table(decided)
    return {
        "seed": seed.seed,
        "tree": seed.checkpoint,
        "pairs": counts.pairs,
        "both": counts.both,
        "candidate_only": counts.candidate_only,
        "baseline_only": counts.baseline_only,
        "neither": counts.neither,
        "undecided": len(scored) - len(decided),
        "gain": counts.gain,
        "updates_reproduced": seed.updates_reproduced,
        "share_reproduced": seed.share_reproduced,
        "disagreed": seed.disagreed,
        "not_run": seed.not_run,
    }


def _families(counted: Sequence[Sequence[Pair]]) -> list[Item]:
    by_family: dict[str, list[Pair]] = {}
    for found in counted:
        for pair in found:
            by_family.setdefault(pair.family, []).append(pair)
    return [
        {
            "family": family,
            "pairs": len(found),
            "baseline": sum(pair.baseline["success"] for pair in found),
            "candidate": sum(pair.candidate["success"] for pair in found),
        }
        for family, found in sorted(by_family.items())
    ]


def _overall(facts: Facts) -> Item:
    p = min(1.0, sign_flip(facts.gains) * facts.demanded.comparisons)
    return {
        "seeds": len(facts.gains),
        "mean_gain": float(sum(facts.gains) / len(facts.gains)),
        "p": p,
        "lower": facts.interval.lower,
        "upper": facts.interval.upper,
        "level": LEVEL,
        "replicates": REPLICATES,
    }


def _outcomes(facts: Facts) -> Outcomes:
    """The decided pairs as the table that weaker analyses read."""
    deltas, sizes, families = facts.matrices()
    cases = sorted({pair.case for found in facts.counted for pair in found})
    column = {case: index for index, case in enumerate(cases)}
    baseline = np.zeros_like(deltas)
    for row, found in enumerate(facts.counted):
        for pair in found:
            baseline[row, column[pair.case]] += int(pair.baseline["success"])
    seeds = tuple(seed.seed for seed in facts.evidence.seeds)
    return Outcomes(seeds, tuple(cases), tuple(families), baseline, baseline + deltas, sizes)
