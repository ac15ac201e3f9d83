"""Seals and witness cosignatures."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import merkle, notes, seals
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError
from ledger.notes import COSIGNATURE, ED25519, VerifierKey
from ledger.seals import Cosignature, Seal

TESSERA = Path(__file__).resolve().parents[3] / "shared/vectors/public/tessera/log"
# the seed that tessera publishes for its test log
TESSERA_SEED = bytes.fromhex("eca663f499017d2365c27c7a7679158d43cfec1330bdb259290afbd0d21777a0")

ORIGIN = "example.com/support-bot"
KEY = PrivateKey.from_seed(b"s" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
WITNESSES = [PrivateKey.from_seed(bytes((number,)) * 32) for number in range(3)]
NAMES = [f"witness{number}.example" for number in range(3)]
KNOWN = [
    VerifierKey(name, COSIGNATURE, key.public) for name, key in zip(NAMES, WITNESSES, strict=True)
]
SEAL = Seal(ORIGIN, 3, b"\x07" * 32)
SIGNED = seals.sign_seal(SEAL, KEY)


def refusal(check, *arguments):
    """The one error that a check may raise."""
    with pytest.raises(EvidenceError) as caught:
        check(*arguments)
    assert caught.value.code == "SEAL_INVALID"
    return caught.value


def signed(text, key=KEY, name=ORIGIN):
    """A note over any text, well signed."""
    return notes.serialise(notes.Note(text, (notes.sign(text, name, key),)))


def test_seal_is_three_lines_and_a_signature_by_the_origin_s_name():
    """The bytes are origin, size and base64 root, then one signature line named as the origin."""
    root = base64.b64encode(b"\x07" * 32).decode()
    assert SIGNED.decode().startswith(f"{ORIGIN}\n3\n{root}\n\n\u2014 {ORIGIN} ")
    assert SIGNED.count(b"\n") == 5


@given(size=st.integers(1, 2**63 - 1), root=st.binary(min_size=32, max_size=32))
def test_seal_reads_back(size, root):
    """Text and tree head are two forms of the same thing."""
    seal = Seal(ORIGIN, size, root)
    assert Seal.parse(seal.text()) == seal


def test_signed_seal_opens_under_one_of_the_seal_keys():
    """A seal opens where one of the keys that may seal has signed it."""
    assert seals.open_seal(SIGNED, ORIGIN, [OTHER.public, KEY.public]) == SEAL
    assert seals.read_unverified(SIGNED) == SEAL


def test_seal_of_an_empty_ledger_opens():
    """Size 0 goes with the root of the empty tree, and only with it."""
    empty = Seal(ORIGIN, 0, merkle.EMPTY_ROOT)
    assert seals.open_seal(seals.sign_seal(empty, KEY), ORIGIN, [KEY.public]) == empty
    refusal(Seal, ORIGIN, 0, b"\x07" * 32)


@pytest.mark.parametrize("keys", [[], [OTHER.public]], ids=["no key", "another key"])
def test_seal_by_a_key_that_may_not_seal_is_refused(keys):
    """A good signature by some other key is as none."""
    assert "no signature of a known key" in refusal(seals.open_seal, SIGNED, ORIGIN, keys).message


def test_seal_of_another_ledger_is_refused():
    """The same key's seal of another origin does not pass, and the error names both."""
    error = refusal(seals.open_seal, SIGNED, "example.com/other", [KEY.public])
    assert (error.expected, error.actual) == ("example.com/other", ORIGIN)


def test_seal_signed_under_another_name_is_refused():
    """The key's name must be the origin: the same key under another name is unknown."""
    refusal(seals.open_seal, signed(SEAL.text(), name="example.com/else"), ORIGIN, [KEY.public])


def test_changed_seal_is_refused():
    """Another size or root under the old signature fails it."""
    for old, new in ((b"\n3\n", b"\n4\n"), (b"\nBwcH", b"\nBwcI")):
        error = refusal(seals.open_seal, SIGNED.replace(old, new), ORIGIN, [KEY.public])
        assert f"signature of {ORIGIN} is wrong" in error.message


ROOT = base64.b64encode(b"\x07" * 32).decode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{ORIGIN}\n3\n", id="no root"),
        pytest.param(f"{ORIGIN}\n3\n{ROOT}\nextension\n", id="extension line"),
        pytest.param(f"{ORIGIN}\n3\n{ROOT}\n\n", id="empty fourth line"),
        pytest.param(f"\n3\n{ROOT}\n", id="empty origin"),
        pytest.param(f"a b\n3\n{ROOT}\n", id="space in the origin"),
        pytest.param(f"a+b\n3\n{ROOT}\n", id="plus in the origin"),
        pytest.param(f"{ORIGIN}\n\n{ROOT}\n", id="empty size"),
        pytest.param(f"{ORIGIN}\n03\n{ROOT}\n", id="leading zero"),
        pytest.param(f"{ORIGIN}\n+3\n{ROOT}\n", id="sign"),
        pytest.param(f"{ORIGIN}\n-3\n{ROOT}\n", id="negative"),
        pytest.param(f"{ORIGIN}\n 3\n{ROOT}\n", id="space before the size"),
        pytest.param(f"{ORIGIN}\n0x3\n{ROOT}\n", id="hexadecimal"),
        pytest.param(f"{ORIGIN}\n3_0\n{ROOT}\n", id="underscore"),
        pytest.param(f"{ORIGIN}\n\u0663\n{ROOT}\n", id="Arabic digit"),
        pytest.param(f"{ORIGIN}\n{2**63}\n{ROOT}\n", id="2^63"),
        pytest.param(f"{ORIGIN}\n{'9' * 5000}\n{ROOT}\n", id="5000 digits"),
        pytest.param(f"{ORIGIN}\n0\n{ROOT}\n", id="empty ledger, a root"),
        pytest.param(f"{ORIGIN}\n3\n{ROOT[:-1]}\n", id="root without padding"),
        pytest.param(f"{ORIGIN}\n3\n{ROOT[:-2]}d=\n", id="root with loose bits"),
        pytest.param(f"{ORIGIN}\n3\n{base64.b64encode(bytes(31)).decode()}\n", id="31-byte root"),
        pytest.param(f"{ORIGIN}\n3\n{base64.b64encode(bytes(33)).decode()}\n", id="33-byte root"),
    ],
)
def test_malformed_seal_is_refused_though_well_signed(text):
    """A good signature does not make a loose text a seal."""
    refusal(Seal.parse, text)
    refusal(seals.open_seal, signed(text), ORIGIN, [KEY.public])


