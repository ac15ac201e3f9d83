"""Encrypted PKCS#8 files with any cost, as a library would not write them."""

from __future__ import annotations

import base64

_PBES2 = bytes.fromhex("06092a864886f70d01050d")
_PBKDF2 = bytes.fromhex("06092a864886f70d01050c")
_SCRYPT = bytes.fromhex("06092b06010401da47040b")
_HMAC_SHA256 = bytes.fromhex("300c06082a864886f70d02090500")
_AES_256_CBC = bytes.fromhex("060960864801650304012a")


def encrypted_pem(derivation: bytes) -> bytes:
    """An encrypted key file whose passphrase goes through a derivation; its ciphertext is zeros."""
    cipher = _sequence(_AES_256_CBC, _octets(bytes(16)))
    scheme = _sequence(_PBES2, _sequence(derivation, cipher))
    text = base64.encodebytes(_sequence(scheme, _octets(bytes(64))))
    kind = b"ENCRYPTED PRIVATE KEY-----\n"
    return b"-----BEGIN " + kind + text + b"-----END " + kind


def pbkdf2(iterations: int) -> bytes:
    """PBKDF2 with HMAC-SHA-256 and so many iterations."""
    return _sequence(_PBKDF2, _sequence(_octets(bytes(16)), _integer(iterations), _HMAC_SHA256))


def scrypt(n: int, r: int, p: int) -> bytes:
    """Scrypt with its three costs."""
    return _sequence(
        _SCRYPT, _sequence(_octets(bytes(16)), _integer(n), _integer(r), _integer(p), _integer(32))
    )


def _sequence(*parts: bytes) -> bytes:
    return _tagged(0x30, b"".join(parts))


def _octets(data: bytes) -> bytes:
    return _tagged(0x04, data)


def _integer(value: int) -> bytes:
    return _tagged(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _tagged(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content
