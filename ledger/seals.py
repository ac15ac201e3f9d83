"""Seals: signed tree heads in C2SP checkpoint form (spec: ledger.md, section 8).

    <origin>            the ledger's, which is also the name of its seal key
    <size>              records under the seal, decimal without leading zeros
    <base64 root>       RFC 6962 root over the first <size> records
                        then an empty line and signatures, see `ledger.notes`

A seal says: at some time the ledger had this size and this root. A witness's cosignature says the
same and when. Nothing here decides which key may seal at which record; the caller passes the keys.
Lines after the third, which C2SP allows and advises against, are refused: a seal has none.
Reference: c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger import merkle, notes
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledger.ed25519 import PrivateKey

MAX_SIZE = 2**63 - 1

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Seal:
    """A tree head: the ledger's origin, its number of records and its root of 32 bytes.

    Raises:
        EvidenceError: `SEAL_INVALID`, the fields cannot be those of a tree head.
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        try:
            notes.check_name(self.origin)
        except EvidenceError as error:
            raise _translated(error) from error
        if not 0 <= self.size <= MAX_SIZE:
            raise EvidenceError("SEAL_INVALID", f"a seal over {self.size} records", field="size")
        if len(self.root) != merkle.HASH_BYTES:
            raise EvidenceError(
                "SEAL_INVALID", f"a root of {len(self.root)} bytes instead of 32", field="root"
            )
        if self.size == 0 and self.root != merkle.EMPTY_ROOT:
            raise EvidenceError("SEAL_INVALID", "a root for an empty ledger", field="root")

    def text(self) -> str:
        """The three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def parse(cls, text: str) -> Seal:
        """The tree head of exactly three lines.

        Raises:
            EvidenceError: `SEAL_INVALID`, the text is not what `text` writes.
        """
        lines = text.split("\n")
        if len(lines) != 4 or lines[3]:
            raise EvidenceError("SEAL_INVALID", "a seal has three lines: origin, size and root")
        origin, size, encoded, _ = lines
        if not _DECIMAL.fullmatch(size):
            raise EvidenceError("SEAL_INVALID", f"{size[:40]!r} is not a size", field="size")
        root = notes.unbase64(encoded)
        if root is None:
            raise EvidenceError("SEAL_INVALID", "the root is not base64", field="root")
        return cls(origin, int(size), root)


@dataclass(frozen=True)
class Cosignature:
    """A witness's word for a seal: its name, its public key and when it signed (seconds, POSIX)."""

    name: str
    public: bytes
    time_s: int


def sign_seal(seal: Seal, key: PrivateKey) -> bytes:
    """The seal as a note, signed under the origin's name."""
    text = seal.text()
    return notes.serialise(notes.Note(text, (notes.sign(text, seal.origin, key),)))


def open_seal(data: bytes, origin: str, public_keys: Iterable[bytes]) -> Seal:
    """The tree head of a signed seal, once a seal key of the ledger has been found to have signed it.

    Args:
        data: the note.
        origin: the ledger whose seal it must be.
        public_keys: raw public keys that may seal.

    Raises:
        EvidenceError: `SEAL_INVALID`, it is malformed, of another ledger, bears no signature of
            these keys or a wrong one; `KEY_MALFORMED` or `WEAK_KEY`, one of the keys is bad.
    """
    note = _parse_note(data)
    seal = _expect_origin(Seal.parse(note.text), origin)
    keys = [notes.VerifierKey(origin, notes.ED25519, public) for public in public_keys]
    try:
        notes.verify(note, keys)
    except EvidenceError as error:
        raise _translated(error) from error
    return seal


def read_unverified(data: bytes) -> Seal:
    """The tree head a note claims, its signatures not looked at: to build from, never to trust.

    Raises:
        EvidenceError: `SEAL_INVALID`, it is no seal.
    """
    return Seal.parse(_parse_note(data).text)


def cosign_seal(data: bytes, name: str, key: PrivateKey, time_s: int) -> bytes:
    """The note with a witness's cosignature as its last line.

    The witness must have verified the log's signature (`open_seal`) and that the seal extends the last
    one it cosigned; neither is checked here.

    Raises:
        EvidenceError: `SEAL_INVALID`, it is no seal, or the name or time cannot be a witness's.
    """
    note = _parse_note(data)
    Seal.parse(note.text)
    try:
        line = notes.cosign(note.text, name, key, time_s)
        return notes.serialise(notes.Note(note.text, (*note.signatures, line)))
    except EvidenceError as error:
        raise _translated(error) from error


def cosignatures(data: bytes, witnesses: Iterable[notes.VerifierKey]) -> list[Cosignature]:
    """The good cosignatures of known witnesses, one for each public key, its newest, oldest first.

    Two witnesses with one public key count once, whatever their names. Does not look at the log's own
    signature: `open_seal` does. None found is an empty list, for the caller's quorum to refuse.

    Raises:
        EvidenceError: `SEAL_INVALID`, it is no seal or a known witness's cosignature is wrong.
    """
    note = _parse_note(data)
    Seal.parse(note.text)
    known = [key for key in witnesses if key.kind == notes.COSIGNATURE]
    try:
        verified = notes.verify_known(note, known)
    except EvidenceError as error:
        raise _translated(error) from error
    by_time = sorted(verified, key=lambda item: item.time_s)
    newest = {item.key.public: item for item in by_time}
    return [Cosignature(item.key.name, item.key.public, item.time_s) for item in newest.values()]


def _expect_origin(seal: Seal, origin: str) -> Seal:
    if seal.origin != origin:
        raise EvidenceError(
            "SEAL_INVALID",
            "the seal is of another ledger",
            field="origin",
            expected=origin,
            actual=seal.origin[:200],
        )
    return seal


def _parse_note(data: bytes) -> notes.Note:
    try:
        return notes.parse(data)
    except EvidenceError as error:
        raise _translated(error) from error


def _translated(error: EvidenceError) -> EvidenceError:
    return EvidenceError("SEAL_INVALID", f"not a good seal: {error.message}")


def tail_cut(sealed: int, size: int) -> EvidenceError:
    """What is wrong with a ledger that holds a seal over more records than it has.

    Args:
        sealed: records under the seal.
        size: records that are there.
    """
    return EvidenceError(
        "TAIL_CUT",
        f"a seal says the ledger had {sealed} records, it has {size}",
        seq=size - 1 if size else None,
        expected=str(sealed),
        actual=str(size),
    )
