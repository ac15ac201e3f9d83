"""Attacks on an entry's bytes, on the signature beside it and on the id beside both."""

from __future__ import annotations

import hashlib
from random import Random

from campaigns.tamper.attack import Attack, Make, at
from campaigns.tamper.base import Base, row
from campaigns.tamper.growing import key
from ledger import statements
from ledger.checks.identity import ROTATION_TYPE
from ledger.dsse import pae
from ledger.record import PAYLOAD_TYPE
from verifiers.chain import Row

ORDER = 2**252 + 27742317777372353535851937790883648493
_LOW_ORDER_POINTS = tuple(
    bytes.fromhex(text)
    for text in (
        "01" + "00" * 31,
        "ec" + "ff" * 30 + "7f",
        "00" * 32,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    )
)
MAX_STRETCH = 64


def _spot(base: Base, random: Random) -> tuple[int, Row]:
    seq = random.randrange(base.size)
    return seq, base.rows[seq]


def _of_entry(base: Base, random: Random, seq: int, entry: bytes) -> Attack:
    """The entry put in place, the id beside it left or made to fit."""
    old = base.rows[seq]
    fits = row(seq, entry, old[2])
    return at(base, seq, random.choice((fits, (seq, old[1], old[2], entry))))


def _flip(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    changed = bytearray(old[3])
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return _of_entry(base, random, seq, bytes(changed))


def _insert(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    place = random.randrange(len(old[3]) + 1)
    more = random.choice((random.randbytes(1), random.randbytes(9), b" ", b"\n", b"\x00", b","))
    return _of_entry(base, random, seq, old[3][:place] + more + old[3][place:])


def _delete(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    place, length = random.randrange(len(old[3])), random.randrange(1, MAX_STRETCH)
    return _of_entry(base, random, seq, old[3][:place] + old[3][place + length :])


def _replace(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    place, length = random.randrange(len(old[3])), random.randrange(1, MAX_STRETCH)
    source = random.choice(base.rows)[3]
    start = random.randrange(len(source))
    stretch = random.choice((random.randbytes(length), source[start : start + length]))
    return _of_entry(base, random, seq, old[3][:place] + stretch + old[3][place + length :])


def _cut(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    return _of_entry(base, random, seq, old[3][: random.randrange(len(old[3]))])


def _endless(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    filler = random.choice((b" ", b"[", b'{"a":', b"\x00", b"9"))
    return _of_entry(base, random, seq, old[3] + filler * random.choice((5000, 70_000, 300_000)))


def _signature(base: Base, random: Random, seq: int, signature: bytes) -> Attack:
    old = base.rows[seq]
    fits = row(seq, old[3], signature)
    return at(base, seq, random.choice((fits, (seq, old[1], signature, old[3]))))


def _signature_bits(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    changed = bytearray(old[2])
    for _ in range(random.choice((1, 1, 2))):
        changed[random.randrange(64)] ^= 1 << random.randrange(8)
    return _signature(base, random, seq, bytes(changed))


def _malleated(base: Base, random: Random) -> Attack | None:
    """S + kL is the same scalar modulo the group order: a second signature nobody made."""
    seq, old = _spot(base, random)
    scalar = int.from_bytes(old[2][32:], "little") + random.randrange(1, 8) * ORDER
    if scalar >= 2**256:
        return None
    return _signature(base, random, seq, old[2][:32] + scalar.to_bytes(32, "little"))


def _negated(base: Base, random: Random) -> Attack:
    """R with its sign bit turned, S negated modulo the order."""
    seq, old = _spot(base, random)
    scalar = (-int.from_bytes(old[2][32:], "little")) % ORDER
    turned = old[2][:31] + bytes((old[2][31] ^ 0x80,))
    return _signature(base, random, seq, turned + scalar.to_bytes(32, "little"))


def _degenerate(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    point = bytearray(random.choice(_LOW_ORDER_POINTS))
    if random.randrange(2):
        point[31] ^= 0x80
    scalar = random.choice((bytes(32), old[2][32:], (1).to_bytes(32, "little")))
    return _signature(base, random, seq, random.choice((bytes(64), bytes(point) + scalar)))


def _signature_length(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    other = random.choice((b"", old[2][:63], old[2] + b"\x00", old[2] * 2, old[2][:1]))
    return _signature(base, random, seq, other)


def _signatures_swapped(base: Base, random: Random) -> Attack:
    one, other = sorted(random.sample(range(base.size), 2))
    rows = list(base.rows)
    rows[one] = row(one, rows[one][3], base.rows[other][2])
    rows[other] = row(other, rows[other][3], base.rows[one][2])
    return Attack(rows, base.notes)


def _signature_borrowed(base: Base, random: Random) -> Attack:
    seq, _ = _spot(base, random)
    return _signature(base, random, seq, random.choice(base.rows)[2])


def _other_protocol(base: Base, random: Random) -> Attack:
    """The writer's own signature over the very bytes, made for something that is no record."""
    seq, old = _spot(base, random)
    types = (statements.PAYLOAD_TYPE, ROTATION_TYPE, "application/json", PAYLOAD_TYPE + " ")
    messages = (old[3], hashlib.sha256(old[3]).digest(), *(pae(kind, old[3]) for kind in types))
    signature = key(base.writers[seq]).sign(random.choice(messages))
    return _signature(base, random, seq, signature)


def _stored_id(base: Base, random: Random) -> Attack:
    seq, old = _spot(base, random)
    assert old[1] is not None  # the store gives each row its id
    flipped = bytes((old[1][0] ^ 1, *old[1][1:]))
    other = random.choice(base.rows)[1]
    wrong = random.choice((flipped, other, bytes(32), random.randbytes(32), old[1][:31], b""))
    return at(base, seq, (seq, wrong, old[2], old[3]))


ENTRY_BYTES: dict[str, Make] = {
    "entry: bits flipped": _flip,
    "entry: bytes inserted": _insert,
    "entry: bytes deleted": _delete,
    "entry: bytes replaced": _replace,
    "entry: cut": _cut,
    "entry: without end": _endless,
    "signature: bits flipped": _signature_bits,
    "signature: S plus multiples of the order": _malleated,
    "signature: R and S negated": _negated,
    "signature: zero or of low order": _degenerate,
    "signature: of another length": _signature_length,
    "signature: swapped between two records": _signatures_swapped,
    "signature: another record's": _signature_borrowed,
    "signature: made for another protocol": _other_protocol,
    "id beside the row": _stored_id,
}
