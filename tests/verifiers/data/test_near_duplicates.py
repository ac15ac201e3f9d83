"""MinHash candidates, confirmed exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.data.near_duplicates import (
    EDITED_THRESHOLD,
    Measure,
    fingerprints,
    first_near_duplicates,
)
from verifiers.data.word_runs import Words

WORDS = [f"w{number}" for number in range(2000)]


def runs(text):
    """The five-word runs of a text, the plain way."""
    return {tuple(text[place : place + 5]) for place in range(len(text) - 4)}


def similarity(one, other):
    """The Jaccard similarity of two texts, the plain way."""
    union = runs(one) | runs(other)
    return len(runs(one) & runs(other)) / len(union) if union else 0.0


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=12), min_size=2, max_size=8))
def test_similarity_is_the_set_definition(texts):
    """The similarity of fingerprints is that of the sets of runs, short and empty texts included."""
    prints = fingerprints(texts)
    for one in range(len(texts)):
        for other in range(len(texts)):
            assert prints.jaccard(one, other) == pytest.approx(similarity(texts[one], texts[other]))


def test_runs_never_cross_from_one_text_to_the_next():
    """Two texts that continue each other share nothing with the text they would make together."""
    prints = fingerprints([["a", "b", "c"], ["d", "e", "f"], list("abcdef")])
    assert prints.runs.having(range(3)).tolist() == [2]
    assert prints.jaccard(0, 2) == 0.0


def planted(generator, share):
    """A text of forty words, and another that shares about that share of its runs."""
    text = [generator.choice(WORDS) for _ in range(40)]
    kept = round(40 * 2 * share / (1 + share))
    other = text[:kept] + [generator.choice(WORDS) for _ in range(40 - kept)]
    return text, other


def test_planted_pairs_are_found_and_only_those():
    """Of 300 planted pairs of similarity 0.5 and more, 99 % are found; what is found is always one."""
    generator = random.Random(11)
    pairs = [planted(generator, generator.uniform(0.35, 1.0)) for _ in range(450)]
    others = [[generator.choice(WORDS) for _ in range(40)] for _ in range(2000)]
    texts = [one for one, _ in pairs] + [other for _, other in pairs] + others
    prints = fingerprints(texts)
    found = first_near_duplicates(prints, range(450), range(450, len(texts)))
    true = [number for number, (one, other) in enumerate(pairs) if similarity(one, other) >= 0.5]
    assert len(true) >= 300
    assert set(found) <= set(true)
    assert len(found) >= 0.99 * len(true)
    for number, (other, value) in found.items():
        assert value == pytest.approx(similarity(texts[number], texts[other]))
        assert other == number + 450


def test_common_phrases_make_no_pair():
    """Texts that share a third of their runs are candidates often and pairs never."""
    generator = random.Random(12)
    phrase = [generator.choice(WORDS) for _ in range(20)]
    texts = [phrase + [generator.choice(WORDS) for _ in range(24)] for _ in range(300)]
    assert first_near_duplicates(fingerprints(texts), range(50), range(50, 300)) == {}


def test_nothing_to_compare():
    """No text, no earlier text and texts too short give no pair."""
    assert first_near_duplicates(fingerprints([]), [], []) == {}
    assert first_near_duplicates(fingerprints([list("abcdefg")]), [0], []) == {}
    assert first_near_duplicates(fingerprints([["a"], ["a"]]), [0], [1]) == {}


def test_fingerprints_do_not_depend_on_what_stands_beside():
    """Candidates are found the same whether a text is fingerprinted among few or among very many."""
    generator = random.Random(13)
    one, other = planted(generator, 0.7)
    filler = [[generator.choice(WORDS) for _ in range(40)] for _ in range(9000)]
    texts = [*filler, one, other]
    assert sum(len(runs(text)) for text in texts) > 1 << 18
    found = first_near_duplicates(fingerprints(texts), [9000], [*range(9000), 9001])
    assert list(found) == [9000]
    assert found[9000][0] == 9001


@pytest.mark.parametrize(
    ("length", "changed", "alike"),
    [(8, 1, True), (15, 2, True), (16, 2, False), (40, 4, True), (40, 5, False), (8, 3, False)],
)
def test_short_texts_need_half_and_longer_ones_more(length, changed, alike):
    """Of two-word runs a text of fewer than fifteen needs half in common, a longer one six in ten."""
    text = WORDS[:length]
    other = [f"x{n}" if n % 3 == 1 and n < 3 * changed else word for n, word in enumerate(text)]
    pairs = Words.of([text, other]).runs(2)
    share = pairs.jaccard(0, 1)
    assert (share >= (0.5 if length <= 15 else 0.6)) is alike
    measure = Measure(pairs, EDITED_THRESHOLD)
    assert measure.similarity(0, 1) == (share if alike else None)


def test_golden_keys():
    """The band keys of one text are fixed: whoever verifies an old audit gets the same candidates."""
    keys = fingerprints([["please", "cancel", "my", "order", "right", "now"]]).keys
    assert keys.dtype == np.uint64
    assert [hex(int(key)) for key in keys[:2, 0]] == ["0x1555c27ad2cb32e3", "0xffccee0ea9ba7598"]
