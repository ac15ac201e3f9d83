"""Learning: groups, batches, updates, checkpoints."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ledger.records.base import (
    Blob,
    Body,
    Count,
    Counts,
    Digest,
    Files,
    Model,
    Name,
    Positive,
    Real,
    Setting,
    Slug,
    Text,
    empty,
)


class WeightState(Model):
    """What the trainable weights are, by a digest over tensors or by a provider's own policy id."""

    scheme: Literal["tensors", "provider_policy"]
    value: Annotated[str, Field(min_length=1, max_length=200)]


class RolloutGroup(Body):
    """One task, sampled as often as planned, by one policy state.

    `generation` counts the batches of groups that updates read, `draw` the draws that it took to get them; both from 0.
    `weights` is the state digest of the merged weights that a sampling server was given; null where the learner's own
    process sampled.
    """

    kind: ClassVar[str] = "rollout.group"
    version: ClassVar[int] = 0

    task: Digest
    script: Digest
    members: Positive
    samples: Blob
    state: WeightState
    rewards: Annotated[list[Real], Field(min_length=1, max_length=1024)]
    advantages: Annotated[list[Real], Field(min_length=1, max_length=1024)]
    dialect: Slug
    sampler: dict[Slug, Setting | Real]
    stops: Counts
    trace: Blob | None
    generation: Count = 0
    draw: Count = 0
    weights: Digest | None = None


class RolloutRejected(Body):
    """A group that does not count, and why."""

    kind: ClassVar[str] = "rollout.rejected"
    version: ClassVar[int] = 0

    code: Slug
    detail: Text
    seen: Blob | None


class DroppedRow(Model):
    """A row that a batch left out."""

    row: Digest
    reason: Slug


class BatchBuilt(Body):
    """What one optimizer step is about to read."""

    kind: ClassVar[str] = "batch.built"
    version: ClassVar[int] = 1

    step: Positive
    digest: Digest
    rows: Annotated[list[Digest], Field(max_length=512)]
    rows_blob: Blob | None = None
    datums: Positive
    trainable_tokens: Positive
    dropped: Annotated[list[DroppedRow], Field(max_length=64)] = empty(list)


class RankState(Model):
    """One process of a step, by its number from 0, and the digest of the trainable weights that it came to."""

    rank: Count
    after: Digest


class UpdateAcknowledged(Body):
    """One optimizer step happened: from which weights to which, on which batch."""

    kind: ClassVar[str] = "update.acknowledged"
    version: ClassVar[int] = 1

    step: Positive
    learning_rate: Real
    loss: Real
    gradient_norm: Real
    before: WeightState
    after: WeightState
    figures: dict[Slug, Real | Count] = empty(dict)
    ranks: Annotated[list[RankState], Field(max_length=64)] = empty(list)
    provider: dict[Slug, Slug] = empty(dict)


class Completeness(Model):
    """Which parts of a learner state a checkpoint holds."""

    weights: bool
    optimizer: bool
    scheduler: bool
    random: bool
    sampler: bool


class CheckpointPublished(Body):
    """A learner state after an update, file by file."""

    kind: ClassVar[str] = "checkpoint.published"
    version: ClassVar[int] = 1

    step: Positive
    files: Files
    tree: Digest
    state: WeightState
    completeness: Completeness
    spent_updates: Count
    spent_datums: Count
    hosted: Name | None = None

    @model_validator(mode="after")
    def _check_hosted(self) -> Self:
        """Only a state that a provider names may lie with a provider."""
        if self.hosted is not None and self.state.scheme != "provider_policy":
            raise ValueError("hosted is said of a provider's state only")
        return self


class CheckpointRestored(Body):
    """A checkpoint was loaded again, and what its digests were then."""

    kind: ClassVar[str] = "checkpoint.restored"
    version: ClassVar[int] = 0

    mode: Literal["exact", "weights"]
    state: WeightState
    digests: dict[Slug, Digest]
    fork: bool
