"""The page about data names the forms, kinds, reasons, secrets, text fields and levels of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verifiers.data import grouping, leakage, row_rules, secrets, sources

PAGE = (Path(__file__).resolve().parents[3] / "docs/spec/data.md").read_text(encoding="utf-8")
TABLES = {
    "Forms": set(sources.FORMS),
    "Audits": set(leakage.LEVELS),
    "Splits": {*grouping._READERS, grouping.NEAR},
}


def section(name: str) -> str:
    """A section's text."""
    return re.split(r"^## ", PAGE.split(f"\n## {name}\n")[1], flags=re.MULTILINE)[0]


def first_cells(text: str) -> set[str]:
    """Every name in the first column of a section's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w:.-]+)`", cell)}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_code(name):
    """The names in the table's first column are those the code knows."""
    assert first_cells(section(name)) == TABLES[name]


def test_kinds_and_reasons_stand_on_the_page():
    """Rows of every kind are described, and every reason against a row."""
    assert first_cells(section("Rows")) == set(row_rules._NEEDED) | set(row_rules.REASONS)


def test_kinds_of_secrets_stand_on_the_page():
    """Every kind that the scanner knows is named."""
    assert set(secrets.KINDS) <= set(re.findall(r"`(\w+)`", section("Secrets")))
