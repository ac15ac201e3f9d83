"""Hostile key files: of other algorithms, of ruinous cost, and no key at all."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from campaigns.hostile_bytes import BOM, Maker, mutated, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place
from campaigns.pem import encrypted_pem, pbkdf2, scrypt

PASSPHRASE = "a passphrase"  # noqa: S105 - of keys that open nothing


def _attack(rng: Random, place: Place, pem: bytes, *, accepts: bool = False) -> Attack:
    path = place.put("key.pem", pem)
    path.chmod(0o600)
    return _use(rng, place, bytes(path), accepts=accepts)


def _use(rng: Random, place: Place, path: bytes, *, accepts: bool = False) -> Attack:
    words = rng.choice(
        (
            ("--key", path, "note", "@0", "words"),
            ("key", "revoke", "ed25519:000000", "--reason", "x", "--root-key", path),
            ("key", "enroll", path, "--role", "train", "--owner", "x"),
            ("key", "rotate-root", "--new-key", path),
        )
    )
    return Attack(
        place.own(*words), environment={"EVIDENCE_KEY_PASSPHRASE": PASSPHRASE}, accepts=accepts
    )


@lru_cache(maxsize=1)
def _others() -> tuple[bytes, ...]:
    keys = (
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP256R1()),
        ed448.Ed448PrivateKey.generate(),
        x25519.X25519PrivateKey.generate(),
    )
    plain, locked = NoEncryption(), BestAvailableEncryption(PASSPHRASE.encode())
    forms: list[tuple[PrivateFormat, KeySerializationEncryption]] = [
        (PrivateFormat.PKCS8, plain),
        (PrivateFormat.PKCS8, locked),
    ]
    found = [key.private_bytes(Encoding.PEM, *form) for key in keys for form in forms]
    found += [
        keys[0].private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, way)
        for way in (plain, locked)
    ]
    own = Ed25519PrivateKey.from_private_bytes(bytes(32))
    return (*found, own.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, plain))


def other_algorithm(rng: Random, place: Place) -> Attack:
    """A good key of another algorithm or in another form."""
    return _attack(rng, place, rng.choice(_others()))


def iterations(rng: Random, place: Place) -> Attack:
    """A passphrase that takes days to try: PBKDF2 with up to 2^63 rounds."""
    return _attack(
        rng, place, encrypted_pem(pbkdf2(rng.choice((2**31 - 1, 2**40, 2**63 - 1, -1, 0))))
    )


def memory(rng: Random, place: Place) -> Attack:
    """A passphrase that takes gigabytes to try: scrypt."""
    n, r, p = rng.choice(
        ((2**24, 8, 1), (2**20, 64, 64), (2**62, 1, 1), (2**14, 2**20, 1), (16, 1, 2**30))
    )
    return _attack(rng, place, encrypted_pem(scrypt(n, r, p)))


def changed(rng: Random, place: Place) -> Attack:
    """A good key with a few changes."""
    key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
    way = rng.choice((NoEncryption(), BestAvailableEncryption(PASSPHRASE.encode())))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, way)
    # changes in what stands around the key's text leave it good; it is then merely not enrolled
    return _attack(rng, place, mutated(rng, pem), accepts=True)


def wrapped(rng: Random, place: Place) -> Attack:
    """A key among other bytes: a mark before it, two keys, megabytes behind it, a certificate's name."""
    key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    data = rng.choice(
        (
            BOM + pem,
            pem[:-20],
            pem.replace(b"PRIVATE KEY", b"CERTIFICATE"),
            pem.replace(b"\n", b"\r\n")[:60],
            b"-----BEGIN PRIVATE KEY-----\n" + b"A" * (20 << 20),
            b"\x30\x84\x7f\xff\xff\xff" + bytes(100),
            b"",
            b"\n" * 5000,
        )
    )
    return _attack(rng, place, data)


def open_to_others(rng: Random, place: Place) -> Attack:
    """A key that group or others may read."""
    key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
    path = place.put(
        "key.pem", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    path.chmod(rng.choice((0o640, 0o604, 0o666, 0o777)))
    return _use(rng, place, bytes(path))


def no_file(rng: Random, place: Place) -> Attack:
    """No plain file where the key should be."""
    path = special(rng, place, "key.pem")
    return _use(rng, place, bytes(path))


def name(rng: Random, place: Place) -> Attack:
    """A path that a terminal would obey, of a file that is not there."""
    return _use(rng, place, b"input/" + odd_name(rng, ".pem"), accepts=True)


KINDS: dict[str, Maker] = {
    "other-algorithm": other_algorithm,
    "iterations": iterations,
    "memory": memory,
    "changed": changed,
    "wrapped": wrapped,
    "open-to-others": open_to_others,
    "no-file": no_file,
    "name": name,
}
