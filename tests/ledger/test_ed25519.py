"""Ed25519 under the strict rule, and private key files."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from ledger import ed25519
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, UsageError

CCTV = Path(__file__).resolve().parents[3] / "shared/vectors/public/ed25519/ed25519vectors.json"

# the curve in affine coordinates, written out here as an oracle of its own
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
IDENTITY = (0, 1)
SEED = bytes(range(32))
KEY = PrivateKey.from_seed(SEED)


def add(a, b):
    """The sum of two points, by the complete addition law of the curve."""
    product = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def multiply(scalar, point):
    """A multiple of a point, by doubling and adding."""
    total = IDENTITY
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def decode(raw):
    """The point of 32 bytes with y taken modulo p, by square root, or None off the curve."""
    number = int.from_bytes(raw, "little")
    y, sign = (number & (2**255 - 1)) % P, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square:
        return None
    return (P - x if x & 1 != sign else x) % P, y


def encode(point):
    """The canonical 32 bytes of a point."""
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def challenge(r, public, message):
    """The number h of RFC 8032: SHA-512 of R, key and message, modulo the group order."""
    return int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L


def secret_scalar(seed):
    """The secret scalar of a seed."""
    clamped = bytearray(hashlib.sha512(seed).digest()[:32])
    clamped[0] &= 248
    clamped[31] = clamped[31] & 63 | 64
    return int.from_bytes(clamped, "little")


BASE = decode(bytes.fromhex("58" + "66" * 31))


def torsion_points():
    """The eight points of low order: multiples of one point of order eight."""
    for y in range(2, 50):
        point = decode(y.to_bytes(32, "little"))
        generator = multiply(L, point) if point else IDENTITY
        if multiply(4, generator) != IDENTITY:
            return [multiply(k, generator) for k in range(8)]
    raise AssertionError


TORSION = torsion_points()


def test_signs_as_rfc_8032_section_7_1_says():
    """Key and signature of RFC 8032's second test are reproduced byte for byte."""
    key = PrivateKey.from_seed(
        bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    )
    assert key.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_key_id_is_the_start_of_the_hash_of_the_raw_key():
    """A key's id is `ed25519:` and 32 hex digits of SHA-256 of its raw public bytes."""
    assert KEY.id == ed25519.key_id(KEY.public)
    assert KEY.id == "ed25519:" + hashlib.sha256(KEY.public).hexdigest()[:32]


def test_own_signature_counts():
    """What a key signs verifies under its public key, and not under another."""
    signature = KEY.sign(b"entry")
    assert ed25519.verify(KEY.public, b"entry", signature)
    assert not ed25519.verify(PrivateKey.generate().public, b"entry", signature)
    assert not ed25519.verify(KEY.public, b"entrY", signature)


