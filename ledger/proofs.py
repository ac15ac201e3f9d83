"""C2SP tlog-proof files: one record's inclusion under a seal, verified offline (spec: ledger.md, section 8).

    c2sp.org/tlog-proof@v1
    extra <base64>          optional and not authenticated: never to be trusted
    index <n>               the record's seq
    <base64 hash>           the inclusion proof, the leaf's sibling first, one hash a line
                            then an empty line and the seal, verbatim

Reference: c2sp.org/tlog-proof. The suffix of such a file is `.tlog-proof`.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger import merkle, notes, seals
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledger.seals import Seal

HEADER = "c2sp.org/tlog-proof@v1"
SUFFIX = ".tlog-proof"
MAX_HASHES = 63
MAX_EXTRA_BYTES = 65_535
MAX_PROOF_BYTES = notes.MAX_NOTE_BYTES + 100_000

_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})")


@dataclass(frozen=True)
class TlogProof:
    """A proof file as it was read, nothing verified.

    Args:
        index: the record's seq.
        hashes: the inclusion proof, at most 63 hashes of 32 bytes.
        seal: the seal's note, verbatim.
        extra: opaque bytes that nothing vouches for, where the file has them.
    """

    index: int
    hashes: tuple[bytes, ...]
    seal: bytes
    extra: bytes | None = None

    def encode(self) -> bytes:
        """The file's bytes."""
        lines = [HEADER]
        if self.extra is not None:
            lines.append(f"extra {base64.b64encode(self.extra).decode()}")
        lines.append(f"index {self.index}")
        lines += (base64.b64encode(item).decode() for item in self.hashes)
        return "\n".join(lines).encode() + b"\n\n" + self.seal

    @classmethod
    def decode(cls, data: bytes) -> TlogProof:
        """Read a file strictly; the seal's own form is left to `seals.open_seal`.

        Raises:
            EvidenceError: `PROOF_INVALID`, it is no proof file or is over a limit.
        """
        if len(data) > MAX_PROOF_BYTES:
            raise EvidenceError("PROOF_INVALID", f"a proof file of over {MAX_PROOF_BYTES} bytes")
        head, separator, seal = data.partition(b"\n\n")
        if not separator or not head.isascii():
            raise EvidenceError("PROOF_INVALID", "the proof file has no ASCII head before a seal")
        first, *lines = head.decode().split("\n")
        if first != HEADER:
            raise EvidenceError("PROOF_INVALID", f"the first line is not {HEADER}")
        extra = _parse_extra(lines.pop(0)) if lines and lines[0].startswith("extra ") else None
        if not lines:
            raise EvidenceError("PROOF_INVALID", "the proof file has no index line", field="index")
        return cls(_parse_index(lines[0]), _parse_hashes(lines[1:]), seal, extra)


def build(
    seal: bytes,
    index: int,
    leaf: bytes,
    leaf_hashes: Iterable[bytes],
    extra: bytes | None = None,
) -> bytes:
    """The proof file of one record under a seal; it is verified against the seal's root before it is returned.

    Args:
        seal: the seal's note; its signatures are not looked at.
        index: the record's seq.
        leaf: the record's leaf hash.
        leaf_hashes: leaf hashes from record 0 on, read once, up to the seal's size.
        extra: opaque bytes to carry along, unauthenticated, at most 65,535.

    Raises:
        EvidenceError: `SEAL_INVALID`, it is no seal; `PROOF_INVALID`, the leaves are not those under
            the seal or `extra` is empty or too long.
        UsageError: `PROOF_OUT_OF_RANGE`, the seal does not cover the record or the leaves end too soon.
    """
    head = seals.read_unverified(seal)
    hashes = merkle.inclusion_proof(leaf_hashes, index, head.size)
    merkle.verify_inclusion(leaf, index, head.size, hashes, head.root)
    proof = TlogProof(index, tuple(hashes), seal, extra)
    data = proof.encode()
    if TlogProof.decode(data) != proof:
        raise EvidenceError("PROOF_INVALID", "the proof file does not read back", field="extra")
    return data


def verify(data: bytes, leaf: bytes, origin: str, public_keys: Iterable[bytes]) -> tuple[int, Seal]:
    """Check that a record is under a seal of its ledger; its seq and the seal.

    Args:
        data: the proof file.
        leaf: the record's leaf hash, computed from the record's own bytes.
        origin: the ledger's origin.
        public_keys: raw public keys that may seal.

    Raises:
        EvidenceError: `PROOF_INVALID`, the file is malformed or does not lead to the seal's root;
            `SEAL_INVALID`, the seal in it is not good, see `seals.open_seal`.
    """
    proof = TlogProof.decode(data)
    seal = seals.open_seal(proof.seal, origin, public_keys)
    merkle.verify_inclusion(leaf, proof.index, seal.size, proof.hashes, seal.root)
    return proof.index, seal


def _parse_extra(line: str) -> bytes:
    extra = notes.unbase64(line.removeprefix("extra "))
    if not extra or len(extra) > MAX_EXTRA_BYTES:
        raise EvidenceError(
            "PROOF_INVALID",
            f"extra data is base64 of 1 to {MAX_EXTRA_BYTES} bytes",
            field="extra",
        )
    return extra


def _parse_index(line: str) -> int:
    found = _INDEX.fullmatch(line)
    if found is None:
        raise EvidenceError("PROOF_INVALID", f"{line[:80]!r} is not an index line", field="index")
    return int(found[1])


def _parse_hashes(lines: list[str]) -> tuple[bytes, ...]:
    if len(lines) > MAX_HASHES:
        raise EvidenceError("PROOF_INVALID", f"more than {MAX_HASHES} hashes in a proof")
    return tuple(_parse_hash(line) for line in lines)


def _parse_hash(line: str) -> bytes:
    item = notes.unbase64(line)
    if item is None or len(item) != merkle.HASH_BYTES:
        raise EvidenceError("PROOF_INVALID", f"{line[:80]!r} is not base64 of a 32-byte hash")
    return item
