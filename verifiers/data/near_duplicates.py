"""Pairs of texts that share much of their word runs: found by MinHash, confirmed exactly.

Candidates come from MinHash with banding (Broder 1997; Leskovec, Rajaraman, Ullman, *Mining of Massive
Datasets*, chapter 3): b bands of r rows find a pair of Jaccard similarity s with probability
1 - (1 - s^r)^b. Each candidate is then compared run by run, so a reported pair is never a guess. Written out
in numpy, because whoever verifies an audit years later may not depend on a library's choice of hash.

Two schemes. `FIVES` hashes five-word runs in 42 bands of 3: a pair of similarity 0.5 is found with probability
0.996, of 0.6 with 0.99997. `PAIRS` hashes two-word runs in 42 bands of 4: 0.93 at 0.5, 0.997 at 0.6, 0.99999 at 0.7.
A changed word costs five five-word runs and two two-word runs, so edited texts are looked for by the second; texts
that share half of their five-word runs share well over half of their two-word runs and are found by it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from verifiers.data.word_runs import U64, Index, WordRuns, Words, mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SHINGLE_WORDS = 5
THRESHOLD = 0.5
EDITED_THRESHOLD = 0.6
SHORT_RUNS = 15
MAX_BUCKET = 200
MAX_CONFIRMED = 256

_SEED = 0x5EED
_CHUNK_RUNS = 1 << 18
_CHUNK_TEXTS = 4096
_FILTER_BITS = np.uint64((1 << 20) - 1)

_U32 = NDArray[np.uint32]
Found = dict[int, tuple[int, float]]
"""Held-out index -> (earlier index, similarity)."""


@dataclass(frozen=True)
class Scheme:
    """Which runs are hashed, and into how many bands of how many rows."""

    run_words: int
    bands: int
    band_rows: int


FIVES = Scheme(run_words=SHINGLE_WORDS, bands=42, band_rows=3)
PAIRS = Scheme(run_words=2, bands=42, band_rows=4)


@dataclass(frozen=True)
class Measure:
    """Runs that are compared, and the share that two texts must have in common to be alike.

    Of a text with fewer than `SHORT_RUNS` runs half is enough: a changed word costs it more.
    """

    runs: WordRuns
    threshold: float

    def similarity(self, one: int, other: int) -> float | None:
        """The pair's Jaccard similarity, or None where it is below the threshold."""
        found = self.runs.jaccard(one, other)
        if found >= self.threshold:
            return found
        short = min(self.runs.count(one), self.runs.count(other)) < SHORT_RUNS
        return found if short and found >= THRESHOLD else None


@dataclass(frozen=True)
class Fingerprints:
    """Texts as runs and band keys.

    `keys` has shape (bands, texts); the keys of a text without a run mean nothing.
    """

    runs: WordRuns
    keys: U64

    def jaccard(self, one: int, other: int) -> float:
        """The share of common runs in all runs of two texts; 0 where neither has one."""
        return self.runs.jaccard(one, other)


def fingerprints(texts: Sequence[list[str]], scheme: Scheme = FIVES) -> Fingerprints:
    """Fingerprints of texts, each given as a list of words."""
    return fingerprints_of(Words.of(texts).runs(scheme.run_words), scheme)


def fingerprints_of(runs: WordRuns, scheme: Scheme) -> Fingerprints:
    """Fingerprints of texts given as their runs."""
    return Fingerprints(runs, _band_keys(runs, scheme))


def first_near_duplicates(
    prints: Fingerprints, held_out: Iterable[int], before: Iterable[int]
) -> Found:
    """For each held-out text that has one: a similar earlier text and the pair's Jaccard similarity."""
    return first_alike(prints, {"": Measure(prints.runs, THRESHOLD)}, held_out, before)[""]


def first_alike(
    prints: Fingerprints,
    measures: Mapping[str, Measure],
    held_out: Iterable[int],
    before: Iterable[int],
) -> dict[str, Found]:
    """For each measure and each held-out text: an earlier text that is alike by the measure.

    Texts without a run by every measure are left out. Among a text's candidates the 256 that share most bands
    are compared; a bucket with more than 200 earlier texts gives its first 200.

    Args:
        prints: fingerprints of all texts, by which candidates are found.
        measures: by name.
        held_out: indices of the texts to look for.
        before: indices of the texts to look in.
    """
    found: dict[str, Found] = {name: {} for name in measures}
    ours, theirs = (_measurable(measures, chosen) for chosen in (held_out, before))
    for first in range(0, ours.size, _CHUNK_TEXTS):
        part = ours[first : first + _CHUNK_TEXTS]
        for one, others in _candidates(prints.keys, part, theirs):
            _confirm(measures, one, others[:MAX_CONFIRMED], found)
    return found


