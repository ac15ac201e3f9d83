"""The campaigns' own curve arithmetic, held against RFC 8032 and against OpenSSL."""

from __future__ import annotations

import pytest
from campaigns import curve
from campaigns.curve import IDENTITY, L, P
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RFC_8032 = [  # section 7.1: seed, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_signs_as_rfc_8032_says(seed, public, message, signature):
    """Key and signature of the standard's own examples come out byte for byte."""
    raw = bytes.fromhex(seed)
    a = curve.secret_scalar(raw)
    key = curve.encode(curve.multiply_base(a))
    assert key.hex() == public
    prefix = curve.hashlib.sha512(raw).digest()[32:]
    text = bytes.fromhex(message)
    r = int.from_bytes(curve.hashlib.sha512(prefix + text).digest(), "little") % L
    commitment = curve.encode(curve.multiply_base(r))
    s = (r + curve.challenge(commitment, key, text) * a) % L
    assert (commitment + s.to_bytes(32, "little")).hex() == signature


def test_public_keys_are_openssl_s():
    """A scalar times the base point, from the table and by doubling, is the key that OpenSSL makes of the seed."""
    base = curve.multiply_base(1)
    for number in range(20):
        seed = bytes([number]) * 32
        a = curve.secret_scalar(seed)
        key = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
        assert curve.encode(curve.multiply_base(a)) == key
        assert curve.encode(curve.multiply(a, base)) == key
        assert curve.encode(curve.decode(key)) == key


def test_the_group_is_a_group():
    """L times the base is the identity; negation, doubling and distribution hold."""
    base = curve.multiply_base(1)
    assert curve.equal(curve.multiply(L, base), IDENTITY)
    assert curve.equal(curve.add(base, curve.negate(base)), IDENTITY)
    assert curve.equal(curve.add(base, base), curve.multiply(2, base))
    left = curve.add(curve.multiply(5, base), curve.multiply(L - 3, base))
    assert curve.equal(left, curve.multiply(2, base))


def test_eight_points_of_low_order():
    """The torsion points are eight, closed under addition, and the only ones that eight kills."""
    points = curve.torsion()
    raw = [curve.encode(point) for point in points]
    assert len(set(raw)) == 8
    for i, a in enumerate(points):
        assert curve.has_low_order(a)
        for j, b in enumerate(points):
            assert curve.encode(curve.add(a, b)) == raw[(i + j) % 8]
    mixed = curve.encode(curve.add(curve.multiply_base(7), points[3]))
    assert curve.has_mixed_order(mixed)
    assert not curve.has_mixed_order(curve.encode(curve.multiply_base(7)))


def test_only_the_canonical_encoding_is_read_strictly():
    """Every other encoding of a point is read by the lax reader alone."""
    for point in curve.torsion():
        canonical = curve.encode(point)
        assert curve.decode(canonical) is not None
        for other in curve.other_encodings(point):
            assert curve.decode(other) is None
            assert curve.equal(curve.decode_loosely(other), point)
    assert sum(len(curve.other_encodings(point)) for point in curve.torsion()) == 6
    assert curve.decode((P + 3).to_bytes(32, "little")) is None
    assert curve.decode(b"\x02" + bytes(31)) is None
