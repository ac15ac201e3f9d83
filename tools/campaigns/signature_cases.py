"""Constructed Ed25519 cases: keys, messages and signatures on which honest libraries may disagree.

Every case is made from chosen scalars and points: nothing is taken from a list of others. A case may be a
signature that counts; what must become of it is decided by the rule, not by who made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from campaigns.curve import (
    COFACTOR,
    SIGN_BIT,
    L,
    P,
    add,
    challenge,
    decode_loosely,
    encode,
    multiply,
    multiply_base,
    negate,
    other_encodings,
    secret_scalar,
    torsion,
    whole_challenge,
)
from ledger.ed25519 import PrivateKey

TRIES = 256


@dataclass(frozen=True)
class Case:
    """A signature on trial."""

    public: bytes
    message: bytes
    signature: bytes


Make = Callable[[Random, int], Case]
"""Makes the case of a number; consecutive numbers go through every combination that the class has."""


def _message(random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 32, 100, 1000)))


def _scalar(random: Random) -> int:
    return random.randrange(1, L)


def _joined(r: bytes, s: int) -> bytes:
    return r + (s % 2**256).to_bytes(32, "little")


def finished(a: int, public: bytes, r: int, commitment: bytes, message: bytes) -> Case:
    """The signature of scalars: R is taken as written, S answers the challenge over what is written."""
    s = (r + challenge(commitment, public, message) * a) % L
    return Case(public, message, _joined(commitment, s))


# --- classes ----------------------------------------------------------------------------------


def honest(random: Random, _number: int) -> Case:
    """A signature as the product makes it: the control."""
    key, message = PrivateKey.from_seed(random.randbytes(32)), _message(random)
    return Case(key.public, message, key.sign(message))


def torsion_added(random: Random, number: int) -> Case:
    """Points of low order added to A and R, each pair of the eight: good where the cofactor is multiplied away."""
    in_key, in_r = number % COFACTOR, number // COFACTOR % COFACTOR
    a, r = _scalar(random), _scalar(random)
    public = encode(add(multiply_base(a), torsion()[in_key]))
    commitment = encode(add(multiply_base(r), torsion()[in_r]))
    return finished(a, public, r, commitment, _message(random))


def torsion_cancelling(random: Random, number: int) -> Case:
    """Points of low order in A and R that cancel under this message's challenge: good under the strict rule."""
    in_key, a, r = number % (COFACTOR - 1) + 1, _scalar(random), _scalar(random)
    public, prefix = encode(add(multiply_base(a), torsion()[in_key])), _message(random)
    commitments = [encode(add(multiply_base(r), point)) for point in torsion()]
    for attempt in range(TRIES):
        in_r = attempt % COFACTOR
        message = prefix + attempt.to_bytes(2, "little")
        if (in_r + challenge(commitments[in_r], public, message) * in_key) % COFACTOR == 0:
            return finished(a, public, r, commitments[in_r], message)
    raise AssertionError


def order_added_to_s(random: Random, number: int) -> Case:
    """S plus one to fifteen times the group order: the same number in the exponent, other bytes."""
    case = honest(random, number)
    s = int.from_bytes(case.signature[32:], "little") + (number % 15 + 1) * L
    return Case(case.public, case.message, _joined(case.signature[:32], min(s, 2**256 - 1)))


def edge_of_s(random: Random, number: int) -> Case:
    """S of 0, 1, L-1, L, L+1, 2^252, 2^253, 2^255 or 2^256-1, and R = [S]B: never this key's answer."""
    values = (0, 1, L - 1, L, L + 1, 2**252, 2**253, 2**255, 2**256 - 1)
    s, message, a = values[number % len(values)], _message(random), _scalar(random)
    public = encode(multiply_base(a))
    return Case(public, message, _joined(encode(multiply_base(s)), s))


def low_order_r(random: Random, number: int) -> Case:
    """R of low order, in every encoding that somebody reads, with the S that answers it."""
    encodings = _low_order_encodings()
    commitment, message = encodings[number % len(encodings)], _message(random)
    a = _scalar(random)
    return finished(a, encode(multiply_base(a)), 0, commitment, message)


def low_order_r_cancelling(random: Random, number: int) -> Case:
    """R of low order that a mixed-order key cancels: good but for the rule that R is not of low order."""
    place, in_key, a = number % COFACTOR, 2 * random.randrange(4) + 1, _scalar(random)
    public = encode(add(multiply_base(a), torsion()[in_key]))
    commitment, prefix = encode(torsion()[place]), _message(random)
    for attempt in range(TRIES):
        message = prefix + attempt.to_bytes(2, "little")
        if (place + challenge(commitment, public, message) * in_key) % COFACTOR == 0:
            return finished(a, public, 0, commitment, message)
    raise AssertionError


def low_order_key(random: Random, number: int) -> Case:
    """A key of low order in every encoding, with an R that makes the equation hold where it can."""
    encodings = _low_order_encodings()
    public, prefix, r = encodings[number % len(encodings)], _message(random), _scalar(random)
    point = decode_loosely(public)
    assert point is not None
    for attempt in range(TRIES):
        guess = attempt % COFACTOR
        message = prefix + attempt.to_bytes(2, "little")
        commitment = encode(add(multiply_base(r), negate(multiply(guess, point))))
        if challenge(commitment, public, message) % COFACTOR == guess:
            return Case(public, message, _joined(commitment, r))
    raise AssertionError


