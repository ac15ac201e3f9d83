"""Pairs of texts that share most of their five-word runs: found by MinHash, confirmed exactly.

Candidates come from MinHash with banding (Broder 1997; Leskovec, Rajaraman, Ullman, *Mining of Massive
Datasets*, chapter 3): 42 bands of 3 rows find a pair of Jaccard similarity 0.5 with probability
1 - (1 - 0.5^3)^42 = 0.996, of 0.6 with 0.99997. Each candidate is then compared shingle by shingle, so a
reported pair is never a guess. Written out in numpy, because whoever verifies an audit years later may not
depend on a library's choice of hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHINGLE_WORDS = 5
BANDS = 42
BAND_ROWS = 3
THRESHOLD = 0.5
MAX_BUCKET = 200
MAX_CONFIRMED = 256

_SEED = 0x5EED
_CHUNK_SHINGLES = 1 << 18

_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_Index = NDArray[np.int64]


@dataclass(frozen=True)
class Fingerprints:
    """Texts as shingles and band keys.

    `shingles` holds all texts' five-word runs one after the other; text i has those from `starts[i]` to
    `starts[i + 1]`. `keys` has shape (texts, bands); the keys of a text without a run mean nothing.
    """

    shingles: _U64
    starts: _Index
    keys: _U64

    def jaccard(self, one: int, other: int) -> float:
        """The share of common runs in all runs of two texts; 0 where neither has one."""
        first, second = self._distinct(one), self._distinct(other)
        common = np.intersect1d(first, second, assume_unique=True).size
        union = first.size + second.size - common
        return common / union if union else 0.0

    def with_runs(self, chosen: Iterable[int]) -> _Index:
        """Those of the chosen texts that have at least one run."""
        index = np.fromiter(chosen, np.int64)
        return index[self.starts[index + 1] > self.starts[index]]

    def _distinct(self, text: int) -> _U64:
        return np.unique(self.shingles[self.starts[text] : self.starts[text + 1]])


def fingerprints(texts: Sequence[list[str]]) -> Fingerprints:
    """Fingerprints of texts, each given as a list of words."""
    shingles, starts = _shingles(texts)
    return Fingerprints(shingles, starts, _band_keys(shingles, starts))


def first_near_duplicates(
    prints: Fingerprints, held_out: Iterable[int], before: Iterable[int]
) -> dict[int, tuple[int, float]]:
    """For each held-out text that has one: a similar earlier text and the pair's Jaccard similarity.

    Texts of fewer than five words have no run and no near duplicate. Among a text's candidates the 256
    that share most bands are compared; a bucket with more than 200 earlier texts gives its first 200.

    Args:
        prints: fingerprints of all texts.
        held_out: indices of the texts to look for.
        before: indices of the texts to look in.

    Returns:
        Held-out index -> (earlier index, similarity of at least 0.5).
    """
    found: dict[int, tuple[int, float]] = {}
    tried: dict[int, int] = {}
    for one, other in _candidates(
        prints.keys, prints.with_runs(held_out), prints.with_runs(before)
    ):
        if one in found or tried.get(one, 0) >= MAX_CONFIRMED:
            continue
        tried[one] = tried.get(one, 0) + 1
        similarity = prints.jaccard(one, other)
        if similarity >= THRESHOLD:
            found[one] = (other, similarity)
    return found


def _shingles(texts: Sequence[list[str]]) -> tuple[_U64, _Index]:
    """All texts' five-word runs as 64-bit numbers, and where each text's begin."""
    vocabulary: dict[str, int] = {}
    flat = [vocabulary.setdefault(word, len(vocabulary) + 1) for text in texts for word in text]
    numbers = np.array(flat, np.uint64)
    lengths = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(lengths)
    runs = np.zeros(max(numbers.size - SHINGLE_WORDS + 1, 0), np.uint64)
    for place in range(SHINGLE_WORDS):
        runs = _mix(runs ^ numbers[place : place + runs.size])
    last_word = np.repeat(ends, lengths)[: runs.size]
    within = np.arange(runs.size) + SHINGLE_WORDS <= last_word
    starts = np.concatenate([[0], np.cumsum(np.maximum(lengths - SHINGLE_WORDS + 1, 0))])
    return runs[within], starts.astype(np.int64)


def _mix(value: _U64) -> _U64:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _band_keys(shingles: _U64, starts: _Index) -> _U64:
    """One 64-bit key for each text and band, computed over a bounded number of shingles at a time."""
    keys = np.zeros((starts.size - 1, BANDS), np.uint64)
    full = np.flatnonzero(np.diff(starts))
    folded = (shingles ^ (shingles >> np.uint64(32))).astype(np.uint32)
    first = 0
    while first < full.size:
        limit = starts[full[first]] + _CHUNK_SHINGLES
        last = max(int(np.searchsorted(starts[full + 1], limit, "right")), first + 1)
        chosen = full[first:last]
        begin, end = starts[chosen[0]], starts[chosen[-1] + 1]
        keys[chosen] = _keys_of(folded[begin:end], starts[chosen] - begin)
        first = last
    return keys


def _keys_of(folded: _U32, starts: _Index) -> _U64:
    keys = np.zeros((starts.size, BANDS), np.uint64)
    for row, (factor, offset) in enumerate(_permutations()):
        lowest = np.minimum.reduceat(folded * factor + offset, starts).astype(np.uint64)
        keys[:, row // BAND_ROWS] = _mix(keys[:, row // BAND_ROWS] ^ lowest)
    return keys


def _permutations() -> list[tuple[np.uint32, np.uint32]]:
    """Odd factors and offsets of x -> a·x + b modulo 2^32, one pair for each row of each band."""
    numbers = _mix(np.arange(1, 2 * BANDS * BAND_ROWS + 1, dtype=np.uint64) + np.uint64(_SEED))
    halves = (numbers >> np.uint64(32)).astype(np.uint32)
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return [(factor | np.uint32(1), offset) for factor, offset in pairs]


def _candidates(keys: _U64, ours: _Index, theirs: _Index) -> list[tuple[int, int]]:
    """Pairs that share a band, each held-out text's pairs with most shared bands first."""
    if not (ours.size and theirs.size):
        return []
    found = [_matches(keys[ours, band], keys[theirs, band]) for band in range(BANDS)]
    pairs, shared = np.unique(np.concatenate(found), return_counts=True)
    one, other = ours[pairs >> 32], theirs[pairs & 0xFFFFFFFF]
    order = np.lexsort((other, -shared, one))
    return list(zip(one[order].tolist(), other[order].tolist(), strict=True))


def _matches(ours: _U64, theirs: _U64) -> _Index:
    """Pairs with equal keys, each as one number: place in ours · 2^32 + place in theirs."""
    order = np.argsort(theirs, kind="stable")
    ranked = theirs[order]
    left = np.searchsorted(ranked, ours, "left")
    sizes = np.minimum(np.searchsorted(ranked, ours, "right") - left, MAX_BUCKET)
    rows = np.repeat(np.arange(ours.size, dtype=np.int64), sizes)
    places = (
        np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(left, sizes)
    )
    pairs: _Index = (rows << 32) + order[places]
    return pairs
