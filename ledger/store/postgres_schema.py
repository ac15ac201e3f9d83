"""Whether a schema is what our script makes: plain tables with our columns, nothing between them and who reads.

A view, a child table, a rule or a row policy could show other rows than the table has: they are refused. A guard that is
gone or was changed is named; readers go on without it, writers do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from ledger.store.connection import sql

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """SELECT c.relname::text, c.relkind::text, c.relrowsecurity OR c.relhasrules OR c.relhassubclass
        OR c.relispartition OR c.relpersistence <> 'p',
    array_agg(a.attname::text || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %s) AND c.relkind NOT IN ('i', 'c')
GROUP BY 1, 2, 3"""
_GUARDS = """SELECT t.tgname::text, pg_get_triggerdef(t.oid), t.tgenabled::text, p.prosrc
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %s) AND NOT t.tgisinternal"""

TABLES = {
    "about": ["application text", "format integer"],
    "records": ["seq bigint", "id bytea", "prev bytea", "signature bytea", "entry bytea"],
    "seals": ["size bigint", "note bytea"],
}
GUARDS = ("records_append", "records_unchanging", "seals_unchanging")
ALWAYS = "A"


def check_schema(db: psycopg.Connection[tuple[Any, ...]], schema: str) -> list[str]:
    """Guards that are gone or not as made.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, there is no such schema.
        EvidenceError: `LEDGER_SCHEMA`, a table is not as a ledger has it, or something else is there.
    """
    there = {row[0]: row[1:] for row in db.execute(_COLUMNS, [schema]).fetchall()}
    if not there:
        raise UsageError("LEDGER_NOT_FOUND", f"there is no ledger {schema} there")
    for name in sorted(there.keys() | TABLES.keys()):
        if there.get(name) != ("r", False, TABLES.get(name)):
            raise EvidenceError(
                "LEDGER_SCHEMA", f"table {name!r} is not as a ledger has it", field=name[:80]
            )
    made = {row[0]: row[1:] for row in db.execute(_GUARDS, [schema]).fetchall()}
    unknown = sorted(made.keys() - set(GUARDS))
    if unknown:
        raise EvidenceError(
            "LEDGER_SCHEMA", f"trigger {unknown[0]!r} is none of a ledger's", field=unknown[0][:80]
        )
    return [f"trigger {name}" for name in GUARDS if not _as_made(made.get(name), name, schema)]


def _as_made(found: tuple[Any, ...] | None, name: str, schema: str) -> bool:
    if found is None:
        return False
    definition, enabled, source = found
    text = sql("postgres.sql")
    lines = text.format(schema=schema).splitlines()
    line = next(line for line in lines if line.startswith(f"CREATE TRIGGER {name} "))
    # the server keeps a function's text as it was sent, with the schema's name in quotes
    bodies = text.format(schema=f'"{schema}"').split(
        "$append$" if name == "records_append" else "$unchanging$"
    )
    return (
        _plain(definition) == _plain(line.rstrip(";")) and enabled == ALWAYS and source == bodies[1]
    )


def _plain(definition: str) -> str:
    """A trigger's definition with its events in one order."""
    before, _, rest = definition.partition(" BEFORE ")
    events, _, after = rest.partition(" ON ")
    return f"{before} {sorted(events.split(' OR '))} {after}"