def alike_pairs(
    prints: Fingerprints, measures: Mapping[str, Measure], chosen: Iterable[int]
) -> Iterator[tuple[int, int]]:
    """Pairs of texts that are alike by some measure: enough of them to join all.

    A pair whose two texts are joined already, by pairs given before, is not compared.
    """
    texts = _measurable(measures, chosen)
    root = list(range(prints.runs.starts.size))
    for first in range(0, texts.size, _CHUNK_TEXTS):
        part = texts[first : first + _CHUNK_TEXTS]
        for one, others in _candidates(prints.keys, part, texts[: first + part.size]):
            for other in others:
                low, high = sorted((_root(root, one), _root(root, other)))
                if low != high and _alike(measures, one, other):
                    root[high] = low
                    yield one, other


def _root(root: list[int], text: int) -> int:
    while root[text] != text:
        root[text] = root[root[text]]
        text = root[text]
    return text


def _alike(measures: Mapping[str, Measure], one: int, other: int) -> bool:
    return any(measure.similarity(one, other) is not None for measure in measures.values())


def _confirm(
    measures: Mapping[str, Measure], one: int, others: list[int], found: dict[str, Found]
) -> None:
    for name, measure in measures.items():
        for other in others:
            similarity = measure.similarity(one, other)
            if similarity is not None:
                found[name][one] = (other, similarity)
                break


def _measurable(measures: Mapping[str, Measure], chosen: Iterable[int]) -> Index:
    index = np.fromiter(chosen, np.int64)
    for measure in measures.values():
        index = measure.runs.having(index)
    return index


def _band_keys(runs: WordRuns, scheme: Scheme) -> U64:
    """One 64-bit key for each band and text, computed over a bounded number of runs at a time."""
    starts = runs.starts
    keys = np.zeros((scheme.bands, starts.size - 1), np.uint64)
    full = np.flatnonzero(np.diff(starts))
    folded = (runs.numbers ^ (runs.numbers >> np.uint64(32))).astype(np.uint32)
    first = 0
    while first < full.size:
        limit = starts[full[first]] + _CHUNK_RUNS
        last = max(int(np.searchsorted(starts[full + 1], limit, "right")), first + 1)
        chosen = full[first:last]
        begin, end = starts[chosen[0]], starts[chosen[-1] + 1]
        keys[:, chosen] = _keys_of(folded[begin:end], starts[chosen] - begin, scheme)
        first = last
    return keys


def _keys_of(folded: _U32, starts: Index, scheme: Scheme) -> U64:
    keys = np.zeros((scheme.bands, starts.size), np.uint64)
    spread = np.empty_like(folded)
    for row, (factor, offset) in enumerate(_permutations(scheme)):
        np.multiply(folded, factor, out=spread)
        np.add(spread, offset, out=spread)
        lowest = np.minimum.reduceat(spread, starts).astype(np.uint64)
        band = row // scheme.band_rows
        keys[band] = mix(keys[band] ^ lowest)
    return keys


def _permutations(scheme: Scheme) -> list[tuple[np.uint32, np.uint32]]:
    """Odd factors and offsets of x -> a·x + b modulo 2^32, one pair for each row of each band."""
    count = scheme.bands * scheme.band_rows
    numbers = mix(np.arange(1, 2 * count + 1, dtype=np.uint64) + np.uint64(_SEED))
    halves = (numbers >> np.uint64(32)).astype(np.uint32)
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return [(factor | np.uint32(1), offset) for factor, offset in pairs]


def _candidates(keys: U64, ours: Index, theirs: Index) -> Iterator[tuple[int, list[int]]]:
    """Each of our texts that shares a band with some of theirs, those that share most bands first."""
    if not (ours.size and theirs.size):
        return
    found = [_matches(band[ours], band[theirs]) for band in keys]
    pairs, shared = np.unique(np.concatenate(found), return_counts=True)
    if not pairs.size:
        return
    one, other = ours[pairs >> 32], theirs[pairs & 0xFFFFFFFF]
    order = np.lexsort((other, -shared, one))
    one, other = one[order], other[order]
    begins = np.flatnonzero(np.diff(one, prepend=-1))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), one.size], strict=True):
        yield int(one[begin]), other[begin:end].tolist()


def _matches(ours: U64, theirs: U64) -> Index:
    """Pairs with equal keys, each as one number: place in ours · 2^32 + place in theirs.

    Most keys occur on one side only: a table of their lowest bits leaves few to sort.
    """
    rows = np.flatnonzero(_present(theirs)[ours & _FILTER_BITS])
    places = np.flatnonzero(_present(ours)[theirs & _FILTER_BITS])
    order = places[np.argsort(theirs[places], kind="stable")]
    ranked = theirs[order]
    wanted = ours[rows]
    left = np.searchsorted(ranked, wanted, "left")
    sizes = np.minimum(np.searchsorted(ranked, wanted, "right") - left, MAX_BUCKET)
    repeated = np.repeat(rows, sizes)
    within = np.arange(repeated.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    pairs: Index = (repeated << 32) + order[within + np.repeat(left, sizes)]
    return pairs


def _present(keys: U64) -> NDArray[np.bool_]:
    table = np.zeros(int(_FILTER_BITS) + 1, np.bool_)
    table[keys & _FILTER_BITS] = True
    return table
