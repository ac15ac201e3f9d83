"""Data: sources, parsed datasets, splits, leakage audits, reward audits."""

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
    Setting,
    Slug,
    Text,
)

DataRole = Literal["train", "validation", "test"]


class Review(Model):
    """What somebody said about a source before it came here; a claim, not a statement."""

    status: Literal["reviewed", "unreviewed", "rejected"]
    reviewer: Name | None = None


class SourceIngested(Body):
    """Bytes that came from outside, kept as they were."""

    kind: ClassVar[str] = "source.ingested"
    version: ClassVar[int] = 1

    name: Name
    content: Blob
    licence: Name
    licence_text: Blob | None = None
    origin: Text
    review: Review


class DatasetParsed(Body):
    """Rows read from sources: what was accepted, what was rejected and why."""

    kind: ClassVar[str] = "dataset.parsed"
    version: ClassVar[int] = 1

    name: Name
    format: Slug
    parser: Slug
    parser_settings: dict[Slug, Setting] = {}
    rows: Blob
    identity: Digest
    accepted: Count
    rejected: Count
    reasons: Counts
    rejects: Blob | None
    duplicates: Count
    secrets: Counts = {}
    flagged: Blob | None = None


class SplitDeclared(Body):
    """Which row plays which role, and how that was decided."""

    kind: ClassVar[str] = "split.declared"
    version: ClassVar[int] = 1

    assignment: Blob
    roles: dict[DataRole, Positive]
    method: Literal["fractions", "explicit", "published"]
    by: Annotated[list[Slug], Field(max_length=16)]
    fractions: Annotated[list[Count], Field(min_length=3, max_length=3)] | None = None
    seed: Count | None = None
    groups: Count
    roles_from: Blob | None = None
    roles_by: Slug | None = None


class LeakageLevels(Model):
    """Held-out rows touched, a level each."""

    exact: Count
    normalised: Count
    masked: Count
    near_duplicate: Count
    edited: Count = 0
    annotation: Count


class LeakageAudited(Body):
    """What of the held-out rows is also in the training rows."""

    kind: ClassVar[str] = "leakage.audited"
    version: ClassVar[int] = 1

    method: Slug
    settings: dict[Slug, Setting] = {}
    levels: LeakageLevels
    entities: Counts
    pairs: Count
    findings: Blob | None
    verdict: Literal["clean", "findings"]
    history: Counts | None = None


class LeakageAccepted(Body):
    """A reviewer accepts an audit's findings and says why."""

    kind: ClassVar[str] = "leakage.accepted"
    version: ClassVar[int] = 1

    why: Annotated[str, Field(min_length=1, max_length=4000)]


class RewardAudited(Body):
    """A reward tried on pairs whose order is known."""

    kind: ClassVar[str] = "reward.audited"
    version: ClassVar[int] = 0

    name: Slug
    reward_version: Count
    code: Blob
    suite: Blob
    pairs: Positive
    inversions: Count
    findings: Blob | None
