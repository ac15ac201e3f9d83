"""C2SP signed notes: text signed by one or more named keys (spec: ledger.md, section 8).

    <text, ends in LF>
    <empty line>
    — <key name> <base64(key id[4] || signature)>      one or more such lines

    key id = SHA-256(name || LF || type || public key)[:4]
    type 0x01   Ed25519 over the text
    type 0x04   cosignature: u64be time_s || Ed25519 over "cosignature/v1" LF "time <time_s>" LF text

The text of a note means nothing until `verify` has returned. Signatures of unknown keys are ignored;
one bad signature of a known key refuses the whole note. Reference: c2sp.org/signed-note,
c2sp.org/tlog-cosignature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger import ed25519
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100
MAX_TIME_S = 2**63 - 1

ED25519 = 0x01
COSIGNATURE = 0x04
KINDS = frozenset({ED25519, COSIGNATURE})

_DASH = "\u2014 "
_KEY_ID_BYTES = 4
_TIME_BYTES = 8
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_HEX_KEY_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class Signature:
    """One signature line: who says to have signed, with which key, and the bytes after the key id."""

    name: str
    key_id: bytes
    value: bytes


@dataclass(frozen=True)
class Note:
    """A note as it was read: the text, with its last line feed, and its signatures, all unverified."""

    text: str
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class VerifierKey:
    """A known key: its name, its signature type (`ED25519` or `COSIGNATURE`) and its 32 raw bytes.

    Raises:
        EvidenceError: `NOTE_INVALID`, a name or type that notes do not have; `KEY_MALFORMED` or
            `WEAK_KEY`, see `ed25519.check_public`.
    """

    name: str
    kind: int
    public: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.kind not in KINDS:
            raise EvidenceError("NOTE_INVALID", f"key type {self.kind:#04x} is not supported")
        ed25519.check_public(self.public)

    @property
    def key_id(self) -> bytes:
        """The four bytes that name the key in a signature line."""
        material = self.name.encode() + b"\n" + bytes((self.kind,)) + self.public
        return hashlib.sha256(material).digest()[:_KEY_ID_BYTES]

    def encode(self) -> str:
        """The key as a vkey: `<name>+<key id in hex>+<base64(type || public key)>`."""
        material = base64.b64encode(bytes((self.kind,)) + self.public).decode()
        return f"{self.name}+{self.key_id.hex()}+{material}"

    @classmethod
    def decode(cls, vkey: str) -> VerifierKey:
        """The key of a vkey.

        Raises:
            EvidenceError: `NOTE_INVALID`, it is not a vkey of a supported type or its id is not its
                key's; `KEY_MALFORMED` or `WEAK_KEY`, see `ed25519.check_public`.
        """
        parts = vkey.split("+", 2)
        material = unbase64(parts[2]) if len(parts) == 3 else None
        if not material or not _HEX_KEY_ID.fullmatch(parts[1]):
            raise EvidenceError("NOTE_INVALID", "a verifier key is NAME+ID+BASE64")
        key = cls(parts[0], material[0], material[1:])
        if key.key_id.hex() != parts[1]:
            raise EvidenceError(
                "NOTE_INVALID",
                f"the verifier key of {key.name} has the id of another key",
                expected=key.key_id.hex(),
                actual=parts[1],
            )
        return key


@dataclass(frozen=True)
class Verified:
    """A known key's good signature; `time_s` is when a cosigner says it signed, 0 for type 0x01."""

    key: VerifierKey
    time_s: int


