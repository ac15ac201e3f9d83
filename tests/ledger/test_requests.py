"""Requests and answers: what is asked on one machine and signed on another, as files."""

from __future__ import annotations

import json

import pytest
from world import World, key

from ledger import requests
from ledger.errors import EvidenceError
from ledger.requests import Request


def asked(world: World) -> Request:
    """A request for root's statement that the ledger is restored."""
    draft = world.draft("ledger.restored")
    return Request(draft.ledger, draft.kind, draft.refs, draft.body, world.seen(), f"{99:032x}")


def refusal(read, data: bytes) -> EvidenceError:
    """The error of a file that cannot be read."""
    with pytest.raises(EvidenceError) as caught:
        read(data)
    return caught.value


def test_an_answer_is_the_statement_that_the_record_needs():
    """A signed request, handed in, is admitted with the body that was asked for and no other."""
    world = World()
    request = asked(world)
    assert Request.decode(request.encode()) == request
    again, statement = requests.read_answer(requests.sign(request, key("root")))
    assert again == request
    draft = world.draft(request.kind)
    draft.body, draft.statement = request.body, statement
    assert world.admit(draft).statement == statement


def changed(data: bytes, **fields) -> bytes:
    """A file with fields changed, in canonical form."""
    value = {**json.loads(data), **fields}
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


GOOD = asked(World()).encode()
BAD = {
    "empty": (b"", "STATEMENT_FILE"),
    "no line feed": (GOOD[:-1], "STATEMENT_FILE"),
    "spaces": (json.dumps(json.loads(GOOD)).encode() + b"\n", "STATEMENT_FILE"),
    "list": (b"[]\n", "STATEMENT_FILE"),
    "deep": (b"[" * 3000 + b"\n", "STATEMENT_FILE"),
    "large": (b" " * 200_000 + b"\n", "STATEMENT_FILE"),
    "unknown field": (changed(GOOD, note="x"), "STATEMENT_FILE"),
    "nonce too short": (changed(GOOD, nonce="00"), "STATEMENT_FILE"),
    "size as text": (changed(GOOD, seal={"size": "1", "root": "0" * 64}), "STATEMENT_FILE"),
    "unknown kind": (changed(GOOD, kind="ledger.unmade"), "KIND_UNKNOWN"),
    "kind without a statement": (changed(GOOD, kind="note.added"), "STATEMENT_UNEXPECTED"),
    "another kind's body": (changed(GOOD, kind="key.revoked"), "BODY_INVALID"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_request_is_one_clear_error(name):
    """Whatever is wrong with a request or an answer, it is said by code and nothing is signed."""
    data, code = BAD[name]
    assert refusal(Request.decode, data).code == code
    if code != "STATEMENT_FILE":
        data = changed(data, key=key("root").id, signature="0" * 128)
    assert refusal(requests.read_answer, data).code == code


def test_a_request_is_no_answer():
    """A file that nobody has signed is not handed in."""
    assert refusal(requests.read_answer, GOOD).code == "STATEMENT_FILE"
