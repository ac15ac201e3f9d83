"""C2SP signed notes."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import notes
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError
from ledger.notes import COSIGNATURE, ED25519, Note, Signature, VerifierKey

TESSERA = Path(__file__).resolve().parents[3] / "shared/vectors/public/tessera/log/checkpoint"
TESSERA_VKEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"

NAME = "example.com/book"
TEXT = "first line\n\nthird line after an empty one, ünïcode\n"
KEY = PrivateKey.from_seed(b"a" * 32)
OTHER = PrivateKey.from_seed(b"b" * 32)
KNOWN = VerifierKey(NAME, ED25519, KEY.public)
WITNESS = VerifierKey("witness.example/w", COSIGNATURE, OTHER.public)
SIGNED = notes.sign(TEXT, NAME, KEY)
COSIGNED = notes.cosign(TEXT, WITNESS.name, OTHER, 1_700_000_000)
NOTE = Note(TEXT, (SIGNED, COSIGNED))


def line_of(name, blob):
    """A signature line, written out by hand."""
    return f"\u2014 {name} {base64.b64encode(blob).decode()}\n".encode()


def refusal(check, *arguments):
    """The message of the one error that a check may raise."""
    with pytest.raises(EvidenceError) as caught:
        check(*arguments)
    assert caught.value.code == "NOTE_INVALID"
    return caught.value.message


def test_bytes_are_those_of_the_format():
    """Text, empty line, and lines of dash, name and base64 of key id and signature, byte for byte."""
    key_id = hashlib.sha256(NAME.encode() + b"\n\x01" + KEY.public).digest()[:4]
    expected = TEXT.encode() + b"\n" + line_of(NAME, key_id + KEY.sign(TEXT.encode()))
    assert notes.serialise(Note(TEXT, (SIGNED,))) == expected


def test_cosignature_is_over_time_and_text():
    """A cosignature holds its time in eight bytes and signs the header, the time line and the text."""
    key_id = hashlib.sha256(WITNESS.name.encode() + b"\n\x04" + OTHER.public).digest()[:4]
    message = b"cosignature/v1\ntime 1700000000\n" + TEXT.encode()
    assert key_id == COSIGNED.key_id
    assert COSIGNED.value[:8] == (1_700_000_000).to_bytes(8, "big")
    Ed25519PublicKey.from_public_bytes(OTHER.public).verify(COSIGNED.value[8:], message)


def test_note_reads_back():
    """Parsing what was serialised gives the same note, with the empty line inside the text kept."""
    assert notes.parse(notes.serialise(NOTE)) == NOTE


def test_signatures_of_known_keys_are_returned_in_order():
    """Both types verify; a cosignature says when, a plain one says 0."""
    verified = notes.verify(NOTE, [WITNESS, KNOWN])
    assert [(item.key, item.time_s) for item in verified] == [(KNOWN, 0), (WITNESS, 1_700_000_000)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(Signature("stranger", b"1234", b"x"), id="another name and id"),
        pytest.param(Signature(NAME, b"1234", b"x"), id="the name, another id"),
        pytest.param(Signature("stranger", SIGNED.key_id, b"x"), id="another name, the id"),
    ],
)
def test_unknown_signature_is_ignored(line):
    """A line that matches a known key in name or id only is ignored, whatever it holds."""
    assert len(notes.verify(Note(TEXT, (line, SIGNED)), [KNOWN])) == 1
    assert "no signature of a known key" in refusal(notes.verify, Note(TEXT, (line,)), [KNOWN])


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(
            Signature(NAME, SIGNED.key_id, SIGNED.value[:-1] + b"\0"), id="plain, changed"
        ),
        pytest.param(Signature(NAME, SIGNED.key_id, b"x"), id="plain, short"),
        pytest.param(Signature(WITNESS.name, COSIGNED.key_id, b"x"), id="cosignature, short"),
        pytest.param(
            Signature(WITNESS.name, COSIGNED.key_id, b"\0" * 7 + b"\1" + COSIGNED.value[8:]),
            id="cosignature, another time",
        ),
        pytest.param(
            Signature(WITNESS.name, COSIGNED.key_id, b"\0" * 8 + COSIGNED.value[8:]),
            id="cosignature, time zero",
        ),
        pytest.param(
            Signature(WITNESS.name, COSIGNED.key_id, b"\xff" * 8 + COSIGNED.value[8:]),
            id="cosignature, time beyond 2^63",
        ),
    ],
)
def test_one_bad_signature_of_a_known_key_refuses_the_note(bad):
    """Good signatures beside it, by the same or another known key, do not save the note."""
    refusal(notes.verify, Note(TEXT, (SIGNED, COSIGNED, bad)), [KNOWN, WITNESS])
    refusal(notes.verify, Note(TEXT, (bad, SIGNED, COSIGNED)), [KNOWN, WITNESS])


@pytest.mark.parametrize("time_s", [0, 2**63, 2**64 - 1])
def test_rightly_signed_cosignature_without_a_valid_time_is_refused(time_s):
    """Time zero and times beyond 2^63-1 are refused even under a good signature."""
    message = f"cosignature/v1\ntime {time_s}\n{TEXT}".encode()
    value = time_s.to_bytes(8, "big") + OTHER.sign(message)
    line = Signature(WITNESS.name, WITNESS.key_id, value)
    assert "no valid time" in refusal(notes.verify, Note(TEXT, (line,)), [WITNESS])


@settings(deadline=None)
@given(st.data())
def test_note_with_a_changed_byte_never_passes_as_another_text(data):
    """Whatever byte changes, the note is refused, or its text is as it was."""
    raw = bytearray(notes.serialise(NOTE))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert verified_text(bytes(raw)) in {"NOTE_INVALID", TEXT}


def verified_text(raw):
    """The text of a note that verifies, or the code that refuses it."""
    try:
        note = notes.parse(raw)
        notes.verify(note, [KNOWN, WITNESS])
    except EvidenceError as error:
        return error.code
    return note.text


@settings(deadline=None)
@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace"))
)
def test_any_bytes_parse_to_what_serialises_to_them_or_are_refused(raw):
    """Parsing is exact: nothing that parses has another serial form, and only one error gets out."""
    assert round_trip(raw) in {"NOTE_INVALID", raw}


def round_trip(raw):
    """The bytes of the note that some bytes parse to, or the code that refuses them."""
    try:
        return notes.serialise(notes.parse(raw))
    except EvidenceError as error:
        return error.code


GOOD = notes.serialise(Note(TEXT, (SIGNED,)))
LINE = GOOD.split(b"\n\n")[-1]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"", "without signature lines", id="empty"),
        pytest.param(b"text\n", "without signature lines", id="no signatures"),
        pytest.param(b"text\n\n", "without signature lines", id="nothing after the empty line"),
        pytest.param(b"text\n" + LINE, "without signature lines", id="no empty line"),
        pytest.param(GOOD[:-1], "cut off", id="no last line feed"),
        pytest.param(GOOD + b"more\n", "not a signature line", id="line after the signatures"),
        pytest.param(b"a\n\n- n MTIzNDU2\n", "not a signature line", id="hyphen for the dash"),
        pytest.param(b"a\n\n\xe2\x80\x94 n\n", "not a signature line", id="no signature"),
        pytest.param(b"a\n\n\xe2\x80\x94  MTIzNDU2\n", "key name", id="no name"),
        pytest.param(b"a\n\n\xe2\x80\x94 n+m MTIzNDU2\n", "key name", id="plus in the name"),
        pytest.param(
            b"a\n\n\xe2\x80\x94 n\xc2\xa0m MTIzNDU2\n", "key name", id="Unicode space in the name"
        ),
        pytest.param(b"a\n\n\xe2\x80\x94 n MTIzNA==\n", "not base64", id="key id only"),
        pytest.param(b"a\n\n\xe2\x80\x94 n MTIzNDU\n", "not base64", id="no padding"),
        pytest.param(b"a\n\n\xe2\x80\x94 n MTIzNDV=\n", "not base64", id="loose bits"),
        pytest.param(b"a\n\n\xe2\x80\x94 n MTIz NDU2\n", "not base64", id="space in base64"),
        pytest.param(b"a\n\n\xe2\x80\x94 n MT-zNDU2\n", "not base64", id="base64url"),
        pytest.param(b"a\xff\n\n" + LINE, "UTF-8", id="not UTF-8"),
        pytest.param(b"a\xed\xa0\x80\n\n" + LINE, "UTF-8", id="surrogate"),
        pytest.param(b"a\r\n\r\n" + LINE, "control character", id="carriage return"),
        pytest.param(b"a\tb\n\n" + LINE, "control character", id="tab"),
        pytest.param(b"a\0\n\n" + LINE, "control character", id="null"),
        pytest.param(b"a\n\n" + LINE * 101, "more than 100", id="101 signatures"),
        pytest.param(b"a" * 1_000_000 + GOOD, "1000000 bytes", id="over the size limit"),
    ],
)
def test_malformed_note_is_refused(raw, message):
    """Each way to miss the form has its message."""
    assert message in refusal(notes.parse, raw)


def test_a_hundred_signatures_are_accepted():
    """The limit is 100 signatures, well above the 16 that must be accepted."""
    assert len(notes.parse(b"a\n\n" + LINE * 100).signatures) == 100


@pytest.mark.parametrize(
    "text", ["", "no line feed", "tab\t\n", "lone \ud800 surrogate\n", "ends in two\n\nlines"]
)
def test_text_that_does_not_fit_a_note_is_not_written(text):
    """Nothing is written that would read back as another text."""
    refusal(notes.serialise, Note(text, (SIGNED,)))


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u3000b", "a\x01b", "a\ud800"])
def test_impossible_key_name_is_refused(name):
    """A key name has no space, plus, control character or lone surrogate, and is not empty."""
    refusal(notes.check_name, name)
    refusal(notes.sign, TEXT, name, KEY)


@pytest.mark.parametrize("time_s", [-1, 0, 2**63])
def test_cosigning_at_an_impossible_time_is_refused(time_s):
    """A cosignature's time is 1 to 2^63-1."""
    refusal(notes.cosign, TEXT, WITNESS.name, OTHER, time_s)


