"""C2SP tlog-proof files."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import merkle, proofs, seals
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, UsageError
from ledger.proofs import TlogProof
from ledger.seals import Seal

ORIGIN = "example.com/support-bot"
KEY = PrivateKey.from_seed(b"s" * 32)
LEAVES = [merkle.leaf_hash(b"entry %d" % number) for number in range(11)]
HEAD = Seal(ORIGIN, 11, merkle.root(LEAVES))
SEAL = seals.sign_seal(HEAD, KEY)
FILE = proofs.build(SEAL, 5, LEAVES[5], LEAVES)


def refusal(code, check, *arguments):
    """The message of the error that a check raises, which must have this code."""
    with pytest.raises(EvidenceError) as caught:
        check(*arguments)
    assert caught.value.code == code
    return caught.value.message


def verify(data, leaf=LEAVES[5], origin=ORIGIN, keys=(KEY.public,)):
    """Verify a file as the right reader would, but for what is named."""
    return proofs.verify(data, leaf, origin, keys)


def test_bytes_are_those_of_the_format():
    """Header, index, hashes sibling first, an empty line and the seal verbatim."""
    hashes = [
        LEAVES[4],
        merkle.node_hash(LEAVES[6], LEAVES[7]),
        merkle.root(LEAVES[:4]),
        merkle.root(LEAVES[8:]),
    ]
    lines = [b"c2sp.org/tlog-proof@v1", b"index 5", *(base64.b64encode(item) for item in hashes)]
    assert b"\n".join(lines) + b"\n\n" + SEAL == FILE


@pytest.mark.parametrize("size", [1, 2, 3, 8, 11])
def test_every_record_s_proof_verifies(size):
    """For each record under a seal the built file leads to that seal, and says the record's seq."""
    head = Seal(ORIGIN, size, merkle.root(LEAVES[:size]))
    seal = seals.sign_seal(head, KEY)
    for index in range(size):
        data = proofs.build(seal, index, LEAVES[index], iter(LEAVES))
        assert verify(data, LEAVES[index]) == (index, head)


def test_extra_data_is_carried_and_vouches_for_nothing():
    """Extra bytes read back; with them or without, the same record verifies."""
    data = proofs.build(SEAL, 5, LEAVES[5], LEAVES, b"context")
    assert TlogProof.decode(data).extra == b"context"
    assert data.splitlines()[1] == b"extra Y29udGV4dA=="
    assert verify(data) == verify(FILE) == (5, HEAD)


def test_proof_of_another_record_is_refused():
    """The file does not vouch for a record it was not made for."""
    assert "another root" in refusal("PROOF_INVALID", verify, FILE, LEAVES[4])


def test_seal_in_the_file_must_be_the_ledger_s():
    """Another origin, a key that may not seal, and a changed size are refused as seals."""
    refusal("SEAL_INVALID", verify, FILE, LEAVES[5], "example.com/other")
    refusal("SEAL_INVALID", verify, FILE, LEAVES[5], ORIGIN, [PrivateKey.generate().public])
    refusal("SEAL_INVALID", verify, FILE.replace(b"\n11\n", b"\n12\n"))


@settings(deadline=None)
@given(place=st.integers(0, len(FILE) - 1), change=st.integers(1, 255))
def test_any_changed_byte_is_refused(place, change):
    """No single byte of a file can change without the proof or the seal failing."""
    data = bytearray(FILE)
    data[place] ^= change
    with pytest.raises(EvidenceError) as caught:
        verify(bytes(data))
    assert caught.value.code in {"PROOF_INVALID", "SEAL_INVALID"}


@settings(deadline=None)
@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda tail: FILE[:150] + tail))
def test_any_bytes_decode_to_what_encodes_to_them_or_are_refused(raw):
    """Decoding is exact, and only one error gets out."""
    assert round_trip(raw) in {"PROOF_INVALID", raw}


def round_trip(raw):
    """The bytes of the file that some bytes decode to, or the code that refuses them."""
    try:
        return TlogProof.decode(raw).encode()
    except EvidenceError as error:
        return error.code


HASH = base64.b64encode(bytes(32))
H = b"c2sp.org/tlog-proof@v1\n"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"", "no ASCII head", id="empty"),
        pytest.param(H + b"index 0\n", "no ASCII head", id="no seal"),
        pytest.param(b"\n\n" + SEAL, "first line", id="no header"),
        pytest.param(H.replace(b"v1", b"v2") + b"index 0\n\n", "first line", id="version 2"),
        pytest.param(H.replace(b"\n", b"\r\n") + b"index 0\n\n", "first line", id="CRLF"),
        pytest.param(H[:-1] + b"\n\n" + SEAL, "no index line", id="no index"),
        pytest.param(H + b"extra AAAA\n\n", "no index line", id="extra but no index"),
        pytest.param(H + b"extra \nindex 0\n\n", "extra data", id="empty extra"),
        pytest.param(H + b"extra A\nindex 0\n\n", "extra data", id="extra not base64"),
        pytest.param(H + b"index 0\nextra AAAA\n\n", "32-byte hash", id="extra after index"),
        pytest.param(H + b"extra AAAA\nextra AAAA\nindex 0\n\n", "index line", id="two extras"),
        pytest.param(
            H + b"extra " + base64.b64encode(bytes(65_536)) + b"\nindex 0\n\n",
            "extra data",
            id="extra over the limit",
        ),
        pytest.param(H + b"index 00\n\n", "not an index line", id="leading zero"),
        pytest.param(H + b"index -1\n\n", "not an index line", id="negative"),
        pytest.param(H + b"index  1\n\n", "not an index line", id="two spaces"),
        pytest.param(H + b"index 1 \n\n", "not an index line", id="space after"),
        pytest.param(H + b"index " + b"9" * 5000 + b"\n\n", "not an index line", id="5000 digits"),
        pytest.param(H + "index \u0663\n\n".encode(), "no ASCII head", id="Arabic digit"),
        pytest.param(H + b"index 0\nAAAA\n\n", "32-byte hash", id="3-byte hash"),
        pytest.param(H + b"index 0\n" + HASH[:-1] + b"\n\n", "32-byte hash", id="no padding"),
        pytest.param(H + b"index 0\n" + HASH[:-2] + b"B=\n\n", "32-byte hash", id="loose bits"),
        pytest.param(
            H + b"index 0\n" + (HASH + b"\n") * 64 + b"\n", "more than 63", id="64 hashes"
        ),
        pytest.param(H + b"A" * proofs.MAX_PROOF_BYTES, "bytes", id="over the size limit"),
    ],
)
def test_malformed_file_is_refused(raw, message):
    """Each way to miss the form has its message."""
    assert message in refusal("PROOF_INVALID", TlogProof.decode, raw)


def test_wrong_proof_is_never_built():
    """Leaves that are not those under the seal, or another leaf, give no file."""
    refusal("PROOF_INVALID", proofs.build, SEAL, 5, LEAVES[4], LEAVES)
    refusal("PROOF_INVALID", proofs.build, SEAL, 5, LEAVES[5], LEAVES[::-1])
    refusal("PROOF_INVALID", proofs.build, SEAL, 5, LEAVES[5], LEAVES, b"")
    refusal("SEAL_INVALID", proofs.build, b"text\n", 5, LEAVES[5], LEAVES)


def test_record_after_the_seal_has_no_proof_under_it():
    """A seal proves only records below its size."""
    with pytest.raises(UsageError) as caught:
        proofs.build(SEAL, 11, LEAVES[5], LEAVES)
    assert caught.value.code == "PROOF_OUT_OF_RANGE"
