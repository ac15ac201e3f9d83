"""What is signed: the pre-authentication encoding of DSSE v1 (secure-systems-lab/dsse, protocol.md)."""

from __future__ import annotations


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that a signature over a typed payload covers."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