@settings(deadline=None)
@given(bit=st.integers(0, 511), message=st.binary(max_size=40))
def test_any_flipped_bit_of_a_signature_is_refused(bit, message):
    """No single bit of R or S can change without the signature failing."""
    signature = bytearray(KEY.sign(message))
    signature[bit // 8] ^= 1 << bit % 8
    assert not ed25519.verify(KEY.public, message, bytes(signature))


@pytest.mark.parametrize("length", [0, 32, 63, 65, 128])
def test_signature_of_another_length_is_refused(length):
    """A signature is 64 bytes; a cut or an extended one does not count."""
    signature = (KEY.sign(b"entry") * 2)[:length]
    assert not ed25519.verify(KEY.public, b"entry", signature)


@pytest.mark.parametrize("index", range(8))
@pytest.mark.parametrize("sign_bit", [0, 1])
def test_low_order_key_is_refused(index, sign_bit):
    """Each of the eight low-order points is a weak key, with either sign bit."""
    raw = bytearray(encode(TORSION[index]))
    raw[31] ^= sign_bit << 7
    assert multiply(8, TORSION[index]) == IDENTITY
    with pytest.raises(EvidenceError) as caught:
        ed25519.check_public(bytes(raw))
    assert caught.value.code == "WEAK_KEY"


def test_the_identity_key_that_the_library_accepts_is_refused():
    """R = B, S = 1 is good for every message under the identity key in OpenSSL, and refused here."""
    identity, forged = encode(IDENTITY), encode(BASE) + (1).to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(identity).verify(forged, b"anything at all")
    with pytest.raises(EvidenceError) as caught:
        ed25519.verify(identity, b"anything at all", forged)
    assert caught.value.code == "WEAK_KEY"


@pytest.mark.parametrize("offset", range(19))
@pytest.mark.parametrize("sign", [0, 2**255])
def test_key_encoding_at_or_above_p_is_refused(offset, sign):
    """All 38 encodings with y at or above p are malformed, on the curve or not."""
    with pytest.raises(EvidenceError) as caught:
        ed25519.check_public((P + offset | sign).to_bytes(32, "little"))
    assert caught.value.code == "KEY_MALFORMED"


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_key_of_another_length_is_refused(length):
    """A public key is exactly 32 bytes."""
    with pytest.raises(EvidenceError) as caught:
        ed25519.check_public(bytes(length))
    assert caught.value.code == "KEY_MALFORMED"


@settings(deadline=None)
@given(
    st.binary(min_size=32, max_size=32)
    | st.integers(0, 999).map(lambda y: y.to_bytes(32, "little"))
)
def test_key_is_accepted_exactly_where_it_is_a_point_of_high_order(raw):
    """Enrolment agrees with decoding by square root and eightfold addition; half the bytes are no point."""
    point = decode(raw)
    sound = point is not None and encode(point) == raw and multiply(8, point) != IDENTITY
    assert (enrolment_code(raw) is None) == sound


def enrolment_code(raw):
    """The code that refuses a public key, or None where it may be enrolled."""
    try:
        ed25519.check_public(raw)
    except EvidenceError as error:
        return error.code
    return None


@pytest.mark.parametrize("index", range(8))
def test_low_order_r_is_refused(index):
    """R of low order is refused even where [S]B - [h]A equals it, which OpenSSL accepts."""
    r = encode(TORSION[index])
    # a public key with a torsion part, so that every low-order R can be hit by some message
    public = encode(add(multiply(secret_scalar(SEED), BASE), TORSION[1]))
    for number in range(200):
        message = number.to_bytes(2, "big")
        h = challenge(r, public, message)
        signature = r + (h * secret_scalar(SEED) % L).to_bytes(32, "little")
        if encode(multiply(8 - h % 8, TORSION[1])) == r:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
            assert not ed25519.verify(public, message, signature)
            return
    pytest.fail("no message reached this R")


def test_s_at_or_above_the_group_order_is_refused():
    """Adding the group order to S gives a second form of a signature, which does not count."""
    signature = KEY.sign(b"entry")
    s = int.from_bytes(signature[32:], "little") + L
    assert not ed25519.verify(KEY.public, b"entry", signature[:32] + s.to_bytes(32, "little"))


def test_cofactored_only_signature_is_refused():
    """A signature that holds only up to a low-order residue does not count."""
    scalar, nonce = secret_scalar(SEED), 12345
    public, r = encode(add(multiply(scalar, BASE), TORSION[1])), encode(multiply(nonce, BASE))
    verdicts = set()
    for number in range(32):
        message = bytes((number,))
        h = challenge(r, public, message)
        signature = r + ((nonce + h * scalar) % L).to_bytes(32, "little")
        verdicts.add((h % 8 == 0, ed25519.verify(public, message, signature)))
    assert verdicts == {(True, True), (False, False)}


@pytest.mark.skipif(not CCTV.is_file(), reason="../shared/vectors/public/ed25519 is not there")
def test_public_edge_cases_get_libsodium_s_answer():
    """On the 914 edge cases of C2SP/CCTV the rule accepts exactly what libsodium accepts."""
    cases = json.loads(CCTV.read_bytes())
    ours = {case["number"] for case in cases if _accepted(*_case(case))}
    theirs = {case["number"] for case in cases if _accepted_by_libsodium(*_case(case))}
    assert len(cases) == 914
    assert len(ours) == 43
    assert ours == theirs


def _case(case):
    return bytes.fromhex(case["key"]), case["msg"].encode(), bytes.fromhex(case["sig"])


def _accepted(public, message, signature):
    try:
        return ed25519.verify(public, message, signature)
    except EvidenceError:
        return False


def _accepted_by_libsodium(public, message, signature):
    try:
        VerifyKey(public).verify(message, signature)
    except BadSignatureError:
        return False
    return True


@pytest.mark.parametrize("passphrase", [None, b"correct horse", b"\xff\x00 not text"])
def test_key_file_round_trip(tmp_path, passphrase):
    """A saved key loads again, from a file of mode 0600 whatever the umask, with nothing else left."""
    path = tmp_path / "writer.pem"
    before = os.umask(0)
    try:
        KEY.save(path, passphrase)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert PrivateKey.load(path, passphrase).public == KEY.public
    assert list(tmp_path.iterdir()) == [path]
    assert SEED not in path.read_bytes()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
def test_key_file_open_to_others_is_refused(tmp_path, mode):
    """Any permission of the group or of others refuses the file and says how to close it."""
    path = tmp_path / "writer.pem"
    KEY.save(path)
    path.chmod(mode)
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(path)
    assert caught.value.code == "KEY_FILE_OPEN"
    assert caught.value.actual == f"{mode:04o}"
    assert caught.value.hint == f"chmod 600 {path}"


def test_linked_key_file_is_refused(tmp_path):
    """A symbolic link is not followed, though it leads to a good key."""
    KEY.save(tmp_path / "writer.pem")
    (tmp_path / "link.pem").symlink_to(tmp_path / "writer.pem")
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(tmp_path / "link.pem")
    assert caught.value.code == "UNSAFE_PATH"


def test_missing_key_file_is_named(tmp_path):
    """A path with no file is the caller's mistake and is named."""
    with pytest.raises(UsageError, match=r"nowhere\.pem") as caught:
        PrivateKey.load(tmp_path / "nowhere.pem")
    assert caught.value.code == "KEY_FILE_MISSING"


def test_key_file_is_never_overwritten(tmp_path):
    """Saving over a file, even an empty one, changes nothing and leaves no temporary file."""
    path = tmp_path / "writer.pem"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError) as caught:
        KEY.save(path)
    assert caught.value.code == "KEY_FILE_EXISTS"
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_of_many_who_save_at_once_one_wins(tmp_path):
    """Many keys saved to one path at the same moment leave one whole file, its writer's, and nothing beside it."""
    path, keys = tmp_path / "writer.pem", [PrivateKey.from_seed(bytes([n]) * 32) for n in range(16)]
    gate = threading.Barrier(len(keys))

    def save(key):
        gate.wait()
        try:
            key.save(path)
        except UsageError as error:
            return error.code
        return key.id

    with ThreadPoolExecutor(len(keys)) as pool:
        ends = list(pool.map(save, keys))
    assert ends.count("KEY_FILE_EXISTS") == len(keys) - 1
    assert PrivateKey.load(path).id in ends
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_key_is_not_pickled():
    """No library that pickles what it is given carries a secret to another process."""
    with pytest.raises(TypeError):
        pickle.dumps(KEY)