def parse(data: bytes) -> Note:
    """Read a note without verifying anything.

    Raises:
        EvidenceError: `NOTE_INVALID`, it is not a note or is over a limit.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise EvidenceError("NOTE_INVALID", f"a note of more than {MAX_NOTE_BYTES} bytes")
    content = _decode_text(data)
    text, separator, lines = content.rpartition("\n\n")
    if not separator or not lines:
        raise EvidenceError("NOTE_INVALID", "a note without signature lines")
    if not lines.endswith("\n"):
        raise EvidenceError("NOTE_INVALID", "the last line of the note is cut off")
    signatures = lines[:-1].split("\n")
    if len(signatures) > MAX_SIGNATURES:
        raise EvidenceError("NOTE_INVALID", f"a note with more than {MAX_SIGNATURES} signatures")
    return Note(text + "\n", tuple(_parse_signature(line) for line in signatures))


def serialise(note: Note) -> bytes:
    """The bytes of a note. `parse` reads them back to the same note.

    Raises:
        EvidenceError: `NOTE_INVALID`, the note could not be read back.
    """
    lines = (
        f"{_DASH}{item.name} {base64.b64encode(item.key_id + item.value).decode()}\n"
        for item in note.signatures
    )
    data = _encode_text(f"{note.text}\n{''.join(lines)}")
    if parse(data) != note:
        raise EvidenceError("NOTE_INVALID", "the text or a signature does not fit a note")
    return data


def sign(text: str, name: str, key: ed25519.PrivateKey) -> Signature:
    """A signature of type 0x01 over a text that ends in a line feed.

    Raises:
        EvidenceError: `NOTE_INVALID`, the name cannot be a key name or the text is not Unicode.
    """
    known = VerifierKey(name, ED25519, key.public)
    return Signature(name, known.key_id, key.sign(_encode_text(text)))


def cosign(text: str, name: str, key: ed25519.PrivateKey, time_s: int) -> Signature:
    """A cosignature of type 0x04 over a text, made at `time_s` (seconds, POSIX, at least 1).

    The signed bytes do not hold the name: one key must not serve two cosigners.

    Raises:
        EvidenceError: `NOTE_INVALID`, the name cannot be a key name, the text is not Unicode or the
            time is out of range.
    """
    if not 1 <= time_s <= MAX_TIME_S:
        raise EvidenceError("NOTE_INVALID", f"cosignature time {time_s} is out of range")
    known = VerifierKey(name, COSIGNATURE, key.public)
    value = time_s.to_bytes(_TIME_BYTES, "big") + key.sign(_cosigned(text, time_s))
    return Signature(name, known.key_id, value)


def verify(note: Note, keys: Iterable[VerifierKey]) -> list[Verified]:
    """The good signatures of known keys, in the note's order; at least one.

    Raises:
        EvidenceError: `NOTE_INVALID`, there is none, or see `verify_known`.
    """
    verified = verify_known(note, keys)
    if not verified:
        raise EvidenceError("NOTE_INVALID", "the note bears no signature of a known key")
    return verified


def verify_known(note: Note, keys: Iterable[VerifierKey]) -> list[Verified]:
    """The good signatures of known keys, in the note's order; none is no error.

    Raises:
        EvidenceError: `NOTE_INVALID`, a known key's signature is wrong, or two known keys cannot be
            told apart by name and id.
    """
    known = _by_identity(keys)
    return [
        _verify_one(note.text, item, known[item.name, item.key_id])
        for item in note.signatures
        if (item.name, item.key_id) in known
    ]


def check_name(name: str) -> None:
    """Refuse what cannot be a key name: empty, or with a space, a plus or a control character.

    Raises:
        EvidenceError: `NOTE_INVALID`.
    """
    if not name or "+" in name or any(char.isspace() or char < " " for char in name):
        raise EvidenceError("NOTE_INVALID", f"{name[:80]!r} cannot be a key name")
    _encode_text(name)


def unbase64(text: str) -> bytes | None:
    """Bytes of standard base64, or None where the text is not their one exact encoding."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def _parse_signature(line: str) -> Signature:
    name, separator, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not separator:
        raise EvidenceError("NOTE_INVALID", f"{line[:80]!r} is not a signature line")
    check_name(name)
    blob = unbase64(encoded)
    if blob is None or len(blob) <= _KEY_ID_BYTES:
        raise EvidenceError("NOTE_INVALID", f"the signature of {name[:80]} is not base64 of one")
    return Signature(name, blob[:_KEY_ID_BYTES], blob[_KEY_ID_BYTES:])


def _by_identity(keys: Iterable[VerifierKey]) -> dict[tuple[str, bytes], VerifierKey]:
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        if known.setdefault((key.name, key.key_id), key) != key:
            raise EvidenceError(
                "NOTE_INVALID", f"two known keys of {key.name} share the id {key.key_id.hex()}"
            )
    return known


def _verify_one(text: str, signature: Signature, key: VerifierKey) -> Verified:
    time_s = 0
    message, value = _encode_text(text), signature.value
    if key.kind == COSIGNATURE:
        time_s = int.from_bytes(value[:_TIME_BYTES], "big")
        message, value = _cosigned(text, time_s), value[_TIME_BYTES:]
        if not 1 <= time_s <= MAX_TIME_S:
            raise EvidenceError("NOTE_INVALID", f"the cosignature of {key.name} has no valid time")
    if not ed25519.verify(key.public, message, value):
        raise EvidenceError("NOTE_INVALID", f"the signature of {key.name} is wrong")
    return Verified(key, time_s)


def _cosigned(text: str, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n".encode() + _encode_text(text)


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EvidenceError("NOTE_INVALID", "lone surrogate in a note") from None


def _decode_text(data: bytes) -> str:
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise EvidenceError("NOTE_INVALID", f"a note is UTF-8: {error.reason}") from None
    if _CONTROL.search(content):
        raise EvidenceError("NOTE_INVALID", "a note with a control character")
    return content
