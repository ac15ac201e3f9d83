"""The questions that come with the ledger: `named/*.sql`, each with its meaning in its header.

-- The first lines say what is answered.
-- parameter NAME: what a parameter is
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from ledger.errors import UsageError

_PARAMETER = re.compile(r"parameter ([a-z_]+): (.+)")


@dataclass(frozen=True)
class NamedQuery:
    """A question: its name, what it answers, its parameters (name -> meaning) and its SQL."""

    name: str
    meaning: str
    parameters: dict[str, str]
    sql: str


def names() -> list[str]:
    """Every named query, sorted."""
    files = resources.files(__package__).joinpath("named").iterdir()
    return sorted(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))


def find(name: str) -> NamedQuery:
    """A named query.

    Raises:
        UsageError: `QUERY_UNKNOWN`.
    """
    if name not in names():
        raise UsageError("QUERY_UNKNOWN", f"no query is called {name[:60]!r}", field="query")
    text = resources.files(__package__).joinpath("named", f"{name}.sql").read_text(encoding="utf-8")
    meaning: list[str] = []
    parameters: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        comment = line.removeprefix("--").strip()
        found = _PARAMETER.fullmatch(comment)
        if found is None:
            meaning.append(comment)
        else:
            parameters[found[1]] = found[2]
    return NamedQuery(name, " ".join(meaning), parameters, text)
