"""The RFC 6962 Merkle tree with SHA-256: roots, proofs, and a compact range (spec: ledger.md, section 8).

    MTH({})     = SHA-256("")
    leaf hash   = SHA-256(0x00 || entry)
    node hash   = SHA-256(0x01 || left || right)
    MTH(D[n])   = node(MTH(D[0:k]), MTH(D[k:n])), k the largest power of two below n

Proofs are made from one pass over the leaf hashes: a proof is a list of subtree roots, the subtrees do
not overlap, so they are computed in the order of their leaves with O(log n) hashes in memory.
Verification follows RFC 9162 sections 2.1.3.2 and 2.1.4.2. Every hash is exactly 32 bytes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

_Range = tuple[int, int]


def leaf_hash(entry: bytes) -> bytes:
    """Hash of a leaf's bytes."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node from the hashes of its two children."""
    return sha256(b"\x01" + left + right).digest()


class CompactRange:
    """What is needed to append to a tree and to know its root: one hash for each bit set in its size.

    Appending costs one node hash on average; the root costs at most one for each bit of the size.
    """

    __slots__ = ("_hashes", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._hashes: list[bytes] = []

    @classmethod
    def from_hashes(cls, size: int, hashes: Sequence[bytes]) -> CompactRange:
        """The range of `size` leaves whose complete subtrees, largest first, have these roots.

        Raises:
            EvidenceError: `PROOF_INVALID`, the count does not fit the size or a hash is not 32 bytes.
        """
        if size < 0 or len(hashes) != size.bit_count():
            raise EvidenceError(
                "PROOF_INVALID",
                f"{len(hashes)} hashes cannot be the compact range of {size} leaves",
            )
        _check_hashes(hashes, "compact range")
        made = cls()
        made._size = size
        made._hashes = list(hashes)
        return made

    @property
    def size(self) -> int:
        """Number of leaves appended so far."""
        return self._size

    def append(self, leaf: bytes) -> None:
        """Add one leaf by its hash of 32 bytes."""
        size = self._size
        hashes = self._hashes
        self._size = size + 1
        while size & 1:  # each set low bit is a complete subtree that the new one merges with
            leaf = sha256(b"\x01" + hashes.pop() + leaf).digest()
            size >>= 1
        hashes.append(leaf)

    def append_subtree(self, subtree: bytes, leaves: int) -> None:
        """Add a complete subtree by its root, as if each of its leaves had been appended.

        Args:
            subtree: its root, 32 bytes.
            leaves: how many it has: a power of two of which the size so far is a multiple.

        Raises:
            EvidenceError: `PROOF_INVALID`, no such subtree begins here.
        """
        if leaves < 1 or leaves & (leaves - 1) or self._size % leaves:
            raise EvidenceError(
                "PROOF_INVALID", f"no complete subtree of {leaves} leaves begins at {self._size}"
            )
        _check_hashes((subtree,), "compact range")
        place = self._size // leaves
        self._size += leaves
        while place & 1:
            subtree = node_hash(self._hashes.pop(), subtree)
            place >>= 1
        self._hashes.append(subtree)

    def root(self) -> bytes:
        """Root of the tree over all leaves so far."""
        if not self._hashes:
            return EMPTY_ROOT
        *rest, root = self._hashes
        for left in reversed(rest):
            root = node_hash(left, root)
        return root

    def to_hashes(self) -> list[bytes]:
        """Roots of the complete subtrees, largest first; with `size` they restore the range."""
        return list(self._hashes)

    def copy(self) -> CompactRange:
        """A range of its own that starts where this one is."""
        return CompactRange.from_hashes(self._size, self._hashes)


def root(leaf_hashes: Iterable[bytes]) -> bytes:
    """Root of the tree over these leaf hashes."""
    compact = CompactRange()
    for leaf in leaf_hashes:
        compact.append(leaf)
    return compact.root()


def inclusion_proof(leaf_hashes: Iterable[bytes], index: int, size: int) -> list[bytes]:
    """Audit path of leaf `index` in the tree of the first `size` leaves, the leaf's sibling first.

    Reads at most `size` hashes, once, in order.

    Raises:
        UsageError: `PROOF_OUT_OF_RANGE`, the tree has no such leaf or the stream ends too soon.
    """
    if not 0 <= index < size:
        raise UsageError("PROOF_OUT_OF_RANGE", f"a tree of {size} leaves has no leaf {index}")
    return _subtree_roots(leaf_hashes, _inclusion_ranges(index, size))


def consistency_proof(leaf_hashes: Iterable[bytes], old_size: int, new_size: int) -> list[bytes]:
    """Proof that the tree of `new_size` leaves extends the tree of `old_size` leaves (RFC 6962 2.1.2).

    Empty where the old tree is empty or both are the same. Reads at most `new_size` hashes, in order.

    Raises:
        UsageError: `PROOF_OUT_OF_RANGE`, the old tree is the larger one or the stream ends too soon.
    """
    if not 0 <= old_size <= new_size:
        raise UsageError(
            "PROOF_OUT_OF_RANGE", f"a tree of {new_size} leaves does not extend one of {old_size}"
        )
    return _subtree_roots(leaf_hashes, _consistency_ranges(old_size, new_size))


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root_hash: bytes
) -> None:
    """Check that a leaf hash is leaf `index` of the tree of `size` leaves with this root.

    Raises:
        EvidenceError: `PROOF_INVALID`, it is not, or a hash is not 32 bytes.
    """
    _check_hashes((leaf, root_hash, *proof), "inclusion proof")
    if not 0 <= index < size:
        raise EvidenceError("PROOF_INVALID", f"a tree of {size} leaves has no leaf {index}")
    place, last, computed = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise EvidenceError("PROOF_INVALID", "the inclusion proof is too long")
        if place & 1 or place == last:
            computed = node_hash(sibling, computed)
            place, last = _skip_missing_right_siblings(place, last)
        else:
            computed = node_hash(computed, sibling)
        place, last = place >> 1, last >> 1
    if last != 0:
        raise EvidenceError("PROOF_INVALID", "the inclusion proof is too short")
    _check_root(computed, root_hash, f"the inclusion proof of leaf {index}")


