"""A ledger's tables in a DuckDB of one's own, for notebooks: to pandas, Arrow or Polars from there.

Nothing is locked: the tables are copies, the ledger is closed again before this returns, and who works in this
process may do what they like. Only extensions are kept out, so that nothing is downloaded and no second SQLite
library touches a ledger's file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import EvidenceError, UsageError
from ledger.query import engine, views
from ledger.query.ask import seal
from ledger.query.names import ALL_TABLES, AS_OF
from ledger.query.tables import load_folder

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from ledger.query.segments import History
    from ledger.query.tables import Loaded


def duckdb_of(
    folder: Path, tables: tuple[str, ...], history: History | None = None
) -> DuckDBPyConnection:
    """A connection that sees the tables named and what they are derived from; `as_of` always.

    Args:
        folder: the ledger's.
        tables: names as in `evidence query --tables`; every table where there is none.
        history: where segments of ledgers lie, which are made first where they are due; None to read every record.

    Raises:
        UsageError: `QUERY_FAILED`, there is no such table; `LEDGER_NOT_FOUND`.
        EvidenceError: what reading the ledger says.
    """
    unknown = sorted(set(tables) - set(ALL_TABLES))
    if unknown:
        raise UsageError("QUERY_FAILED", f"no table is called {unknown[0][:60]!r}", field="tables")
    wanted = views.wanted({*(tables or ALL_TABLES), AS_OF})
    connection = engine.connect_open()
    engine.put(connection, _loaded(folder, wanted.tables, history), wanted.views)
    return connection


def _loaded(folder: Path, tables: frozenset[str], history: History | None) -> Loaded:
    try:
        return load_folder(folder, tables, history)
    except (UsageError, EvidenceError) as error:
        if history is None or error.code not in ("SEGMENTS_DUE", "SEGMENT_INVALID"):
            raise
    seal(folder, history)
    return load_folder(folder, tables, history)
