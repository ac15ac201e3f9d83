"""Every code has a test or a vector, every code that is raised is in the table, every step is known."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from ledger.codes import CODES
from ledger.errors import EvidenceError, UsageError
from verifiers import steps

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ledger", "verifiers", "runners")
WORD = re.compile(r"\b[A-Z][A-Z0-9_]*[A-Z0-9]\b")


def words(paths) -> set[str]:
    """Every word in capitals in some files."""
    return {word for path in paths for word in WORD.findall(path.read_text(encoding="utf-8"))}


def codes_with_a_case() -> set[str]:
    """Codes that a test file or a vector names."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    vectors = (ROOT / "schemas/vectors").rglob("*.json")
    return words(files) | {json.loads(path.read_bytes())["expect"] for path in vectors}


def test_every_code_has_a_test_or_a_vector():
    """No code is without a case that shows when it is given."""
    assert sorted(set(CODES) - codes_with_a_case()) == []


def test_every_code_is_used():
    """A code in the table that nothing gives would be a promise without a reader."""
    table = ROOT / "ledger/codes.py"
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py") if path != table]
    assert sorted(set(CODES) - words(files)) == []


def raised() -> set[str]:
    """Codes that the packages give errors, as far as they stand there as text."""
    found = set()
    for name in PACKAGES:
        for path in (ROOT / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Name(id="EvidenceError" | "UsageError"),
                        args=[ast.Constant(value=str(code)), *_],
                    ):
                        found.add(code)
    return found


def test_every_code_that_is_raised_is_in_the_table():
    """No error is given a code that nobody can look up."""
    assert len(raised()) > 100
    assert sorted(raised() - set(CODES)) == []


def test_codes_that_findings_carry_are_in_the_table():
    """Each code that belongs to a verification step exists, once."""
    listed = [code for codes in steps._CODES_OF_STEP.values() for code in codes]
    assert sorted(set(listed) - set(CODES)) == []
    assert len(listed) == len(set(listed))
    assert set(steps._CODES_OF_STEP) | {"V11"} == set(steps.STEPS)


@pytest.mark.parametrize("code", sorted(CODES))
def test_code_says_what_it_means_and_what_helps(code):
    """Means and hint are there, begin in lower case where they begin a sentence, and end without a stop."""
    row = CODES[code]
    for text in (row.means, row.hint):
        assert text
        assert not text.endswith((".", " "))
        assert text == text.strip()
    assert row.means[0].islower() or row.means.split()[0].isupper() or "." in row.means.split()[0]


def test_the_two_families_are_told_apart():
    """A caller's mistake is never caught as bad evidence, nor the other way round."""
    assert not issubclass(UsageError, EvidenceError)
    assert not issubclass(EvidenceError, UsageError)
    error = EvidenceError("SEQ_GAP", "seq 3 where 2 comes next", seq=3, actual="3")
    assert str(error) == "SEQ_GAP: seq 3 where 2 comes next"
    assert error.as_dict() == {
        "code": "SEQ_GAP",
        "message": "seq 3 where 2 comes next",
        "seq": 3,
        "actual": "3",
        "hint": CODES["SEQ_GAP"].hint,
    }
    with pytest.raises(KeyError):
        UsageError("NO_SUCH_CODE", "x")
