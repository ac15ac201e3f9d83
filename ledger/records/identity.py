"""Identity: the ledger itself, its keys, its policy, its snapshots and notes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ledger.records.base import (
    Blob,
    Body,
    Count,
    Hex32,
    KeyId,
    Name,
    Positive,
    Real,
    Seen,
    Signature,
    Text,
)

Role = Literal["ingest", "train", "judge", "review", "audit", "promote", "seal", "root"]
FORMAT_VERSION = 1


class LedgerCreated(Body):
    """Record 0: the ledger's format and the root key that all authority comes from."""

    kind: ClassVar[str] = "ledger.created"
    version: ClassVar[int] = 1

    format: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)]  # a Literal would take true
    root_key: KeyId
    root_public: Hex32


class KeyEnrolled(Body):
    """A key may sign from a seq on, in the roles named."""

    kind: ClassVar[str] = "key.enrolled"
    version: ClassVar[int] = 1

    key: KeyId
    public_key: Hex32
    roles: Annotated[list[Role], Field(min_length=1, max_length=8)]
    from_seq: Count
    owner: Name


class KeyRevoked(Body):
    """A key no longer counts; from an earlier seq on its records are suspect."""

    kind: ClassVar[str] = "key.revoked"
    version: ClassVar[int] = 1

    key: KeyId
    from_seq: Count
    reason: Text


class RootRotated(Body):
    """A new root key takes over: the old one makes the statement, the new one signs the hand-over."""

    kind: ClassVar[str] = "root.rotated"
    version: ClassVar[int] = 1

    old_key: KeyId
    new_key: KeyId
    new_public: Hex32
    acceptance: Signature


class PolicyDeclared(Body):
    """The floors of every promotion in this ledger; a study may only be stricter."""

    kind: ClassVar[str] = "policy.declared"
    version: ClassVar[int] = 1

    seeds: Positive
    alpha: Real
    power: Real
    cases: Positive
    undecided_share: Real
    reviewers: Positive
    reruns_updates_per_seed: Count
    reruns_case_share: Real
    minimum_gain: Real
    judge_accuracy: Real
    judge_family: Literal["other", "any"]


class LedgerRestored(Body):
    """The ledger goes on from a backup: what was lost is named."""

    kind: ClassVar[str] = "ledger.restored"
    version: ClassVar[int] = 1

    lost_from: Count
    high_water: Seen
    why: Text


class SnapshotRecorded(Body):
    """The reducer's state and the tree's compact range just before this record."""

    kind: ClassVar[str] = "snapshot.recorded"
    version: ClassVar[int] = 1

    state: Blob
    tree: Annotated[list[Hex32], Field(max_length=64)]


class NoteAdded(Body):
    """Words about records; changes nothing."""

    kind: ClassVar[str] = "note.added"
    version: ClassVar[int] = 1

    text: Text
    tags: Annotated[list[Name], Field(max_length=32)] = []
