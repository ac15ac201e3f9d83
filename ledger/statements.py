"""Statements: somebody's authority for a record, signed in advance on their own machine.

The record keeps key, seal seen, nonce and signature; the payload is rebuilt from the record itself, so
refs and body of statement and record cannot differ (spec: ledger.md, section 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.dsse import pae
from ledger.record import Refs
from ledger.records.base import Seen, Statement

if TYPE_CHECKING:
    from ledger.ed25519 import PrivateKey

PAYLOAD_TYPE = "application/vnd.evidence-ledger.statement+json"


def payload(
    ledger: str, kind: str, refs: Refs, body: dict[str, Any], seal: Seen, nonce: str
) -> bytes:
    """The bytes a statement is about, canonical."""
    return canonical.encode(
        {
            "ledger": ledger,
            "kind": kind,
            "refs": refs,
            "body": body,
            "seal": {"size": seal.size, "root": seal.root},
            "nonce": nonce,
        }
    )


def make(
    key: PrivateKey,
    *,
    ledger: str,
    kind: str,
    refs: Refs,
    body: dict[str, Any],
    seal: Seen,
    nonce: str,
) -> Statement:
    """Sign a statement; `nonce` is 32 hex digits that this key never used before."""
    message = pae(PAYLOAD_TYPE, payload(ledger, kind, refs, body, seal, nonce))
    return Statement(key=key.id, seal=seal, nonce=nonce, signature=key.sign(message).hex())


def signed_message(
    ledger: str, kind: str, refs: Refs, body: dict[str, Any], statement: Statement
) -> bytes:
    """What the statement's signature must cover, rebuilt from the record that carries it."""
    return pae(PAYLOAD_TYPE, payload(ledger, kind, refs, body, statement.seal, statement.nonce))
