"""Tables that are derived from others: `views/*.sql`, one SELECT each, its meaning in its header."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from ledger.query.names import ALL_TABLES, DERIVED, READ, recorded

_WORD = re.compile(r"[a-z_]+")
_READ_BY_NAME = {recorded(table): table for table in READ}


@dataclass(frozen=True)
class View:
    """A derived table: its name, what its rows are, and the SELECT that makes it."""

    name: str
    meaning: str
    sql: str


@dataclass(frozen=True)
class Wanted:
    """What a statement needs.

    Args:
        tables: tables to read from the ledger.
        views: derived tables to make, each after those that it uses.
    """

    tables: frozenset[str]
    views: tuple[View, ...]


@cache
def view(name: str) -> View:
    """A derived table.

    Raises:
        KeyError: there is none of this name.
    """
    if name not in DERIVED:
        raise KeyError(name)
    text = resources.files(__package__).joinpath("views", f"{name}.sql").read_text(encoding="utf-8")
    lines = text.splitlines()
    header = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    body = "\n".join(line for line in lines if not line.startswith("--"))
    return View(name, " ".join(header), body)


def wanted_by(sql: str) -> Wanted:
    """What a statement needs, by the names in its text; too much costs time, never a wrong answer."""
    words = set(_WORD.findall(sql.lower()))
    found = wanted(words & set(ALL_TABLES))
    return replace(
        found, tables=found.tables | {_READ_BY_NAME[word] for word in words & _READ_BY_NAME.keys()}
    )


def wanted(names: set[str]) -> Wanted:
    """What these tables need, near and far."""
    views: dict[str, View] = {}
    tables = {name for name in names if name not in DERIVED}
    for name in sorted(names & set(DERIVED)):
        tables |= _add(view(name), views)
    return Wanted(frozenset(tables), tuple(views.values()))


def _add(made: View, views: dict[str, View]) -> set[str]:
    """Put a view behind those that it uses; the tables to read for it."""
    words = set(_WORD.findall(made.sql.lower()))
    tables = {_READ_BY_NAME[word] for word in words & _READ_BY_NAME.keys()}
    for name in sorted(words & set(DERIVED)):
        if name not in views and name != made.name:
            tables |= _add(view(name), views)
    views[made.name] = made
    return tables
