"""Ed25519 keys and signatures under one strict rule, libsodium's (spec: ledger.md, section 5).

RFC 8032 leaves room: two honest libraries may disagree on whether a crafted signature is good. The
ledger knows one answer. A public key may be enrolled only if

    K1  it is 32 bytes,
    K2  its y coordinate is below p = 2^255 - 19 (the canonical encoding),
    K3  it decodes to a point of the curve,
    K4  that point is not of low order (1, 2, 4 or 8): such a key "verifies" any message.

and a signature R || S over a message counts only if

    S1  it is 64 bytes,
    S2  S is below the group order L (no malleation),
    S3  R is the canonical encoding of [S]B - [h]A, byte for byte (no cofactor, no other encoding), h
        being SHA-512 of R, A and message, reduced modulo L before it multiplies A,
    S4  R is not of low order.

`cryptography` (OpenSSL) enforces S1 to S3 and none of K2 to K4 and S4, so those are checked here: the
key once, when it is first seen, and R by one look-up per signature.

Trusted for: what a private key signs. A stolen key file allows signing as its role until root revokes
the key. A crash during `save` leaves either no key file or a whole one, and perhaps a temporary file beside it
(`.NAME.` and 16 hex digits, mode 0600) that holds the key too.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ledger import disk, pkcs8
from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC_BYTES = 32
SEED_BYTES = 32
SIGNATURE_BYTES = 64
KEY_ID_PREFIX = "ed25519:"

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_Y_MASK = 2**255 - 1
_SIGN_BIT = 2**255

# y of the points whose order divides 8: order 1, order 2, order 4, and the two y of order 8
_Y_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_LOW_ORDER_Y = frozenset({1, _P - 1, 0, _Y_ORDER_8, _P - _Y_ORDER_8})
_LOW_ORDER = frozenset(
    (y | sign).to_bytes(PUBLIC_BYTES, "little") for y in _LOW_ORDER_Y for sign in (0, _SIGN_BIT)
)

_KEY_FILE_MODE = 0o600
_OTHERS = 0o077
_KEY_FILE_MAX_BYTES = 16 * 1024
_PASSPHRASE_MAX_BYTES = 1023
_PLAIN = b"-----BEGIN PRIVATE KEY-----"
_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


def key_id(public_raw: bytes) -> str:
    """Id of a public key: `ed25519:` and the first 32 hex digits of SHA-256 of its 32 raw bytes."""
    return KEY_ID_PREFIX + hashlib.sha256(public_raw).hexdigest()[:32]


def check_public(public_raw: bytes) -> None:
    """Refuse a public key that may not be enrolled (K1 to K4 above).

    Raises:
        EvidenceError: `KEY_MALFORMED`, not the canonical encoding of a point of the curve;
            `WEAK_KEY`, a point of low order.
    """
    if len(public_raw) != PUBLIC_BYTES:
        raise EvidenceError("KEY_MALFORMED", f"a public key is 32 bytes, not {len(public_raw)}")
    y = int.from_bytes(public_raw, "little") & _Y_MASK
    if y >= _P:
        raise EvidenceError("KEY_MALFORMED", "the public key's encoding is not canonical")
    if y in _LOW_ORDER_Y:
        raise EvidenceError("WEAK_KEY", "the public key is a point of low order")
    if not _on_curve(y):
        raise EvidenceError("KEY_MALFORMED", "the public key is not a point of the curve")


def verify(public_raw: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature of 64 bytes over a message counts (S1 to S4 above).

    Raises:
        EvidenceError: `KEY_MALFORMED` or `WEAK_KEY`, see `check_public`.
    """
    public = _enrolled(public_raw)
    if len(signature) != SIGNATURE_BYTES or signature[:PUBLIC_BYTES] in _LOW_ORDER:
        return False
    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True


