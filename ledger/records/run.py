"""Runs: plan, launch, resume, stop, end, reconciliation."""

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
    Seen,
    Setting,
    Slug,
    Text,
    empty,
)
from ledger.records.learning import WeightState

Start = Literal["fresh", "weights", "exact"]
FailureCode = Literal[
    "short_run",
    "no_signal",
    "bad_gradient",
    "bad_input",
    "out_of_memory",
    "refused",
    "child_died",
    "protocol",
    "internal",
]


class Hardware(Model):
    """Where a plan may promise bit-exactness: the processor kind, the processes, the threads of each."""

    processor: Name
    accelerator: Name | None
    threads: Positive
    processes: Annotated[int, Field(ge=1, le=64)] = 1


class Reading(Model):
    """How a plan's rows become tokens: by which tokenizer and chat template, what is cut or dropped, and what comes out."""

    tokenizer: Digest
    template: Blob
    encoding: Digest
    reasons: Counts
    listed: Blob | None


class TrainedTensors(Model):
    """Which tensors a plan trains, by their number, the numbers in them, and a digest of names, types and shapes."""

    count: Positive
    parameters: Positive
    digest: Digest


class PlanPrepared(Body):
    """Everything a run will do, before it does it."""

    kind: ClassVar[str] = "plan.prepared"
    version: ClassVar[int] = 1

    method: Literal["sft", "dpo", "kto", "reward", "rl"]
    settings: dict[Slug, Setting | Real]
    settings_digest: Digest
    libraries: dict[Slug, Slug]
    code: dict[Slug, Digest]
    hardware: Hardware
    seeds: dict[Slug, Count]
    budget_updates: Positive
    budget_datums: Count
    start: Start
    fork: bool = False
    rows: Counts
    reading: Reading | None = None
    warnings: Annotated[list[Text], Field(max_length=64)]
    library_settings: dict[Slug, Setting | Real] = empty(dict)
    trained: TrainedTensors | None = None


class RunLaunched(Body):
    """A plan is claimed by one process; one claim a plan, ever."""

    kind: ClassVar[str] = "run.launched"
    version: ClassVar[int] = 1

    host: Name
    process: Count
    start_token: Slug
    seen: Seen


class RunResumed(Body):
    """The same run goes on after an attempt that ended or was reconciled."""

    kind: ClassVar[str] = "run.resumed"
    version: ClassVar[int] = 0

    host: Name
    process: Count
    start_token: Slug
    from_update: Count
    exact: bool


class RunStopRequested(Body):
    """Somebody asks a run to stop at its next safe boundary."""

    kind: ClassVar[str] = "run.stop_requested"
    version: ClassVar[int] = 1

    why: Text


class Counters(Model):
    """Groups sampled, datums built, updates acknowledged, outcomes evaluated: four, never mixed."""

    groups: Count
    datums: Count
    updates: Count
    outcomes: Count


class RowAccount(Model):
    """Where a run's rows went."""

    input: Count
    effective: Count
    truncated: Count
    dropped: Count


class TrainedWeights(Model):
    """What a completed run leaves: the state, its tensors one a line, how many numbers they hold, their norm."""

    state: WeightState
    tensors: Blob
    parameters: Positive
    norm: Real


class RunEnded(Body):
    """An attempt is over: how, with what counted, and what that does not establish."""

    kind: ClassVar[str] = "run.ended"
    version: ClassVar[int] = 1

    outcome: Literal["completed", "failed", "stopped"]
    failure: FailureCode | None = None
    detail: Text
    counters: Counters
    rows: RowAccount
    not_established: Annotated[list[Text], Field(max_length=32)]
    metrics: Blob | None
    weights: TrainedWeights | None = None


class RunReconciled(Body):
    """What was found out about an execution that nobody could confirm, and how."""

    kind: ClassVar[str] = "run.reconciled"
    version: ClassVar[int] = 0

    found: Literal["dead", "alive", "unreachable"]
    by: Literal["observation", "operator"]
    evidence: Text
