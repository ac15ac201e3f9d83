"""What each table is and what its columns are called, for lists and reference pages."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from ledger.query import columns as recorded_columns
from ledger.query import engine, views
from ledger.query.names import AS_OF, DERIVED, EDGES, RECORDS, TABLES, recorded
from ledger.records import KINDS
from ledger.schemas import first_sentence

_KIND_OF = {table: kind for kind, table in TABLES.items()}
_WORDS = {
    "BIGINT": "integer",
    "DOUBLE": "real",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "TIMESTAMP_MS": "time",
}
_OTHERS = {
    AS_OF: "One row: at which size and root the ledger was read.",
    RECORDS: "Every record, with its refs and body as JSON.",
    EDGES: "One row a ref: which record names which under which role.",
}


def meaning(table: str) -> str:
    """What a row of a table is, in one sentence.

    Raises:
        KeyError: there is no such table.
    """
    if table in DERIVED:
        return views.view(table).meaning
    return _OTHERS.get(table) or f"{_KIND_OF[table]}: {first_sentence(KINDS[_KIND_OF[table]])}"


@cache
def columns(table: str) -> list[tuple[str, str]]:
    """Names of a table's columns and their types in words, see `columns.Column`.

    Raises:
        KeyError: there is no such table.
    """
    if table not in DERIVED:
        return [(item.name, item.type) for item in recorded_columns.columns(table)]
    wanted = views.wanted({table})
    database = engine.connect()
    known: dict[str, str] = {}
    for name in sorted(wanted.tables):
        there = recorded_columns.columns(name)
        if recorded(name) != name:
            known = {item.name: item.type for item in there}
        schema = pa.schema([(item.name, item.arrow) for item in there])
        database.register(recorded(name), schema.empty_table())
    for item in wanted.views:
        database.execute(f"CREATE TEMP VIEW {item.name} AS {item.sql}")
    rows = database.execute(f"DESCRIBE {table}").fetchall()
    return [(str(row[0]), known.get(str(row[0])) or _in_words(str(row[1]))) for row in rows]


def _in_words(kind: str) -> str:
    """An engine's type as one of ours."""
    return f"list of {_WORDS[kind[:-2]]}" if kind.endswith("[]") else _WORDS[kind]
