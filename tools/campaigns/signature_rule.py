"""The acceptance rule K1 to K4 and S1 to S4 a second time, as mathematics: the oracle of the keys campaign.

Written over the harness's own curve and from the rule's words alone. Where the product looks a point up in a
table, this multiplies by eight; where it leaves an equation to a library, this computes both sides.
"""

from __future__ import annotations

from campaigns.curve import (
    SIGN_BIT,
    L,
    P,
    add,
    challenge,
    decode,
    decode_loosely,
    encode,
    equal,
    has_low_order,
    multiply,
    multiply_base,
    negate,
)


def key_refusal(public: bytes) -> str | None:
    """The code by which a public key may not be enrolled, None where it may."""
    if len(public) != 32:
        return "KEY_MALFORMED"  # K1
    if int.from_bytes(public, "little") & SIGN_BIT - 1 >= P:
        return "KEY_MALFORMED"  # K2
    point = decode_loosely(public)
    if point is None:
        return "KEY_MALFORMED"  # K3
    return "WEAK_KEY" if has_low_order(point) else None  # K4


def signature_refusal(public: bytes, message: bytes, signature: bytes) -> str | None:
    """Why a signature under an enrollable key does not count, None where it does."""
    if len(signature) != 64:
        return "S1 length"
    commitment, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= L:
        return "S2 S not below the order"
    key = decode(public)
    assert key is not None  # the key may be enrolled
    h = challenge(commitment, public, message)
    answer = add(multiply_base(s), negate(multiply(h, key)))
    if encode(answer) != commitment:
        return _broken(commitment, answer)
    return "S4 R of low order" if has_low_order(answer) else None


def _broken(commitment: bytes, answer: tuple[int, int, int, int]) -> str:
    point = decode_loosely(commitment)
    if point is None:
        return "S3 R off the curve"
    if decode(commitment) is None:
        if equal(point, answer):
            return "S3 R not canonical, else good"
        return "S3 R not canonical"
    if has_low_order(add(point, negate(answer))):
        if has_low_order(point):
            return "S3 good only with the cofactor, R of low order"
        return "S3 good only with the cofactor"
    return "S3 another R"