@pytest.mark.parametrize("key", [KNOWN, WITNESS], ids=["plain", "cosigner"])
def test_verifier_key_reads_back(key):
    """A vkey holds name, id, type and public key and reads back to the same key."""
    assert VerifierKey.decode(key.encode()) == key
    assert key.encode().startswith(f"{key.name}+{key.key_id.hex()}+")


VKEY = KNOWN.encode()


@pytest.mark.parametrize(
    "vkey",
    [
        pytest.param("", id="empty"),
        pytest.param("name+12345678", id="two parts"),
        pytest.param("name+12345678+", id="no key"),
        pytest.param(VKEY.replace("+", " ", 1), id="space for plus"),
        pytest.param(VKEY.replace(KNOWN.key_id.hex(), "00000000"), id="another id"),
        pytest.param(VKEY.replace(KNOWN.key_id.hex(), KNOWN.key_id.hex().upper()), id="capitals"),
        pytest.param(VKEY.replace(NAME, "example.com/book2"), id="another name"),
        pytest.param(VKEY[:-1], id="cut base64"),
        pytest.param("n+12345678+" + base64.b64encode(b"\x02" + KEY.public).decode(), id="ECDSA"),
    ],
)
def test_malformed_verifier_key_is_refused(vkey):
    """A vkey that is not three parts of a supported type with its own id is refused."""
    refusal(VerifierKey.decode, vkey)


