"""Rows that belong together: equal values of fields, and texts that are the same or alike, transitively.

A grouping field is a field of the row, `metadata.x`, or one of three that are made from its text:

- `text:request`: the customer's first request, normalised;
- `text:masked`: the whole input without words with digits, where three words or more are left;
- `text:near`: inputs that an audit would call near duplicates or edited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ledger.errors import UsageError
from verifiers.data.identity import (
    MIN_MASKED_WORDS,
    Row,
    first_request,
    masked,
    normalised,
    row_digest,
    row_text,
    values,
    words,
)
from verifiers.data.near_duplicates import (
    EDITED_THRESHOLD,
    PAIRS,
    SHINGLE_WORDS,
    THRESHOLD,
    Measure,
    alike_pairs,
    fingerprints_of,
)
from verifiers.data.word_runs import Words

NEAR = "text:near"


def group_rows(rows: Sequence[Row], by: Sequence[str]) -> list[list[str]]:
    """Digests of the rows, grouped transitively by shared values; groups and members in digest order.

    Raises:
        UsageError: `SPLIT_SETTINGS`, no row has a value in one of the fields.
    """
    digests = [row_digest(row) for row in rows]
    parent = {digest: digest for digest in digests}
    owner: dict[tuple[str, str], str] = {}
    met: set[str] = set()
    for name in (name for name in by if name != NEAR):
        read = _READERS.get(name, values)
        for row, digest in zip(rows, digests, strict=True):
            for value in read(row, name):
                met.add(name)
                first = owner.setdefault((name, value), digest)
                if first != digest:
                    _join(parent, first, digest)
    unknown = sorted(set(by) - met - {NEAR})
    if unknown:
        raise UsageError("SPLIT_SETTINGS", f"no row has a value in {unknown[0]!r}", field="by")
    if NEAR in by:
        for one, other in _near(rows, digests):
            _join(parent, one, other)
    groups: dict[str, list[str]] = {}
    for digest in sorted(parent):
        groups.setdefault(_root(parent, digest), []).append(digest)
    return sorted(groups.values())


def _request(row: Row, _: str) -> tuple[str, ...]:
    text = normalised(first_request(row))
    return (text,) if text else ()


def _masked(row: Row, _: str) -> tuple[str, ...]:
    text = masked(normalised(row_text(row).input))
    return (text,) if text.count(" ") + 1 >= MIN_MASKED_WORDS else ()


_READERS: dict[str, Callable[[Row, str], tuple[str, ...]]] = {
    "text:request": _request,
    "text:masked": _masked,
}


def _near(rows: Sequence[Row], digests: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of rows whose inputs are alike; rows are taken in the order of their digests, so their own makes no difference."""
    order = sorted(range(len(rows)), key=digests.__getitem__)
    texts = [normalised(row_text(rows[index]).input) for index in order]
    numbered = Words.of(map(words, texts))
    pairs = numbered.runs(PAIRS.run_words)
    measures = {
        "near_duplicate": Measure(numbered.runs(SHINGLE_WORDS), THRESHOLD),
        "edited": Measure(pairs, EDITED_THRESHOLD),
    }
    prints = fingerprints_of(pairs, PAIRS)
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        same = first.setdefault(text, place)
        yield digests[order[same]], digests[order[place]]
    for one, other in alike_pairs(prints, measures, range(len(rows))):
        yield digests[order[one]], digests[order[other]]


def _root(parent: dict[str, str], name: str) -> str:
    while parent[name] != name:
        parent[name] = parent[parent[name]]
        name = parent[name]
    return name


def _join(parent: dict[str, str], one: str, other: str) -> None:
    low, high = sorted((_root(parent, one), _root(parent, other)))
    parent[high] = low
