"""Evaluation: studies, protocols, arms, judge passes, evaluations, comparisons."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ledger.records.base import (
    Blob,
    Body,
    Count,
    Counts,
    Digest,
    Model,
    Name,
    Positive,
    Real,
    Setting,
    Slug,
    Text,
)

PassKind = Literal["criteria_reversal", "position_swap", "direction"]


class Simulation(Model):
    """How the power of a study was simulated: method, recorded seed, simulated studies, replicates of each."""

    method: Slug
    seed: Count
    trials: Positive
    replicates: Positive


class StudyRegistered(Body):
    """What a study will do and what would count, before any of its runs is launched.

    Rates, gains and the spread (standard deviation of the gain between seeds) are fractions of 1. A training seed uses
    `streams` sampler streams, numbered from the seed on. `settings` are those that its plans share. `attainable_gain`,
    `minimum_p` and `best_power` are of a candidate that never fails, `power` is that of the whole gate for `effect`.
    """

    kind: ClassVar[str] = "study.registered"
    version: ClassVar[int] = 1

    name: Name
    seeds: Annotated[list[Count], Field(min_length=1, max_length=16)]
    streams: Positive
    settings: dict[Slug, Setting | Real]
    settings_digest: Digest
    tests: Annotated[list[Slug], Field(min_length=1, max_length=8)]
    comparisons: Positive
    alpha: Real
    minimum_gain: Real
    effect: Real
    spread: Real
    baseline_rate: Real
    cases: Positive
    families: Positive
    rollouts: Positive
    undecided_share: Real
    guards: Annotated[list[Slug], Field(max_length=32)]
    attainable_gain: Real
    minimum_p: Real
    best_power: Real
    power: Real
    simulation: Simulation
    descriptive: bool


class ProtocolRegistered(Body):
    """Which cases are put to which models, and how their answers are scored."""

    kind: ClassVar[str] = "protocol.registered"
    version: ClassVar[int] = 1

    name: Name
    role: Literal["validation", "test"]
    cases: Blob
    identity: Digest
    case_kinds: dict[Literal["desk", "dialogue"], Count]
    families: Counts
    generation: dict[Slug, Setting | Real]
    template: Blob | None = None
    judging: Literal["json", "likelihood"] | None
    passes: Annotated[list[PassKind], Field(max_length=4)]
    rubric: Blob | None
    undecided_share: Real
    guards: Annotated[list[Slug], Field(max_length=32)]


class JudgeQualified(Body):
    """How well a judge did on labelled cases that it was not tuned on, asked in both orders.

    `lower` and `upper` are the Wilson 95 % interval of the accuracy, `floor` what `lower` must reach, fractions of 1; an
    undecided case is not right. `flips` are contradictions between the orders and how many cases could be compared.
    """

    kind: ClassVar[str] = "judge.qualified"
    version: ClassVar[int] = 0

    cases: Blob
    shipped: bool
    asked: Literal["json", "likelihood"]
    rubric: Blob
    judge_weights: Digest
    engine: dict[Slug, Setting | Real]
    raw_forward: Blob
    raw_reversed: Blob
    right: Count
    total: Positive
    undecided: Count
    flips: Annotated[list[Count], Field(min_length=2, max_length=2)]
    lower: Real
    upper: Real
    floor: Real
    reasons: Annotated[list[Slug], Field(max_length=8)]
    qualified: bool


class ArmTranscribed(Body):
    """What one model answered to every case of a protocol."""

    kind: ClassVar[str] = "arm.transcribed"
    version: ClassVar[int] = 1

    transcripts: Blob
    cases: Positive
    prompts: Digest
    tokens: Count
    truncated: Count
    weights: Digest
    engine: dict[Slug, Setting | Real]


class JudgePassed(Body):
    """One pass of a judge over an arm: what went in, what came out, raw."""

    kind: ClassVar[str] = "judge.passed"
    version: ClassVar[int] = 1

    pass_kind: PassKind
    order: Literal["forward", "reversed"]
    judge_weights: Digest
    raw_input: Blob
    raw_output: Blob
    verdicts: Blob
    undecided: Count
    qualified: bool


class EvaluationCompleted(Body):
    """An arm's outcomes, case by case."""

    kind: ClassVar[str] = "evaluation.completed"
    version: ClassVar[int] = 1

    outcomes: Blob
    cases: Positive
    success: Count
    failure: Count
    undecided: Count
    violations: Count
    truncated: Count
    families: dict[Slug, Annotated[list[Count], Field(min_length=2, max_length=2)]]
    flips: Annotated[list[Count], Field(min_length=2, max_length=2)] | None
    diagnostic: Annotated[list[Literal["desk", "fixed_dialogue"]], Field(max_length=2)]


class PairedCounts(Model):
    """Both right, only the candidate, only the baseline, neither."""

    both: Count
    candidate_only: Count
    baseline_only: Count
    neither: Count


class CandidateResult(Model):
    """One candidate beside the baseline."""

    evaluation: Digest
    paired: PairedCounts
    mcnemar_p: Real
    gain: Real
    guards: dict[Slug, Annotated[list[Name], Field(max_length=64)]]
    eligible: bool


class ComparisonMade(Body):
    """Evaluations of one protocol side by side. Carries no authority: verify recomputes it."""

    kind: ClassVar[str] = "comparison.made"
    version: ClassVar[int] = 1

    candidates: Annotated[list[CandidateResult], Field(min_length=1, max_length=64)]
    baselines: dict[Slug, Real]
    recommendation: Literal["candidate", "baseline", "none"]
    recommended: Digest | None
    descriptive: bool
    notes: Annotated[list[Text], Field(max_length=32)]