def test_verifier_key_of_low_order_is_refused():
    """A weak public key is refused in a vkey as everywhere."""
    with pytest.raises(EvidenceError) as caught:
        VerifierKey(NAME, ED25519, b"\1" + bytes(31))
    assert caught.value.code == "WEAK_KEY"


def test_known_keys_that_share_name_and_id_are_refused(monkeypatch):
    """Two keys that no signature line can tell apart are refused, one key named twice is not."""
    assert notes.verify(NOTE, [KNOWN, KNOWN])
    monkeypatch.setattr(VerifierKey, "key_id", b"same")  # a real collision costs 2^32 hashes
    twin = VerifierKey(NAME, ED25519, OTHER.public)
    assert "share the id" in refusal(notes.verify, NOTE, [KNOWN, twin])


@pytest.mark.skipif(not TESSERA.is_file(), reason="../shared/vectors/public/tessera is not there")
def test_public_log_s_note_verifies_under_its_published_key():
    """A note signed by tessera's tools verifies, reads back byte for byte, and its vkey re-encodes."""
    raw = TESSERA.read_bytes()
    key = VerifierKey.decode(TESSERA_VKEY)
    assert [item.key for item in notes.verify(notes.parse(raw), [key])] == [key]
    assert notes.serialise(notes.parse(raw)) == raw
    assert key.encode() == TESSERA_VKEY
