"""What a gate looks at: the limits that hold, the evidence of each seed, and the numbers behind the lines.

Limits are the policy's floors, made stricter by study and protocol where these are stricter, never looser.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ledger.canonical import parse_real
from ledger.errors import UsageError
from verifiers.judgement import comparison
from verifiers.judgement.resampling import bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from verifiers.judgement.comparison import Line, Pair
    from verifiers.judgement.exposure import Exposure
    from verifiers.judgement.statistics import Interval

_POLICY_FIELDS: Final = frozenset(
    {
        "seeds",
        "alpha",
        "cases",
        "undecided_share",
        "minimum_gain",
        "reruns_updates_per_seed",
        "reruns_case_share",
    }
)


@dataclass(frozen=True)
class Limits:
    """What a gate demands. Shares, rates and gains are fractions of 1."""

    seeds: int
    alpha: float
    cases: int
    undecided_share: float
    minimum_gain: float
    reruns_updates_per_seed: int
    reruns_case_share: float
    planned_seeds: tuple[int, ...] | None = None
    planned_cases: int | None = None
    comparisons: int = 1


def limits(
    policy: Mapping[str, Any],
    study: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
) -> Limits:
    """The strictest of `policy.declared`, `study.registered` and `protocol.registered`, field by field.

    Raises:
        EvidenceError: `NOT_A_REAL`, a limit is no real number.
        UsageError: `POLICY_MALFORMED`, the policy lacks a field.
    """
    missing = sorted(_POLICY_FIELDS - policy.keys())
    if missing:
        raise UsageError("POLICY_MALFORMED", f"the policy has no {missing[0]}", field=missing[0])
    registered = study or {}
    given = (policy, registered, protocol or {})
    return Limits(
        seeds=max(policy["seeds"], len(registered.get("seeds", ()))),
        alpha=min(_reals("alpha", given)),
        cases=max(policy["cases"], registered.get("cases", 0)),
        undecided_share=min(_reals("undecided_share", given)),
        minimum_gain=max(_reals("minimum_gain", given)),
        reruns_updates_per_seed=policy["reruns_updates_per_seed"],
        reruns_case_share=parse_real(policy["reruns_case_share"]),
        planned_seeds=tuple(registered["seeds"]) if study is not None else None,
        planned_cases=registered["cases"] if study is not None else None,
        comparisons=registered.get("comparisons", 1),
    )


@dataclass(frozen=True)
class SeedEvidence:
    """One training seed: what it trained, both arms' outcomes, and what was run again.

    `share_reproduced` is the least share of cases, a fraction of 1, that was run again and agreed in an arm or a pass behind
    the outcomes, `not_run` how many drawn targets were not run. `settings` and `metadata` name by digest what both arms must share: `protocol` and `generation`; model, judge,
    rubric and package. `checkpoint` is the digest of its files, `state` that of its weights. `traced` is whether the checkpoint was re-hashed and leads to its plan and split.
    """

    seed: int
    checkpoint: str
    state: str
    traced: bool
    baseline: Sequence[Line]
    candidate: Sequence[Line]
    settings: tuple[Mapping[str, str], Mapping[str, str]]
    metadata: Mapping[str, str]
    updates_reproduced: int = 0
    share_reproduced: float = 0.0
    disagreed: int = 0
    not_run: int = 0

    @cached_property
    def pairs(self) -> list[Pair]:
        """Both arms' outcomes by case; raises `PAIRING_BROKEN` where they can't be paired."""
        return comparison.pairs(self.baseline, self.candidate)


@dataclass(frozen=True)
class Evidence:
    """Everything a gate looks at: the seeds, whether the judge is qualified, and what was read of the test before.

    `exposure` is None where no reviewed test is behind the outcomes: its lines are then no part of the gate.
    """

    seeds: Sequence[SeedEvidence]
    judge_qualified: bool
    exposure: Exposure | None = None


@dataclass
class Facts:
    """The numbers behind the lines, computed once.

    Per seed: all pairs, those that an execution or a qualified judge scores, and the decided ones among
    them. All are empty where pairing fails, and `problem` says why.
    """

    evidence: Evidence
    demanded: Limits
    rng: np.random.Generator
    problem: str | None = None
    all_pairs: list[list[Pair]] = field(default_factory=list)
    scored: list[list[Pair]] = field(default_factory=list)
    counted: list[list[Pair]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.problem = _pairing_problem(self.evidence)
        if self.problem is None:
            qualified = self.evidence.judge_qualified
            self.all_pairs = [seed.pairs for seed in self.evidence.seeds]
            self.scored = [
                comparison.scored(found, judge_qualified=qualified) for found in self.all_pairs
            ]
            self.counted = [[pair for pair in found if pair.decided] for found in self.scored]

    @property
    def computable(self) -> bool:
        """Whether there is a decided pair in every seed."""
        return bool(self.counted) and all(self.counted)

    @cached_property
    def gains(self) -> list[Fraction]:
        """Gain of each seed as a fraction of its decided pairs."""
        tables = [comparison.table(found) for found in self.counted]
        return [Fraction(counts.delta, counts.pairs) for counts in tables]

    @cached_property
    def interval(self) -> Interval:
        """Bootstrap interval of the gain, seeds x family-stratified cases."""
        deltas, sizes, families = self.matrices()
        return bootstrap(deltas, sizes, families, self.rng)

    def matrices(self) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
        """Delta and rollouts by seed and case, and each case's family."""
        cases = {pair.case: pair.family for found in self.counted for pair in found}
        column = {case: index for index, case in enumerate(sorted(cases))}
        deltas = np.zeros((len(self.counted), len(cases)), dtype=np.int64)
        sizes = np.zeros_like(deltas)
        for row, found in enumerate(self.counted):
            for pair in found:
                index = column[pair.case]
                deltas[row, index] += pair.candidate["success"] - pair.baseline["success"]
                sizes[row, index] += 1
        return deltas, sizes, [cases[case] for case in column]


def _reals(name: str, given: Sequence[Mapping[str, Any]]) -> list[float]:
    """A limit wherever it is set."""
    return [parse_real(body[name]) for body in given if name in body]


def _pairing_problem(evidence: Evidence) -> str | None:
    """Why the seeds can't be paired, or None."""
    settings = {tuple(sorted(arm.items())) for seed in evidence.seeds for arm in seed.settings}
    if len(settings) > 1:
        return "protocol or settings differ between arms or seeds"
    try:
        cases = {frozenset(pair.case for pair in seed.pairs) for seed in evidence.seeds}
    except UsageError as error:
        # The gate reports every line, so a broken pairing is a line of it and not its end.
        return error.message
    return "seeds were given other cases" if len(cases) > 1 else None
