"""The questions that come with the ledger: `named/*.sql`, each with its meaning in its header.

-- The first lines say what is answered.
-- units: what the numbers are in
-- parameter NAME (KIND): which record the id in a parameter is of
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ledger.errors import UsageError

_PARAMETER = re.compile(r"parameter ([a-z_]+) \(([a-z_.]+)\): (.+)")


@dataclass(frozen=True)
class Parameter:
    """An id that a question asks for: of a record of which kind, and which one."""

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True)
class NamedQuery:
    """A question: its name, what it answers, the units of its numbers, its parameters, its SQL without comments."""

    name: str
    meaning: str
    units: str
    parameters: tuple[Parameter, ...]
    sql: str


@cache
def names() -> list[str]:
    """Every named query, sorted."""
    files = resources.files(__package__).joinpath("named").iterdir()
    return sorted(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))


@cache
def find(name: str) -> NamedQuery:
    """A named query.

    Raises:
        UsageError: `QUERY_UNKNOWN`, with the nearest names.
    """
    if name not in names():
        raise UsageError(
            "QUERY_UNKNOWN", f"no query is called {name[:60]!r}{_nearest(name)}", field="query"
        )
    text = resources.files(__package__).joinpath("named", f"{name}.sql").read_text(encoding="utf-8")
    lines = [(line, line.strip().startswith("--")) for line in text.splitlines()]
    header = [
        line.removeprefix("--").strip() for line, comment in lines if comment and line[0] == "-"
    ]
    found = [match for line in header if (match := _PARAMETER.fullmatch(line))]
    units = [line.removeprefix("units: ") for line in header if line.startswith("units: ")]
    meaning = [line for line in header if not line.startswith(("units: ", "parameter "))]
    return NamedQuery(
        name,
        " ".join(meaning),
        " ".join(units),
        tuple(Parameter(*match.groups()) for match in found),
        "\n".join(line for line, comment in lines if not comment).strip(),
    )


def _nearest(name: str) -> str:
    import difflib  # noqa: PLC0415 - only where a name is wrong

    near = difflib.get_close_matches(name, names(), n=3)
    return f", did you mean {' or '.join(near)}" if near else ""