@pytest.mark.parametrize("given", [None, b"", b"wrong-secret", b"x" * 2000])
def test_locked_key_file_needs_its_passphrase(tmp_path, given):
    """A missing, empty, wrong or overlong passphrase is one error that shows neither passphrase."""
    path = tmp_path / "writer.pem"
    KEY.save(path, b"right-secret")
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(path, given)
    assert caught.value.code == "KEY_LOCKED"
    assert caught.value.__cause__ is None
    assert "secret" not in json.dumps(caught.value.as_dict())


def test_passphrase_is_not_used_for_a_plain_key_file(tmp_path):
    """One passphrase in the environment serves several keys, of which some have none."""
    KEY.save(tmp_path / "writer.pem")
    assert PrivateKey.load(tmp_path / "writer.pem", b"for another key").id == KEY.id


@pytest.mark.parametrize("passphrase", [b"", b"x" * 1024])
def test_unusable_passphrase_is_refused_before_anything_is_written(tmp_path, passphrase):
    """A key is never saved under a passphrase that is empty or too long to be read back."""
    with pytest.raises(UsageError) as caught:
        KEY.save(tmp_path / "writer.pem", passphrase)
    assert caught.value.code == "KEY_LOCKED"
    assert list(tmp_path.iterdir()) == []


def _private_pem(key, form=serialization.PrivateFormat.PKCS8):
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


ED = Ed25519PrivateKey.from_private_bytes(SEED)
FOREIGN = {
    "empty": b"",
    "text": b"not a key\n",
    "p-256": _private_pem(ec.generate_private_key(ec.SECP256R1())),
    "openssh": _private_pem(ED, serialization.PrivateFormat.OpenSSH),
    "public": ED.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ),
    "raw seed": SEED,
    "cut": _private_pem(ED)[:60],
    "damaged": _private_pem(ED).replace(b"MC4C", b"MC5C"),
    "over the limit": _private_pem(ED)[:28] + b"A" * 20_000,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_file_of_another_form_is_refused(tmp_path, name):
    """Only PKCS#8 PEM with an Ed25519 key is read; everything else is one clear error."""
    path = tmp_path / "key.pem"
    path.write_bytes(FOREIGN[name])
    path.chmod(0o600)
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(path)
    assert caught.value.code == "KEY_MALFORMED"


def test_seed_of_another_length_is_refused():
    """A seed is 32 bytes."""
    with pytest.raises(UsageError) as caught:
        PrivateKey.from_seed(bytes(31))
    assert caught.value.code == "KEY_MALFORMED"


def test_text_form_shows_only_the_id():
    """Printing a key shows its id and nothing secret."""
    assert repr(KEY) == f"PrivateKey({KEY.id})"
