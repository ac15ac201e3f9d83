"""Promotion: nomination, reviews, re-runs, gates, grants, refusals, withdrawals."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ledger.records.base import (
    Blob,
    Body,
    Count,
    Digest,
    Hex32,
    KeyId,
    Model,
    Name,
    Positive,
    Real,
    RecordId,
    Slug,
    Text,
)


class CandidateNominated(Body):
    """One checkpoint a seed, each chosen on validation, and which of them is to be promoted."""

    kind: ClassVar[str] = "candidate.nominated"
    version: ClassVar[int] = 0

    chosen: RecordId
    why: Text


class TestReviewed(Body):
    """A reviewer looked at a test set before it was used.

    `findings` lists every row of the past that touches a case, `fresh` says that there is none; `look` is 1 for the first.
    """

    __test__: ClassVar[bool] = False
    kind: ClassVar[str] = "test.reviewed"
    version: ClassVar[int] = 0

    fresh: bool
    findings: Blob | None
    look: Positive
    paraphrase: Text
    contamination: Text


class DrawMade(Body):
    """What of a nomination's evidence is run again, to be read from the tree root over this record and all before it.

    `case_share` is a fraction of 1 of each arm's and each pass's cases, rounded up.
    """

    kind: ClassVar[str] = "draw.made"
    version: ClassVar[int] = 0

    nonce: Hex32
    updates_per_seed: Count
    case_share: Real


class CheckReproduced(Body):
    """Something was run again from bytes by a key that neither trains nor judges.

    `drawn_from` is the size of the tree whose root drew it, `index` its place in the draw, `case` which case of the arm or
    pass; `changed` names what of code, libraries and hardware is another than recorded.
    """

    kind: ClassVar[str] = "check.reproduced"
    version: ClassVar[int] = 0

    drawn_from: Count
    index: Count
    case: Name | None
    agreed: bool
    detail: Text
    changed: Annotated[list[Slug], Field(max_length=64)]
    processor: Name


class Gate(Model):
    """One line of a gate: its number, its threshold, its verdict."""

    name: Slug
    value: Name
    threshold: Name
    passed: bool
    code: Slug | None


class GateDecided(Body):
    """Every gate line. Carries no authority: verify recomputes it."""

    kind: ClassVar[str] = "gate.decided"
    version: ClassVar[int] = 0

    gates: Annotated[list[Gate], Field(min_length=1, max_length=64)]
    passed: bool


class PromotionApproved(Body):
    """A reviewer's word on a gate and the checkpoint it is about."""

    kind: ClassVar[str] = "promotion.approved"
    version: ClassVar[int] = 0

    reviewer: KeyId
    why: Text


class PromotionGranted(Body):
    """A checkpoint's bytes are promoted. No approval of deployment."""

    kind: ClassVar[str] = "promotion.granted"
    version: ClassVar[int] = 0

    tree: Digest
    scope: Text


class Missing(Model):
    """One reason for a refusal: its code, what is missing or failed, and the command that helps."""

    code: Slug
    message: Text
    hint: Text


class PromotionRefused(Body):
    """Why a checkpoint is not promoted, reason by reason."""

    kind: ClassVar[str] = "promotion.refused"
    version: ClassVar[int] = 1

    reasons: Annotated[list[Missing], Field(min_length=1, max_length=64)]
    gates: Annotated[list[Gate], Field(max_length=64)] = []


class PromotionWithdrawn(Body):
    """A promotion no longer stands."""

    kind: ClassVar[str] = "promotion.withdrawn"
    version: ClassVar[int] = 0

    why: Annotated[str, Field(min_length=1, max_length=4000)]


class BlobWithheld(Body):
    """A blob is absent on purpose."""

    kind: ClassVar[str] = "blob.withheld"
    version: ClassVar[int] = 1

    digest: Digest
    why: Annotated[str, Field(min_length=1, max_length=4000)]


__all__ = [
    "BlobWithheld",
    "CandidateNominated",
    "CheckReproduced",
    "DrawMade",
    "Gate",
    "GateDecided",
    "Missing",
    "PromotionApproved",
    "PromotionGranted",
    "PromotionRefused",
    "PromotionWithdrawn",
    "TestReviewed",
]