def both_of_low_order(random: Random, number: int) -> Case:
    """Key and R of low order and S = 0: a signature that needs no secret at all."""
    encodings = _low_order_encodings()
    public = encodings[number % len(encodings)]
    commitment = encodings[number // len(encodings) % len(encodings)]
    return Case(public, _message(random), _joined(commitment, 0))


def key_not_canonical(random: Random, number: int) -> Case:
    """A key whose y is p or more, on the curve or not."""
    values = [P + low | bit for low in range(19) for bit in (0, SIGN_BIT)]
    public = values[number % len(values)].to_bytes(32, "little")
    r = _scalar(random)
    return Case(public, _message(random), _joined(encode(multiply_base(r)), r))


def r_not_canonical(random: Random, number: int) -> Case:
    """R whose y is p or more, under an honest key."""
    values = [P + low | bit for low in range(19) for bit in (0, SIGN_BIT)]
    commitment = values[number % len(values)].to_bytes(32, "little")
    a = _scalar(random)
    return finished(a, encode(multiply_base(a)), _scalar(random), commitment, _message(random))


def challenge_re_encoded(random: Random, number: int) -> Case:
    """R or key in another encoding, and a challenge over the canonical one: good where a library re-encodes."""
    twins = _twins()
    twin, canonical = twins[number % len(twins)]
    message, a = _message(random), _scalar(random)
    if number // len(twins) % 2:
        public = encode(multiply_base(a))
        s = challenge(canonical, public, message) * a % L
        return Case(public, message, _joined(twin, s))
    point = decode_loosely(twin)
    assert point is not None
    for attempt in range(TRIES):
        guess = attempt % COFACTOR
        tried = message + attempt.to_bytes(2, "little")
        commitment = encode(add(multiply_base(a), negate(multiply(guess, point))))
        if challenge(commitment, canonical, tried) % COFACTOR == guess:
            return Case(twin, tried, _joined(commitment, a))
    raise AssertionError


def challenge_not_reduced(random: Random, number: int) -> Case:
    """Good where the challenge is not reduced modulo L before it multiplies a mixed-order key, and only there."""
    in_key, a, r = 2 * (number % 4) + 1, _scalar(random), _scalar(random)
    public, prefix = encode(add(multiply_base(a), torsion()[in_key])), _message(random)
    commitments = [encode(add(multiply_base(r), point)) for point in torsion()]
    for attempt in range(TRIES):
        in_r = attempt % COFACTOR
        message = prefix + attempt.to_bytes(2, "little")
        whole = whole_challenge(commitments[in_r], public, message)
        if (in_r + whole * in_key) % COFACTOR == 0 != (in_r + whole % L * in_key) % COFACTOR:
            return finished(a, public, r, commitments[in_r], message)
    raise AssertionError


def point_negated(random: Random, number: int) -> Case:
    """The key, R or both with the other sign: the same y, another point."""
    case = honest(random, number)
    flip = number % 3 + 1
    public = _other_sign(case.public) if flip & 1 else case.public
    commitment = _other_sign(case.signature[:32]) if flip & 2 else case.signature[:32]
    return Case(public, case.message, commitment + case.signature[32:])


def bit_flipped(random: Random, number: int) -> Case:
    """One bit of an honest signature, of its key or of its message turned."""
    case = honest(random, number)
    parts = [case.public, case.message or b"\0", case.signature]
    which = (2, 0, 1)[number % 3]
    place = random.randrange(len(parts[which]) * 8)
    changed = bytearray(parts[which])
    changed[place // 8] ^= 1 << place % 8
    parts[which] = bytes(changed)
    return Case(*parts)


def length_wrong(random: Random, number: int) -> Case:
    """A signature or a key that is cut, doubled, empty or followed by a byte."""
    case = honest(random, number)
    change = (
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data + data,
        lambda _: b"",
    )[number % 4]
    if number // 4 % 2:
        return Case(change(case.public), case.message, case.signature)
    return Case(case.public, case.message, change(case.signature))


def scalar_of_seed(random: Random, _number: int) -> Case:
    """A signature made here from a seed's scalar with a random nonce: as good as the product's own."""
    a = secret_scalar(random.randbytes(32))
    r = _scalar(random)
    return finished(a, encode(multiply_base(a)), r, encode(multiply_base(r)), _message(random))


CLASSES: tuple[Make, ...] = (
    honest,
    scalar_of_seed,
    torsion_added,
    torsion_cancelling,
    order_added_to_s,
    edge_of_s,
    low_order_r,
    low_order_r_cancelling,
    low_order_key,
    both_of_low_order,
    key_not_canonical,
    r_not_canonical,
    challenge_re_encoded,
    challenge_not_reduced,
    point_negated,
    bit_flipped,
    length_wrong,
)
CONTROLS = frozenset({"honest", "scalar_of_seed"})


def unenrollable_keys() -> list[bytes]:
    """Every encoding of every point of low order, and every 32 bytes whose y is p or more."""
    beyond = [(P + low | bit).to_bytes(32, "little") for low in range(19) for bit in (0, SIGN_BIT)]
    return sorted({*_low_order_encodings(), *beyond})


def _other_sign(raw: bytes) -> bytes:
    return raw[:31] + bytes([raw[31] ^ 0x80])


@cache
def _low_order_encodings() -> list[bytes]:
    return [raw for point in torsion() for raw in (encode(point), *other_encodings(point))]


@cache
def _twins() -> list[tuple[bytes, bytes]]:
    """(another encoding, the canonical one) of each point that has one and a known discrete logarithm."""
    return [(raw, encode(point)) for point in torsion() for raw in other_encodings(point)]
