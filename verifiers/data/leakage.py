"""What of the held-out rows is also in the training rows, level by level.

A held-out row is *touched* by a row with another role that comes before its own in train, validation, test:
a validation row by a training row, a test row by either. Levels, from `identity`:

- `exact`, `normalised`: input and answer are the same text;
- `annotation`: the normalised input is the same, the answer another;
- `masked`: the input is the same once words with digits are gone (and at least three words are left);
- `near_duplicate`: inputs share at least half of their five-word runs.

The last three look at the input alone: a question that was seen is seen, whatever its answer was. Entities
are counted apart: held-out rows whose value of a field also occurs before. A paraphrase in other words and
a translation are not seen by any level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.data.identity import Row, masked, normalised, row_digest, row_text, words
from verifiers.data.near_duplicates import (
    BAND_ROWS,
    BANDS,
    SHINGLE_WORDS,
    THRESHOLD,
    fingerprints,
    first_near_duplicates,
)
from verifiers.data.splits import ROLES, values

METHOD = "leakage/1"
LEVELS = ("exact", "normalised", "masked", "near_duplicate", "annotation")
MIN_MASKED_WORDS = 3
EXCERPT_CHARS = 160


@dataclass(frozen=True)
class Finding:
    """One held-out row and the earlier row that touches it, at one level or in one entity field."""

    level: str
    held_out: str
    held_out_role: str
    other: str
    other_role: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """The finding as one line of a findings blob."""
        return dict(vars(self))


@dataclass(frozen=True)
class Audit:
    """The counts of held-out rows touched, and one finding for each of them."""

    levels: dict[str, int]
    entities: dict[str, int]
    findings: list[Finding]
    settings: dict[str, int | str | list[str]]

    @property
    def pairs(self) -> int:
        """Distinct pairs of rows among the findings."""
        return len({(finding.held_out, finding.other) for finding in self.findings})

    @property
    def verdict(self) -> str:
        """`clean` where no held-out row is touched at any level or through any entity."""
        return "findings" if self.findings else "clean"


@dataclass(frozen=True)
class _Prepared:
    """A row with the texts that the levels compare."""

    digest: str
    role: str
    row: Row
    exact: str
    normal_input: str
    normal_answer: str


def audit(rows: Iterable[Row], role_of: Mapping[str, str], entities: Sequence[str]) -> Audit:
    """Look for held-out rows in what comes before them.

    Args:
        rows: the data set's rows.
        role_of: role by row digest, as a split assigns it.
        entities: fields whose values name people, orders and the like (`entity_fields` finds them).

    Raises:
        KeyError: a row has no role (a programming error: check the assignment first).
    """
    prepared = sorted(
        (_prepare(row, role_of) for row in rows),
        key=lambda row: (ROLES.index(row.role), row.digest),
    )
    findings = [*_equal_texts(prepared), *_near(prepared), *_entities(prepared, entities)]
    counts = Counter(finding.level for finding in findings)
    return Audit(
        levels={level: counts[level] for level in LEVELS},
        entities={name: counts[f"entity:{name}"] for name in entities},
        findings=findings,
        settings=_settings(entities),
    )


def entity_fields(rows: Iterable[Row]) -> list[str]:
    """Fields that name entities: those ending in `_id`, in the row or in its metadata, in name order."""
    names: set[str] = set()
    for row in rows:
        names.update(name for name in row if name.endswith("_id"))
        metadata = row.get("metadata")
        if isinstance(metadata, Mapping):
            names.update(f"metadata.{name}" for name in metadata if str(name).endswith("_id"))
    return sorted(names)


def _prepare(row: Row, role_of: Mapping[str, str]) -> _Prepared:
    digest = row_digest(row)
    text = row_text(row)
    exact = f"{text.input}\0{text.answer}"
    return _Prepared(
        digest, role_of[digest], row, exact, normalised(text.input), normalised(text.answer)
    )


def _keys(row: _Prepared) -> Iterator[tuple[str, str]]:
    yield "exact", row.exact
    yield "normalised", f"{row.normal_input}\0{row.normal_answer}"
    hidden = masked(row.normal_input)
    if hidden.count(" ") + 1 >= MIN_MASKED_WORDS:
        yield "masked", hidden


def _equal_texts(prepared: Sequence[_Prepared]) -> Iterator[Finding]:
    """Rows come in the order train, validation, test, so whatever was met first is what touches."""
    first: dict[tuple[str, str], _Prepared] = {}
    answers: dict[str, dict[str, _Prepared]] = {}
    for row in prepared:
        for level, key in _keys(row):
            other = first.setdefault((level, key), row)
            if other.role != row.role:
                yield _finding(level, row, other, row.normal_input)
        known = answers.setdefault(row.normal_input, {})
        for answer, other in known.items():
            if answer != row.normal_answer and other.role != row.role:
                yield _finding(
                    "annotation", row, other, f"{other.normal_answer} | {row.normal_answer}"
                )
                break
        known.setdefault(row.normal_answer, row)


def _near(prepared: Sequence[_Prepared]) -> Iterator[Finding]:
    """Rows come in the order of the roles, so the rows before a role are a prefix."""
    prints = fingerprints([words(row.normal_input) for row in prepared])
    for role in ROLES[1:]:
        ours = [index for index, row in enumerate(prepared) if row.role == role]
        found = first_near_duplicates(prints, ours, range(ours[0] if ours else 0))
        for index, (other, similarity) in sorted(found.items()):
            detail = f"jaccard {similarity:.3f}: {prepared[index].normal_input}"
            yield _finding("near_duplicate", prepared[index], prepared[other], detail)


def _entities(prepared: Sequence[_Prepared], names: Sequence[str]) -> Iterator[Finding]:
    for name in names:
        first: dict[str, _Prepared] = {}
        for row in prepared:
            shared = [value for value in values(row.row, name) if value in first]
            touching = [value for value in shared if first[value].role != row.role]
            if touching:
                yield _finding(f"entity:{name}", row, first[touching[0]], touching[0])
            for value in values(row.row, name):
                first.setdefault(value, row)


def _finding(level: str, row: _Prepared, other: _Prepared, detail: str) -> Finding:
    return Finding(level, row.digest, row.role, other.digest, other.role, detail[:EXCERPT_CHARS])


def _settings(entities: Sequence[str]) -> dict[str, Any]:
    return {
        "bands": BANDS,
        "band_rows": BAND_ROWS,
        "entities": list(entities),
        "min_masked_words": MIN_MASKED_WORDS,
        "shingle_words": SHINGLE_WORDS,
        "threshold": str(THRESHOLD),
    }
