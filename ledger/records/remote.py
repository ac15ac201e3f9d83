"""Managed backends: intent before a paid effect, and what came of it."""

from __future__ import annotations

from typing import ClassVar, Literal

from ledger.records.base import Body, Digest, Name, Real, Slug, Text


class OperationIntended(Body):
    """A call to a provider is about to be made."""

    kind: ClassVar[str] = "operation.intended"
    version: ClassVar[int] = 0

    provider: Slug
    request: Digest
    idempotency_key: Slug
    expected_policy: Name | None
    price: Real | None


class OperationSettled(Body):
    """What is known about the call afterwards: exactly one of three."""

    kind: ClassVar[str] = "operation.settled"
    version: ClassVar[int] = 0

    outcome: Literal["acknowledged", "failed", "unconfirmed"]
    peer: Literal["loopback", "live"]
    response: Digest | None
    provider_ids: dict[Slug, Slug]
    detail: Text
