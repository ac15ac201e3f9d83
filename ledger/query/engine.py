"""DuckDB over Arrow tables in memory, locked: no file, no network, no extension, no setting changed.

Layers, from the outside in: a process of its own with bounded memory and a deadline (`ask`), tables in
memory only, no file system and no external access, exactly one SELECT. The last alone would not do: a
SELECT may hold an INSERT in a WITH. Trusted for: nothing but the answer's truth about the tables given.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb

from ledger.errors import UsageError
from ledger.query.names import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ledger.query.tables import Loaded

MAX_SQL_BYTES = 100_000
MAX_DEPTH = 16
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "threads": 2,
}
# the order matters: what needs access is set before access is taken away
_LOCK = (
    "SET temp_directory = ''",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def connect() -> duckdb.DuckDBPyConnection:
    """An empty database in memory; `lock` it before anybody's SQL runs."""
    return duckdb.connect(":memory:", config=_CONFIG)


def lock(database: duckdb.DuckDBPyConnection, memory_bytes: int) -> None:
    """Take every access away, for good."""
    database.execute(f"SET memory_limit = '{max(memory_bytes >> 20, 16)}MiB'")
    for statement in _LOCK:
        database.execute(statement)


def check(database: duckdb.DuckDBPyConnection, sql: str) -> frozenset[str]:
    """Admit exactly one SELECT; the ledger tables that it reads.

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
    types = [statement.type.name for statement in statements]
    if types != ["SELECT"]:
        raise UsageError(
            "QUERY_REFUSED",
            "a query is exactly one SELECT",
            field="sql",
            expected="SELECT",
            actual=", ".join(types) or "nothing",
        )
    return _tables_in(sql)


def run(
    database: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Mapping[str, str],
    loaded: Loaded,
    max_rows: int,
) -> dict[str, Any]:
    """Run an admitted statement on a locked database; see `ask.Answer` for the fields.

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
        "rows": [[_plain(value, 0) for value in row] for row in rows[:max_rows]],
        "truncated": len(rows) > max_rows,
        "as_of": {"size": loaded.size, "root": loaded.root},
    }


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


def _tables_in(sql: str) -> frozenset[str]:
    """Every ledger table whose name stands in the text; too many cost time, never a wrong answer."""
    return frozenset(re.findall(r"[a-z_]+", sql.lower())) & frozenset(ALL_TABLES)


def _plain(value: Any, depth: int) -> Any:
    """A cell as JSON: exact where JSON can be, text where it cannot."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else str(value)
    for types, convert in _CONVERT:
        if isinstance(value, types):
            return convert(value)
    if depth < MAX_DEPTH and isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if depth < MAX_DEPTH and isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    return str(value)


_CONVERT: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), lambda value: bytes(value).hex()),
)