class PrivateKey:
    """A private key, with its raw public key and its id. Its text form never shows the secret.

    Args:
        key: the key as `cryptography` holds it.
    """

    __slots__ = ("_key", "id", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public: bytes = key.public_key().public_bytes_raw()
        self.id: str = key_id(self.public)

    def __repr__(self) -> str:
        return f"PrivateKey({self.id})"

    @classmethod
    def from_seed(cls, seed: bytes) -> PrivateKey:
        """The key of a seed of 32 bytes.

        Raises:
            UsageError: `KEY_MALFORMED`, the seed is of another length.
        """
        if len(seed) != SEED_BYTES:
            raise UsageError("KEY_MALFORMED", f"a seed is 32 bytes, not {len(seed)}", field="seed")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def generate(cls) -> PrivateKey:
        """A new key from the operating system's random source."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path, passphrase: bytes | None = None) -> PrivateKey:
        """Read a PKCS#8 PEM key file. A passphrase given for a file without one is not used.

        Raises:
            UsageError: `KEY_FILE_MISSING`, there is no such file.
            EvidenceError: `UNSAFE_PATH`, it is a link or no regular file; `KEY_FILE_OPEN`, others
                may read it; `KEY_LOCKED`, the passphrase is missing or wrong; `KEY_MALFORMED`, it
                holds no Ed25519 private key in PKCS#8 PEM, or trying its passphrase would cost too much.
        """
        pem = _read_key_file(path)
        if pem.startswith(_ENCRYPTED):
            return cls(_unlock(pem, path, passphrase))
        if pem.startswith(_PLAIN):
            return cls(_parse_pem(pem, path, None))
        raise _malformed(path)

    def save(self, path: Path, passphrase: bytes | None = None) -> None:
        """Write a new PKCS#8 PEM key file with mode 0600. A file that exists is left as it is.

        Raises:
            UsageError: `KEY_FILE_EXISTS`, something is there; `KEY_LOCKED`, the passphrase is empty
                or longer than 1,023 bytes.
            OSError: the folder cannot be written.
        """
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(passphrase))
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            _write_durable(temporary, pem)
            os.link(temporary, path)  # unlike a rename, a link never replaces what is there
        except FileExistsError:
            raise UsageError("KEY_FILE_EXISTS", f"{path} exists", field="path") from None
        finally:
            temporary.unlink(missing_ok=True)
        disk.sync_folder(path.parent)

    def sign(self, message: bytes) -> bytes:
        """Signature of 64 bytes over a message (RFC 8032, deterministic)."""
        return self._key.sign(message)


@lru_cache(maxsize=4096)
def _enrolled(public_raw: bytes) -> Ed25519PublicKey:
    check_public(public_raw)
    return Ed25519PublicKey.from_public_bytes(public_raw)


def _on_curve(y: int) -> bool:
    """Whether x^2 = (y^2 - 1) / (d y^2 + 1) has a root, by Euler's criterion (x = 0 is low order)."""
    square = (y * y - 1) * (_D * y * y + 1) % _P  # a quotient is a square where the product is one
    return pow(square, (_P - 1) // 2, _P) == 1


def _read_key_file(path: Path) -> bytes:
    try:
        stream = open_regular(path)
    except FileNotFoundError:
        raise UsageError(
            "KEY_FILE_MISSING", f"no key file at {_named(path)}", field="path"
        ) from None
    with stream:
        mode = os.fstat(stream.fileno()).st_mode
        if mode & _OTHERS:
            raise EvidenceError(
                "KEY_FILE_OPEN",
                f"others may use the key file {path}",
                expected="0600",
                actual=f"{mode & 0o777:04o}",
                hint=f"chmod 600 {path}",
            )
        return stream.read(_KEY_FILE_MAX_BYTES)


def _named(path: Path) -> str:
    """A path for a message. Whoever gave the key itself for its file's name does not read it again."""
    text = str(path)
    return "the private key that was given as a file's name" if "PRIVATE KEY" in text else text


def _unlock(pem: bytes, path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    if not passphrase:
        raise EvidenceError("KEY_LOCKED", f"the key file {path} needs its passphrase")
    asked = pkcs8.rounds(pem)
    if asked is None or not 1 <= asked <= pkcs8.MAX_ROUNDS:
        raise EvidenceError(
            "KEY_MALFORMED",
            f"the passphrase of {path} is not derived by PBKDF2 in {pkcs8.MAX_ROUNDS:,} rounds or fewer",
            actual="another way" if asked is None else f"{asked:,} rounds",
        )
    return _parse_pem(pem, path, passphrase)


def _parse_pem(pem: bytes, path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # the library's own text is dropped: it must never carry a secret into a log
        if passphrase is None:
            raise _malformed(path) from None
        raise EvidenceError("KEY_LOCKED", f"the passphrase does not open {path}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _malformed(path)
    return key


def _malformed(path: Path) -> EvidenceError:
    return EvidenceError("KEY_MALFORMED", f"{path} holds no Ed25519 private key in PKCS#8 PEM")


def _encryption(passphrase: bytes | None) -> KeySerializationEncryption:
    if passphrase is None:
        return NoEncryption()
    if not 1 <= len(passphrase) <= _PASSPHRASE_MAX_BYTES:
        raise UsageError("KEY_LOCKED", "a passphrase is 1 to 1,023 bytes", field="passphrase")
    return BestAvailableEncryption(passphrase)


def _write_durable(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _KEY_FILE_MODE)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(handle)
