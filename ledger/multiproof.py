"""One inclusion proof for many leaves of an RFC 6962 tree (spec: bundles.md, section 3).

The hashes are the roots of the largest subtrees without a chosen leaf, from left to right: those that all audit
paths together need, each once. The tree's shape says which they are, so that a proof has one form only, and
one chosen leaf gives the audit path of RFC 6962 in the order of the leaves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ledger.errors import EvidenceError, UsageError
from ledger.merkle import HASH_BYTES, node_hash, root


def prove(leaf_hashes: Iterable[bytes], chosen: Sequence[int], size: int) -> Iterator[bytes]:
    """The proof's hashes, from one pass over the leaf hashes.

    Args:
        leaf_hashes: from leaf 0 on, read once.
        chosen: the leaves to prove, ascending; at least one.
        size: of the tree.

    Raises:
        UsageError: `PROOF_OUT_OF_RANGE`, the tree has no such leaf or the stream ends too soon.
    """
    if not chosen or not 0 <= chosen[0] <= chosen[-1] < size:
        raise UsageError("PROOF_OUT_OF_RANGE", f"a tree of {size} leaves has no such leaves")
    stream = iter(leaf_hashes)
    position = 0
    for begin, end, given in _parts(chosen, 0, size):
        if given:
            for _ in _take(stream, position, end):
                pass
        else:
            yield root(_take(stream, begin, end))
        position = end


def verify(
    leaves: Sequence[tuple[int, bytes]], size: int, proof: Iterable[bytes], root_hash: bytes
) -> None:
    """Check that these are leaves of the tree of `size` leaves with this root.

    Args:
        leaves: (index, leaf hash), ascending.
        size: of the tree.
        proof: the hashes as `prove` gives them.
        root_hash: the tree's root.

    Raises:
        EvidenceError: `PROOF_INVALID`.
    """
    chosen = [index for index, _ in leaves]
    ascending = all(low < high for low, high in pairwise(chosen))
    if not (chosen and ascending and chosen[0] >= 0 and chosen[-1] < size):
        raise EvidenceError("PROOF_INVALID", f"a tree of {size} leaves has no such leaves")
    hashes = iter(proof)
    given = iter(leaf for _, leaf in leaves)
    computed = _root(chosen, 0, size, hashes, given)
    if next(hashes, None) is not None:
        raise EvidenceError("PROOF_INVALID", "the proof has hashes left over")
    if computed != root_hash:
        raise EvidenceError(
            "PROOF_INVALID",
            "the proof leads to another root",
            expected=root_hash.hex(),
            actual=computed.hex(),
        )


def _root(
    chosen: Sequence[int], begin: int, end: int, hashes: Iterator[bytes], given: Iterator[bytes]
) -> bytes:
    """Root of the leaves from begin to end; as deep as the size has bits."""
    if not _any(chosen, begin, end):
        item = next(hashes, None)
        if item is None or len(item) != HASH_BYTES:
            raise EvidenceError("PROOF_INVALID", "the proof lacks a hash of 32 bytes")
        return item
    if end - begin == 1:
        return next(given)
    middle = begin + _split(end - begin)
    left = _root(chosen, begin, middle, hashes, given)
    return node_hash(left, _root(chosen, middle, end, hashes, given))


def _parts(chosen: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """(begin, end, whether it is a chosen leaf) of what the tree falls into, from left to right."""
    if not _any(chosen, begin, end):
        yield begin, end, False
    elif end - begin == 1:
        yield begin, end, True
    else:
        middle = begin + _split(end - begin)
        yield from _parts(chosen, begin, middle)
        yield from _parts(chosen, middle, end)


def _any(chosen: Sequence[int], begin: int, end: int) -> bool:
    place = bisect_left(chosen, begin)
    return place < len(chosen) and chosen[place] < end


def _split(size: int) -> int:
    """The largest power of two below `size`, for a size of at least two."""
    return 1 << ((size - 1).bit_length() - 1)


def _take(stream: Iterator[bytes], begin: int, end: int) -> Iterator[bytes]:
    for position in range(begin, end):
        leaf = next(stream, None)
        if leaf is None:
            raise UsageError("PROOF_OUT_OF_RANGE", f"the leaves end at {position}")
        yield leaf
