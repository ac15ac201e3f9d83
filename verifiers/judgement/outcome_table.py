"""Tables of outcomes from elsewhere: each line checked, counts by seed and case. CSV or JSON lines, two forms.

Counted: `seed, case, family, baseline, candidate, rollouts`, where baseline and candidate are successes out of rollouts.
Single: `seed, arm, case, family, success`, a line for each answer; arm is baseline or candidate, success 0 or 1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger.canonical import loads
from ledger.errors import EvidenceError

COUNTED: Final = ("seed", "case", "family", "baseline", "candidate", "rollouts")
SINGLE: Final = ("seed", "arm", "case", "family", "success")
ARMS: Final = ("baseline", "candidate")
MAX_LINES: Final = 1_000_000
MAX_LINE_BYTES: Final = 65_536
MAX_COUNT: Final = 1_000_000
_TRUTH: Final = {"0": 0, "1": 1, "false": 0, "true": 1}


@dataclass(frozen=True)
class Cell:
    """One case of one training seed: successes of both arms out of as many rollouts each."""

    family: str
    baseline: int
    candidate: int
    rollouts: int

    @property
    def delta(self) -> int:
        """Successes of the candidate less those of the baseline."""
        return self.candidate - self.baseline


Table = Mapping[tuple[int, str], Cell]


def read_table(data: bytes, *, as_csv: bool) -> Table:
    """The cells of a table by seed and case.

    Raises:
        EvidenceError: `TABLE_MALFORMED`, with the line and the column; `TOO_LARGE`.
    """
    rows = _csv_rows(data) if as_csv else _json_rows(data)
    _, first = next(rows, (1, None))
    if first is None:
        raise _malformed(1, "the table has no line of outcomes", None)
    missing = {form: [name for name in form if name not in first] for form in (COUNTED, SINGLE)}
    form = SINGLE if "arm" in first else COUNTED
    if missing[form]:
        raise _malformed(1, f"column {missing[form][0]} is missing", missing[form][0])
    rows = _csv_rows(data) if as_csv else _json_rows(data)
    cells = _counted(rows) if form is COUNTED else _single(rows)
    _check_families(cells)
    return cells


def _csv_rows(data: bytes) -> Iterator[tuple[int, Mapping[str, Any]]]:
    lines = _lines(data)
    reader = csv.reader(lines, strict=True)
    try:
        heads = [name.strip() for name in next(reader, [])]
        if len(set(heads)) < len(heads):
            raise _malformed(1, "a column stands twice", None)
        for values in reader:
            if not values:
                continue
            if len(values) != len(heads):
                raise _malformed(
                    reader.line_num, f"{len(values)} values for {len(heads)} columns", None
                )
            yield reader.line_num, dict(zip(heads, values, strict=True))
    except csv.Error as error:
        raise _malformed(reader.line_num, f"this is not CSV: {error}", None) from None


def _json_rows(data: bytes) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(_lines(data), 1):
        if not line.strip():
            continue
        try:
            value = loads(line.encode())
        except EvidenceError as error:
            raise _malformed(number, f"this is not JSON: {error.message}", None) from None
        if not isinstance(value, dict):
            raise _malformed(number, "this is no object", None)
        yield number, value


def _lines(data: bytes) -> list[str]:
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise _malformed(1, "the table is not UTF-8", None) from None
    if len(lines) > MAX_LINES:
        raise EvidenceError("TOO_LARGE", f"the table has more than {MAX_LINES} lines")
    if any(len(line) > MAX_LINE_BYTES for line in lines):
        raise EvidenceError("TOO_LARGE", f"a line has more than {MAX_LINE_BYTES} characters")
    return lines


def _counted(rows: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[tuple[int, str], Cell]:
    cells: dict[tuple[int, str], Cell] = {}
    for number, row in rows:
        key = _count(number, row, "seed"), _text(number, row, "case")
        if key in cells:
            raise _malformed(number, f"case {key[1]} of seed {key[0]} stands twice", "case")
        rollouts = _count(number, row, "rollouts")
        baseline, candidate = (_count(number, row, name) for name in ARMS)
        if rollouts < 1 or max(baseline, candidate) > rollouts:
            most = max(baseline, candidate)
            raise _malformed(number, f"{most} successes out of {rollouts}", "rollouts")
        cells[key] = Cell(_text(number, row, "family"), baseline, candidate, rollouts)
    return cells


def _single(rows: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[tuple[int, str], Cell]:
    answers: dict[tuple[int, str], dict[str, list[int]]] = {}
    families: dict[tuple[int, str], str] = {}
    for number, row in rows:
        key = _count(number, row, "seed"), _text(number, row, "case")
        arm, family = _text(number, row, "arm"), _text(number, row, "family")
        if arm not in ARMS:
            raise _malformed(number, f"arm is {arm[:40]!r}, not baseline or candidate", "arm")
        if families.setdefault(key, family) != family:
            raise _malformed(number, f"case {key[1]} has two families", "family")
        answers.setdefault(key, {name: [] for name in ARMS})[arm].append(_success(number, row))
    return {key: _cell(key, families[key], by_arm) for key, by_arm in answers.items()}


def _cell(key: tuple[int, str], family: str, by_arm: Mapping[str, Sequence[int]]) -> Cell:
    baseline, candidate = (by_arm[name] for name in ARMS)
    if len(baseline) != len(candidate):
        raise _malformed(
            None,
            f"case {key[1]} of seed {key[0]} has {len(baseline)} answers of the baseline "
            f"and {len(candidate)} of the candidate",
            "arm",
        )
    return Cell(family, sum(baseline), sum(candidate), len(baseline))


def _check_families(cells: Table) -> None:
    families: dict[str, str] = {}
    for (seed, case), cell in cells.items():
        if families.setdefault(case, cell.family) != cell.family:
            raise _malformed(None, f"case {case} has another family in seed {seed}", "family")


def _count(number: int, row: Mapping[str, Any], name: str) -> int:
    value = row.get(name)
    text = str(value).strip() if type(value) in (int, str) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 11):
        raise _malformed(number, f"{name} is {str(value)[:40]!r}, not a whole number", name)
    limit = 2**32 - 1 if name == "seed" else MAX_COUNT
    if int(text) > limit:
        raise _malformed(number, f"{name} is above {limit}", name)
    return int(text)


def _text(number: int, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    text = str(value).strip() if type(value) in (int, str) else ""
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise _malformed(number, f"{name} is empty, too long or no text", name)
    return text


def _success(number: int, row: Mapping[str, Any]) -> int:
    value = row.get("success")
    found = _TRUTH.get(str(value).strip().lower())
    if found is None:
        raise _malformed(number, f"success is {str(value)[:40]!r}, not 0 or 1", "success")
    return found


def _malformed(line: int | None, message: str, field: str | None) -> EvidenceError:
    place = "" if line is None else f"line {line}: "
    return EvidenceError("TABLE_MALFORMED", f"{place}{message}", field=field)
