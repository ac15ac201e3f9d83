"""DuckDB over Arrow tables in memory, locked: no file, no network, no extension, no setting changed.

Layers, from the outside in: a process of its own with bounded memory and a deadline (`ask`), tables in
memory only, no file system and no external access, exactly one SELECT. The last alone would not do: a
SELECT may hold an INSERT in a WITH. Trusted for: nothing but the answer's truth about the tables given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from ledger.errors import UsageError
from ledger.query import views
from ledger.query.cells import plain
from ledger.query.names import recorded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ledger.query.tables import Loaded

MAX_SQL_BYTES = 100_000
THREADS = 2
_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Nothing is downloaded, and no second SQLite library comes near a ledger's file."""

_CONFIG = {**_ALONE, "python_enable_replacements": False, "threads": THREADS}
_SHORT = "CREATE TEMP MACRO short(id) AS substr(id, strpos(id, ':') + 1, 12)"
# the order matters: what needs access is set before access is taken away
_LOCK = (
    "SET temp_directory = ''",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def connect() -> duckdb.DuckDBPyConnection:
    """An empty database in memory; `lock` it before anybody's SQL runs."""
    database = duckdb.connect(":memory:", config=_CONFIG)
    # whose cells are times with a zone reads that zone from a file: here, while files can be opened
    database.execute("SET TimeZone = 'UTC'").execute("SELECT now()").fetchall()
    return database


def connect_open() -> duckdb.DuckDBPyConnection:
    """An empty database in memory for whoever works in this process: only extensions are kept out."""
    return duckdb.connect(":memory:", config=_ALONE)


def put(
    database: duckdb.DuckDBPyConnection, loaded: Loaded, derived: Iterable[views.View] = ()
) -> None:
    """Let a database see tables that were read, and make derived ones of them; also the macro `short(id)`."""
    for name, table in loaded.tables.items():
        if name not in loaded.sealed:
            database.register(recorded(name), table)
            continue
        database.register(f"sealed_{name}", loaded.sealed[name])
        database.register(f"tail_{name}", table)
        database.execute(
            f"CREATE TEMP VIEW {recorded(name)} AS "  # noqa: S608 - our own table names
            f"SELECT * FROM sealed_{name} UNION ALL SELECT * FROM tail_{name}"
        )
    for item in derived:
        database.execute(f"CREATE TEMP VIEW {item.name} AS {item.sql}")
    database.execute(_SHORT)


def lock(database: duckdb.DuckDBPyConnection, memory_bytes: int) -> None:
    """Take every access away, for good."""
    database.execute(f"SET memory_limit = '{max(memory_bytes >> 20, 16)}MiB'")
    for statement in _LOCK:
        database.execute(statement)


def check(database: duckdb.DuckDBPyConnection, sql: str) -> views.Wanted:
    """Admit exactly one SELECT; what it needs of the ledger's tables.

    Raises:
        UsageError: `QUERY_REFUSED`, it is not one SELECT or too long; `QUERY_FAILED`, it is no SQL.
    """
    if len(sql.encode("utf-8", "surrogatepass")) > MAX_SQL_BYTES or "\0" in sql:
        raise UsageError(
            "QUERY_REFUSED", f"the statement is longer than {MAX_SQL_BYTES} bytes or holds a null"
        )
    try:
        statements = database.extract_statements(sql)
    except duckdb.Error as error:
        raise failed(error) from None
    types = [_type_of(statement) for statement in statements]
    if types != ["SELECT"]:
        raise UsageError(
            "QUERY_REFUSED",
            "a query is exactly one SELECT",
            field="sql",
            expected="SELECT",
            actual=", ".join(types) or "nothing",
        )
    return views.wanted_by(sql)


def run(
    database: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, str], max_rows: int
) -> dict[str, Any]:
    """Run an admitted statement on a locked database: `columns`, `rows`, `truncated`; see `ask.Answer`.

    Raises:
        UsageError: `QUERY_FAILED`, `QUERY_REFUSED` (it reached for something outside) or `QUERY_LIMITS`.
    """
    try:
        cursor = database.execute(sql, dict(parameters)) if parameters else database.execute(sql)
        names = [item[0] for item in cursor.description or ()]
        rows = cursor.fetchmany(max_rows + 1)
    except duckdb.Error as error:
        raise failed(error) from None
    return {
        "columns": names,
        "rows": [[plain(value) for value in row] for row in rows[:max_rows]],
        "truncated": len(rows) > max_rows,
    }


def _type_of(statement: duckdb.Statement) -> str:
    """The type of a statement; some that the engine takes have none that Python knows."""
    try:
        return statement.type.name
    except ValueError:
        return "OTHER"


def failed(error: duckdb.Error) -> UsageError:
    """The engine's error as ours: its first line, without its own prefix."""
    text = str(error).strip().split("\n")[0]
    kind, _, rest = text.partition(" Error: ")
    message = (rest or text)[:500]
    if isinstance(error, duckdb.PermissionException):
        return UsageError("QUERY_REFUSED", message, field="sql")
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.InterruptException):
        return UsageError("QUERY_LIMITS", message, field="sql")
    return UsageError(
        "QUERY_FAILED", f"{kind.lower()}: {message}" if rest else message, field="sql"
    )
