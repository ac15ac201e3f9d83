"""What of the held-out rows is also in the training rows, level by level.

A held-out row is *touched* by a row with another role that comes before its own in train, validation, test:
a validation row by a training row, a test row by either. Levels, from `identity`:

- `exact`, `normalised`: input and answer are the same text;
- `annotation`: the normalised input is the same, the answer another;
- `masked`: the input is the same once words with digits are gone (and at least three words are left);
- `near_duplicate`: inputs share at least half of their five-word runs;
- `edited`: inputs of five words and more share at least 0.6 of their two-word runs, of short ones half.

The last four look at the input alone: a question that was seen is seen, whatever its answer was. Entities
are counted apart: held-out rows whose value of a field also occurs before. Rows of the past, those that earlier
runs and protocols read, touch every held-out row in the same ways and are counted apart too. A paraphrase in
other words and a translation are not seen by any level.

`leakage/1` is the method without the level `edited`: audits that were recorded under it are derived under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from verifiers.data.identity import (
    MIN_MASKED_WORDS,
    Row,
    masked,
    normalised,
    row_digest,
    row_text,
    values,
    words,
)
from verifiers.data.near_duplicates import (
    EDITED_THRESHOLD,
    FIVES,
    PAIRS,
    SHINGLE_WORDS,
    SHORT_RUNS,
    THRESHOLD,
    Measure,
    Scheme,
    fingerprints_of,
    first_alike,
)
from verifiers.data.splits import ROLES
from verifiers.data.word_runs import Words

METHOD = "leakage/2"
LEVELS = ("exact", "normalised", "masked", "near_duplicate", "edited", "annotation")
EXCERPT_CHARS = 160

_TEXT_LEVELS = ("exact", "normalised", "masked", "annotation")
_SCHEMES: dict[str, Scheme] = {"leakage/1": FIVES, METHOD: PAIRS}
METHODS = tuple(_SCHEMES)


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
class PastRow:
    """A row that something in the ledger has read before, and as what: train, validation or test."""

    role: str
    row: Row


@dataclass(frozen=True)
class Audit:
    """The counts of held-out rows touched, and one finding for each of them.

    `history` counts by role and level, as `train/exact`, what rows of the past touch; None where no past was given.
    """

    levels: dict[str, int]
    entities: dict[str, int]
    findings: list[Finding]
    settings: dict[str, int | str | list[str]]
    history: dict[str, int] | None = None

    @property
    def pairs(self) -> int:
        """Distinct pairs of rows among the findings."""
        return len({(finding.held_out, finding.other) for finding in self.findings})

    @property
    def verdict(self) -> str:
        """`clean` where no held-out row is touched at any level or through any entity."""
        return "findings" if self.findings else "clean"


class _Prepared(NamedTuple):
    """A row with the texts that the levels compare; rows of a lower `rank` touch those of a higher one."""

    rank: int
    role: str
    digest: str
    row: Row
    exact: str
    normal_input: str
    normal_answer: str


def audit(
    rows: Iterable[Row],
    role_of: Mapping[str, str],
    entities: Sequence[str],
    *,
    past: Iterable[PastRow] | None = None,
    method: str = METHOD,
) -> Audit:
    """Look for held-out rows in what comes before them.

    Args:
        rows: the data set's rows.
        role_of: role by row digest, as a split assigns it.
        entities: fields whose values name people, orders and the like (`entity_fields` finds them).
        past: rows that were read before; None to leave the past out.
        method: one of `METHODS`.

    Raises:
        KeyError: a row has no role (a programming error: check the assignment first).
    """
    prepared = sorted(
        (_of_split(row, role_of) for row in rows), key=lambda row: (row.rank, row.digest)
    )
    findings = list(_touching(prepared, entities, method))
    counts = Counter(finding.level for finding in findings)
    history = None
    if past is not None:
        before = list(_from_past(prepared, past, entities, method))
        findings += before
        history = _by_role(before)
    levels = LEVELS if method == METHOD else tuple(name for name in LEVELS if name != "edited")
    return Audit(
        levels={level: counts[level] for level in levels},
        entities={name: counts[f"entity:{name}"] for name in entities},
        findings=findings,
        settings=_settings(entities, _SCHEMES[method]),
        history=history,
    )


def entity_fields(rows: Iterable[Row]) -> list[str]:
    """Fields that name entities: those ending in `_id`, in the row or in its metadata, in name order."""
    shapes = {(tuple(row), tuple(row.get("metadata") or ())) for row in rows}
    names: set[str] = set()
    for fields, metadata in shapes:
        names.update(name for name in fields if name.endswith("_id"))
        names.update(f"metadata.{name}" for name in metadata if str(name).endswith("_id"))
    return sorted(names)


def _of_split(row: Row, role_of: Mapping[str, str]) -> _Prepared:
    digest = row_digest(row)
    role = role_of[digest]
    return _prepare(row, digest, role, ROLES.index(role))


def _prepare(row: Row, digest: str, role: str, rank: int) -> _Prepared:
    text = row_text(row)
    return _Prepared(
        rank,
        role,
        digest,
        row,
        f"{text.input}\0{text.answer}",
        normalised(text.input),
        normalised(text.answer),
    )


def _from_past(
    prepared: Sequence[_Prepared], past: Iterable[PastRow], entities: Sequence[str], method: str
) -> Iterator[Finding]:
    """What each role of the past touches of all held-out rows, whatever their role is now."""
    held_out = [row._replace(rank=1) for row in prepared if row.rank > 0]
    by_role: dict[str, dict[str, Row]] = {role: {} for role in ROLES}
    for item in past:
        by_role[item.role].setdefault(row_digest(item.row), item.row)
    for role, rows in by_role.items():
        if rows and held_out:
            before = [
                _prepare(row, digest, f"past {role}", 0) for digest, row in sorted(rows.items())
            ]
            yield from _touching([*before, *held_out], entities, method)


def _by_role(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(
        f"{finding.other_role.removeprefix('past ')}/{finding.level}" for finding in findings
    )
    return dict(sorted(counts.items()))


def _touching(
    prepared: Sequence[_Prepared], entities: Sequence[str], method: str
) -> Iterator[Finding]:
    """Findings among rows that come in the order of their ranks."""
    yield from _equal_texts(prepared)
    yield from _alike(prepared, method)
    yield from _entities(prepared, entities)


def _equal_texts(prepared: Sequence[_Prepared]) -> Iterator[Finding]:
    """Rows come in the order of their ranks, so whatever was met first is what touches."""
    exact: dict[str, _Prepared] = {}
    hidden: dict[str, _Prepared] = {}
    inputs: dict[str, _Prepared] = {}
    answers: dict[str, list[_Prepared]] = {}
    for row in prepared:
        first = inputs.setdefault(row.normal_input, row)
        same, differs = row, row
        if first is not row:
            same, differs = _same_input(row, answers.setdefault(row.normal_input, [first]))
        hides = masked(row.normal_input)
        template = (
            hidden.setdefault(hides, row) if hides.count(" ") + 1 >= MIN_MASKED_WORDS else row
        )
        met = (exact.setdefault(row.exact, row), same, template, differs)
        for level, other in zip(_TEXT_LEVELS, met, strict=True):
            if other.rank != row.rank:
                yield _finding(level, row, other, _excerpt(level, row, other))


def _same_input(row: _Prepared, known: list[_Prepared]) -> tuple[_Prepared, _Prepared]:
    """Of the rows that ask the same, the first with this answer and the first of another rank with another."""
    same = next((other for other in known if other.normal_answer == row.normal_answer), None)
    differs = (other for other in known if other is not same and other.rank != row.rank)
    found = same or row, next(differs, row)
    if same is None:
        known.append(row)
    return found


def _excerpt(level: str, row: _Prepared, other: _Prepared) -> str:
    if level == "annotation":
        return f"{other.normal_answer} | {row.normal_answer}"
    return row.normal_input


def _alike(prepared: Sequence[_Prepared], method: str) -> Iterator[Finding]:
    """Rows come in the order of the ranks, so the rows before a rank are a prefix."""
    scheme = _SCHEMES[method]
    numbered = Words.of(words(row.normal_input) for row in prepared)
    measures = {"near_duplicate": Measure(numbered.runs(SHINGLE_WORDS), THRESHOLD)}
    if method == METHOD:
        measures["edited"] = Measure(numbered.runs(scheme.run_words), EDITED_THRESHOLD)
    hashed = measures.get("edited", measures["near_duplicate"]).runs
    prints = fingerprints_of(hashed, scheme)
    for rank in sorted({row.rank for row in prepared})[1:] or ():
        ours = [index for index, row in enumerate(prepared) if row.rank == rank]
        found = first_alike(prints, measures, ours, range(ours[0]))
        for level, pairs in found.items():
            for index, (other, similarity) in sorted(pairs.items()):
                detail = f"jaccard {similarity:.3f}: {prepared[index].normal_input}"
                yield _finding(level, prepared[index], prepared[other], detail)


def _entities(prepared: Sequence[_Prepared], names: Sequence[str]) -> Iterator[Finding]:
    for name in names:
        first: dict[str, _Prepared] = {}
        for row in prepared:
            own = values(row.row, name)
            for value in own:
                other = first.get(value)
                if other is not None and other.rank != row.rank:
                    yield _finding(f"entity:{name}", row, other, value)
                    break
            for value in own:
                first.setdefault(value, row)


def _finding(level: str, row: _Prepared, other: _Prepared, detail: str) -> Finding:
    return Finding(level, row.digest, row.role, other.digest, other.role, detail[:EXCERPT_CHARS])


def _settings(entities: Sequence[str], scheme: Scheme) -> dict[str, Any]:
    edits = {
        "edited_short_runs": SHORT_RUNS,
        "edited_threshold": str(EDITED_THRESHOLD),
        "edited_words": scheme.run_words,
    }
    return {
        "bands": scheme.bands,
        "band_rows": scheme.band_rows,
        "entities": list(entities),
        "min_masked_words": MIN_MASKED_WORDS,
        "shingle_words": SHINGLE_WORDS,
        "threshold": str(THRESHOLD),
        **({} if scheme is FIVES else edits),
    }