def verify_consistency(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that the tree with the new root extends the tree with the old root.

    Raises:
        EvidenceError: `PROOF_INVALID`, it does not, or a hash is not 32 bytes.
    """
    _check_hashes((old_root, new_root, *proof), "consistency proof")
    if not 0 <= old_size <= new_size:
        raise EvidenceError(
            "PROOF_INVALID", f"a tree of {new_size} leaves does not extend one of {old_size}"
        )
    if old_size in {0, new_size}:
        _verify_trivial(old_size, new_size, old_root, new_root, proof)
    else:
        _verify_extension(old_size, new_size, old_root, new_root, proof)


def _verify_trivial(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    if proof:
        raise EvidenceError("PROOF_INVALID", "the consistency proof should be empty")
    if old_size == 0:
        _check_root(EMPTY_ROOT, old_root, "the empty tree")
    if old_size == new_size:
        _check_root(old_root, new_root, f"the same tree of {old_size} leaves")


def _verify_extension(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    if not proof:
        raise EvidenceError("PROOF_INVALID", "the consistency proof is empty")
    # a complete old tree is a node of the new one; its root is not repeated in the proof
    path = (old_root, *proof) if old_size & (old_size - 1) == 0 else tuple(proof)
    place, last = old_size - 1, new_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old_computed = new_computed = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise EvidenceError("PROOF_INVALID", "the consistency proof is too long")
        if place & 1 or place == last:
            old_computed = node_hash(sibling, old_computed)
            new_computed = node_hash(sibling, new_computed)
            place, last = _skip_missing_right_siblings(place, last)
        else:
            new_computed = node_hash(new_computed, sibling)
        place, last = place >> 1, last >> 1
    if last != 0:
        raise EvidenceError("PROOF_INVALID", "the consistency proof is too short")
    _check_root(old_computed, old_root, f"the consistency proof for {old_size} leaves")
    _check_root(new_computed, new_root, f"the consistency proof for {new_size} leaves")


def _skip_missing_right_siblings(place: int, last: int) -> _Range:
    """Climb from a node on the right edge to the next level at which it has a left sibling."""
    while place and not place & 1:
        place, last = place >> 1, last >> 1
    return place, last


def _check_hashes(hashes: Iterable[bytes], what: str) -> None:
    for item in hashes:
        if len(item) != HASH_BYTES:
            raise EvidenceError(
                "PROOF_INVALID", f"{what} with a hash of {len(item)} bytes instead of 32"
            )


def _check_root(computed: bytes, claimed: bytes, what: str) -> None:
    if computed != claimed:
        raise EvidenceError(
            "PROOF_INVALID",
            f"{what} leads to another root",
            expected=claimed.hex(),
            actual=computed.hex(),
        )


def _split(size: int) -> int:
    """The largest power of two below `size`, for a size of at least two."""
    return 1 << ((size - 1).bit_length() - 1)


def _inclusion_ranges(index: int, size: int) -> list[_Range]:
    """Leaf ranges of the siblings on a leaf's path, the lowest first (PATH of RFC 6962 2.1.1)."""
    begin, end = 0, size
    ranges: list[_Range] = []
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((begin, middle))
            begin = middle
    return ranges[::-1]


def _consistency_ranges(old_size: int, new_size: int) -> list[_Range]:
    """Leaf ranges of the nodes of a consistency proof (SUBPROOF of RFC 6962 2.1.2)."""
    if old_size in {0, new_size}:
        return []
    begin, end = 0, new_size
    ranges: list[_Range] = []
    while end != old_size:
        middle = begin + _split(end - begin)
        if old_size <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((begin, middle))
            begin = middle
    if begin != 0:  # otherwise the last node is the old tree itself, which the verifier has
        ranges.append((begin, end))
    return ranges[::-1]


def _subtree_roots(leaf_hashes: Iterable[bytes], ranges: Sequence[_Range]) -> list[bytes]:
    """Root of each range, in the order of `ranges`, from one pass over the leaves."""
    stream = iter(leaf_hashes)
    position = 0
    roots: dict[_Range, bytes] = {}
    for begin, end in sorted(ranges):
        for _ in _take(stream, position, begin):
            pass
        roots[begin, end] = root(_take(stream, begin, end))
        position = end
    return [roots[item] for item in ranges]


def _take(stream: Iterator[bytes], begin: int, end: int) -> Iterator[bytes]:
    for position in range(begin, end):
        leaf = next(stream, None)
        if leaf is None:
            raise UsageError("PROOF_OUT_OF_RANGE", f"the leaves end at {position}")
        yield leaf