@pytest.mark.parametrize("raw", [b"", b"\xff", b"text\n", SIGNED[:-1]])
def test_bytes_that_are_no_note_are_refused(raw):
    """What is not even a note is no seal, in reading and in cosigning."""
    refusal(seals.open_seal, raw, ORIGIN, [KEY.public])
    refusal(seals.cosign_seal, raw, NAMES[0], WITNESSES[0], 1)
    refusal(seals.cosignatures, raw, KNOWN)


def test_weak_seal_key_is_refused():
    """A low-order key in the caller's list is an error, not one that opens everything."""
    with pytest.raises(EvidenceError) as caught:
        seals.open_seal(SIGNED, ORIGIN, [b"\1" + bytes(31)])
    assert caught.value.code == "WEAK_KEY"


@pytest.mark.parametrize("size", [-1, 2**63])
def test_seal_over_an_impossible_size_is_refused(size):
    """A size is 0 to 2^63-1."""
    refusal(Seal, ORIGIN, size, b"\x07" * 32)


def cosigned(*times):
    """The signed seal with a line by each witness in turn, at these times."""
    note = SIGNED
    for name, key, time_s in zip(NAMES, WITNESSES, times, strict=False):
        note = seals.cosign_seal(note, name, key, time_s)
    return note


def test_cosignatures_name_each_witness_and_its_time():
    """A cosigned seal still opens and says which known witnesses signed it and when."""
    note = cosigned(100, 200)
    assert seals.open_seal(note, ORIGIN, [KEY.public]) == SEAL
    assert seals.cosignatures(note, KNOWN) == [
        Cosignature(NAMES[0], WITNESSES[0].public, 100),
        Cosignature(NAMES[1], WITNESSES[1].public, 200),
    ]
    assert note.startswith(SIGNED)


def test_unknown_witnesses_count_for_nothing():
    """Lines of witnesses that the caller does not know are ignored, and none is an empty list."""
    note = cosigned(100, 200)
    assert [item.name for item in seals.cosignatures(note, KNOWN[1:])] == [NAMES[1]]
    assert seals.cosignatures(note, KNOWN[2:]) == []
    assert seals.cosignatures(SIGNED, KNOWN) == []


def test_one_public_key_counts_once():
    """A witness that signs twice, or under a second name, is one witness, at its newest time."""
    alias = "alias.example"
    note = seals.cosign_seal(SIGNED, NAMES[0], WITNESSES[0], 300)
    note = seals.cosign_seal(note, NAMES[0], WITNESSES[0], 100)
    note = seals.cosign_seal(note, alias, WITNESSES[0], 200)
    known = [*KNOWN, VerifierKey(alias, COSIGNATURE, WITNESSES[0].public)]
    assert seals.cosignatures(note, known) == [Cosignature(NAMES[0], WITNESSES[0].public, 300)]


def test_the_log_s_own_signature_is_no_cosignature():
    """A key of type 0x01 among the witnesses counts for nothing."""
    assert seals.cosignatures(SIGNED, [VerifierKey(ORIGIN, ED25519, KEY.public)]) == []


def test_wrong_cosignature_of_a_known_witness_is_refused():
    """A cosignature lifted from another seal refuses the seal for whoever knows the witness."""
    foreign = cosigned(100).splitlines(keepends=True)[-1]
    note = seals.sign_seal(Seal(ORIGIN, 4, b"\x08" * 32), KEY) + foreign
    assert "is wrong" in refusal(seals.cosignatures, note, KNOWN).message
    assert seals.cosignatures(note, KNOWN[1:]) == []


@pytest.mark.parametrize(("name", "time_s"), [("a b", 1), ("witness", 0), ("witness", 2**63)])
def test_impossible_cosignature_is_not_made(name, time_s):
    """A witness needs a key name and a time of 1 to 2^63-1."""
    refusal(seals.cosign_seal, SIGNED, name, WITNESSES[0], time_s)


@pytest.mark.skipif(not TESSERA.is_dir(), reason="../shared/vectors/public/tessera is not there")
@pytest.mark.parametrize("size", range(16))
def test_public_log_s_checkpoints_are_reproduced_byte_for_byte(size):
    """From the published seed and the entries come tessera's own checkpoint bytes, at every size."""
    words = "one two three four five six seven eit nain ten ileven twelf threeten fourten fivten"
    leaves = [merkle.leaf_hash(word.encode()) for word in words.split()[:size]]
    key = PrivateKey.from_seed(TESSERA_SEED)
    seal = Seal("example.com/log/testdata", size, merkle.root(leaves))
    published = (TESSERA / f"checkpoint.{size}").read_bytes()
    assert seals.sign_seal(seal, key) == published
    assert seals.open_seal(published, seal.origin, [key.public]) == seal
