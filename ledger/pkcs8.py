"""What trying a passphrase on a key file would cost, read from the file before it is tried.

    EncryptedPrivateKeyInfo ::= SEQUENCE {
        SEQUENCE { PBES2, SEQUENCE {                            the scheme (RFC 8018)
            SEQUENCE { PBKDF2, SEQUENCE { salt, rounds, … } },  how the passphrase becomes a key
            …                                                   the cipher
        } },
        OCTET STRING                                            the key, encrypted
    }

A hostile file may ask for 2^63 rounds, or by scrypt for all the memory there is. So one way of deriving is accepted, and
so many rounds at most. Nothing else of the file is judged here.
"""

from __future__ import annotations

import base64
import binascii

MAX_ROUNDS = 4_000_000
"""Some seconds; what is written today has thousands, and advice is 600,000."""

_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
_PBKDF2 = bytes.fromhex("06092a864886f70d01050c")


def rounds(pem: bytes) -> int | None:
    """Rounds of PBKDF2 that an encrypted PKCS#8 file asks for; None where it is derived in another way or malformed."""
    try:
        lines = pem.split(b"\n-----END", 1)[0].split(b"\n")[1:]
        scheme = _content(_content(base64.b64decode(b"".join(lines)), _SEQUENCE), _SEQUENCE)
        derivation = _content(_content(_after(scheme, _PBES2), _SEQUENCE), _SEQUENCE)
        costs = _content(_after(derivation, _PBKDF2), _SEQUENCE)
        number = _content(costs[_length(costs, _OCTETS) :], _INTEGER)
    except (ValueError, IndexError, binascii.Error):
        return None
    return int.from_bytes(number, "big", signed=True)


def _after(data: bytes, prefix: bytes) -> bytes:
    if not data.startswith(prefix):
        raise ValueError("another algorithm")
    return data[len(prefix) :]


def _content(data: bytes, tag: int) -> bytes:
    """The content of the element that the bytes begin with."""
    start, end = _bounds(data, tag)
    return data[start:end]


def _length(data: bytes, tag: int) -> int:
    """How long the element is that the bytes begin with."""
    return _bounds(data, tag)[1]


def _bounds(data: bytes, tag: int) -> tuple[int, int]:
    if data[0] != tag:
        raise ValueError("another type")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise ValueError("cut off")
    return start, start + length
