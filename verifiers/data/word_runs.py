"""Word runs: texts as sets of so many words in a row, and how much two texts share of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_SETS = 50_000

U64 = NDArray[np.uint64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class WordRuns:
    """All texts' runs of words one after the other, each run as a number.

    Text i has the runs from `starts[i]` to `starts[i + 1]`.
    """

    numbers: U64
    starts: Index
    _sets: dict[int, frozenset[int]] = field(default_factory=dict, repr=False, compare=False)

    def jaccard(self, one: int, other: int) -> float:
        """The share of common runs in all runs of two texts; 0 where neither has one."""
        first, second = self._distinct(one), self._distinct(other)
        common = len(first & second)
        union = len(first) + len(second) - common
        return common / union if union else 0.0

    def count(self, text: int) -> int:
        """How many runs a text has."""
        return int(self.starts[text + 1] - self.starts[text])

    def having(self, chosen: Iterable[int]) -> Index:
        """Those of the chosen texts that have at least one run."""
        index = np.fromiter(chosen, np.int64)
        return index[self.starts[index + 1] > self.starts[index]]

    def _distinct(self, text: int) -> frozenset[int]:
        found = self._sets.get(text)
        if found is None:
            if len(self._sets) >= MAX_SETS:
                self._sets.clear()
            found = frozenset(self.numbers[self.starts[text] : self.starts[text + 1]].tolist())
            self._sets[text] = found
        return found


@dataclass(frozen=True)
class Words:
    """Texts as numbers of words: equal words have equal numbers, given by first appearance from 1."""

    numbers: U64
    lengths: Index

    @classmethod
    def of(cls, texts: Iterable[list[str]]) -> Words:
        """The words of texts, each given as a list; no text is kept."""
        vocabulary: defaultdict[str, int] = defaultdict(count(1).__next__)
        lengths: list[int] = []

        def counted() -> Iterator[list[str]]:
            for text in texts:
                lengths.append(len(text))
                yield text

        flat = map(vocabulary.__getitem__, chain.from_iterable(counted()))
        return cls(np.fromiter(flat, np.uint64), np.array(lengths, np.int64))

    def runs(self, size: int) -> WordRuns:
        """Every run of so many words; none crosses from one text to the next."""
        runs = np.zeros(max(self.numbers.size - size + 1, 0), np.uint64)
        for place in range(size):
            runs = mix(runs ^ self.numbers[place : place + runs.size])
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)[: runs.size]
        within = np.arange(runs.size) + size <= ends
        starts = np.concatenate([[0], np.cumsum(np.maximum(self.lengths - size + 1, 0))])
        return WordRuns(runs[within], starts.astype(np.int64))


def mix(value: U64) -> U64:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
