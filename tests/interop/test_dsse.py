"""Records as DSSE envelopes, verified by a library of somebody else's."""

from __future__ import annotations

import base64

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from world import grown, key

from ledger import record as records
from ledger import statements
from ledger.dsse import pae

WORLD = grown()
PEOPLE = {key(name).id: key(name) for name in ("root", "writer", "auditor", "reviewer", "promoter")}


def public(key_id: str) -> SSlibKey:
    """The public key in the other library's form."""
    value = {"public": PEOPLE[key_id].public.hex()}
    return SSlibKey(key_id, "ed25519", "ed25519", value)


def envelope(record) -> Envelope:
    """The record's envelope as the other library reads it."""
    return Envelope.from_dict(records.envelope_dsse(record))


def test_every_record_is_a_dsse_envelope():
    """The stored signature verifies under DSSE without signing anything again, for every kind."""
    for record in WORLD.records:
        accepted = envelope(record).verify([public(record.actor)], 1)
        assert list(accepted) == [record.actor]


@pytest.mark.parametrize("field", ["payload", "payloadType", "sig"])
def test_changed_envelope_is_refused(field):
    """A flipped bit in payload, type or signature is refused by the other library too."""
    plain = records.envelope_dsse(WORLD.records[-1])
    if field == "payloadType":
        plain["payloadType"] += "x"
    else:
        holder = plain if field == "payload" else plain["signatures"][0]
        data = bytearray(base64.b64decode(holder[field]))
        data[0] ^= 1
        holder[field] = base64.b64encode(bytes(data)).decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(plain).verify([public(WORLD.records[-1].actor)], 1)


def test_another_key_is_refused():
    """The envelope of the writer does not verify under the auditor's key."""
    with pytest.raises(VerificationError):
        envelope(WORLD.records[2]).verify([public(key("auditor").id)], 1)


def test_encoding_is_the_other_library_s():
    """Both encode what is signed in the same way."""
    for record in WORLD.records:
        assert pae(records.PAYLOAD_TYPE, record.entry) == envelope(record).pae()


def test_encoding_of_the_protocol_s_own_example():
    """The example of the DSSE protocol page, byte by byte."""
    encoded = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == encoded


def test_every_statement_is_a_dsse_envelope():
    """A statement's payload, rebuilt from its record, verifies under DSSE with the stater's key."""
    stated = [record for record in WORLD.records if record.statement]
    for record in stated:
        statement = record.statement
        payload = statements.payload(
            record.ledger, record.kind, record.refs, record.body, statement.seal, statement.nonce
        )
        plain = {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": statements.PAYLOAD_TYPE,
            "signatures": [
                {
                    "keyid": statement.key,
                    "sig": base64.b64encode(bytes.fromhex(statement.signature)).decode(),
                }
            ],
        }
        other = Envelope.from_dict(plain)
        assert list(other.verify([public(statement.key)], 1)) == [statement.key]
    assert len(stated) > 10
