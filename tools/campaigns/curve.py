"""The curve edwards25519 in plain Python: the harness's own arithmetic, slow, for constructing attacks.

Points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z. Nothing here is in constant time, and nothing of the
product calls it.
"""

from __future__ import annotations

import hashlib
from functools import cache

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SIGN_BIT = 1 << 255
COFACTOR = 8
_ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
_WINDOW_BITS = 4
_WINDOWS = 64

Point = tuple[int, int, int, int]
IDENTITY: Point = (0, 1, 1, 0)


def affine(x: int, y: int) -> Point:
    """The point of two coordinates."""
    return x, y, 1, x * y % P


def add(a: Point, b: Point) -> Point:
    """The sum of two points, any two (the addition law is complete)."""
    left = (a[1] - a[0]) * (b[1] - b[0]) % P
    right = (a[1] + a[0]) * (b[1] + b[0]) % P
    cross = 2 * D * a[3] * b[3] % P
    double = 2 * a[2] * b[2] % P
    e, f, g, h = right - left, double - cross, double + cross, right + left
    return e * f % P, g * h % P, f * g % P, e * h % P


def negate(a: Point) -> Point:
    """The point that added to this one gives the identity."""
    return -a[0] % P, a[1], a[2], -a[3] % P


def multiply(scalar: int, point: Point) -> Point:
    """A multiple of a point; the scalar is taken as it is, not modulo any order."""
    steps = [IDENTITY]
    for _ in range(2**_WINDOW_BITS - 1):
        steps.append(add(steps[-1], point))
    total = IDENTITY
    for shift in range(scalar.bit_length() // _WINDOW_BITS * _WINDOW_BITS, -1, -_WINDOW_BITS):
        for _ in range(_WINDOW_BITS):
            total = add(total, total)
        total = add(total, steps[scalar >> shift & 2**_WINDOW_BITS - 1])
    return total


def multiply_base(scalar: int) -> Point:
    """A multiple of the base point, for scalars below 2^256, from a table."""
    total = IDENTITY
    for place, steps in enumerate(_base_table()):
        total = add(total, steps[scalar >> place * _WINDOW_BITS & 2**_WINDOW_BITS - 1])
    return total


def equal(a: Point, b: Point) -> bool:
    """Whether two points are the same."""
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 == (a[1] * b[2] - b[1] * a[2]) % P


def has_low_order(point: Point) -> bool:
    """Whether the point's order divides eight."""
    return equal(multiply(COFACTOR, point), IDENTITY)


def has_mixed_order(raw: bytes) -> bool:
    """Whether 32 bytes are a point that is neither of low order nor of prime order."""
    point = decode(raw)
    if point is None or has_low_order(point):
        return False
    return not equal(multiply(L, point), IDENTITY)


def encode(point: Point) -> bytes:
    """The canonical 32 bytes of a point."""
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode_loosely(raw: bytes) -> Point | None:
    """The point that 32 bytes mean where y is taken modulo p and the sign of x = 0 is ignored; None off the curve."""
    number = int.from_bytes(raw, "little")
    y, sign = (number & SIGN_BIT - 1) % P, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * _ROOT_OF_MINUS_1 % P
    if x * x % P != square:
        return None
    return affine((P - x) % P if x & 1 != sign else x, y)


def decode(raw: bytes) -> Point | None:
    """The point of a canonical encoding (RFC 8032, 5.1.3), None for any other bytes."""
    point = decode_loosely(raw) if len(raw) == 32 else None
    return point if point is not None and encode(point) == raw else None


def challenge(r: bytes, public: bytes, message: bytes) -> int:
    """SHA-512 of R, key and message as a number, reduced modulo L."""
    return whole_challenge(r, public, message) % L


def whole_challenge(r: bytes, public: bytes, message: bytes) -> int:
    """The same number of 512 bits, not reduced: for a key of mixed order another multiple."""
    return int.from_bytes(hashlib.sha512(r + public + message).digest(), "little")


def secret_scalar(seed: bytes) -> int:
    """The secret scalar of a seed (RFC 8032, 5.1.5)."""
    clamped = bytearray(hashlib.sha512(seed).digest()[:32])
    clamped[0] &= 248
    clamped[31] = clamped[31] & 63 | 64
    return int.from_bytes(clamped, "little")


@cache
def torsion() -> tuple[Point, ...]:
    """The eight points of low order; the one at place i is i times the one at place 1."""
    for y in range(2, 50):
        point = decode_loosely(y.to_bytes(32, "little"))
        generator = IDENTITY if point is None else multiply(L, point)
        if not equal(multiply(4, generator), IDENTITY):
            return tuple(multiply(place, generator) for place in range(COFACTOR))
    raise AssertionError


def other_encodings(point: Point) -> list[bytes]:
    """Bytes other than the canonical ones that a lax reader takes for the point."""
    canonical = int.from_bytes(encode(point), "little")
    y, sign = canonical & SIGN_BIT - 1, canonical & SIGN_BIT
    signs = [0, SIGN_BIT] if y in {1, P - 1} else [sign]
    found = {(value | bit) for value in (y, y + P) if value < SIGN_BIT for bit in signs}
    return [number.to_bytes(32, "little") for number in sorted(found - {canonical})]


@cache
def _base_table() -> tuple[tuple[Point, ...], ...]:
    base = decode(bytes.fromhex("58" + "66" * 31))
    assert base is not None
    table = []
    for _ in range(_WINDOWS):
        steps = [IDENTITY]
        for _ in range(2**_WINDOW_BITS - 1):
            steps.append(add(steps[-1], base))
        table.append(tuple(steps))
        base = add(steps[-1], base)
    return tuple(table)
