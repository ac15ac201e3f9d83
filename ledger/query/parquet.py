"""An answer as a Parquet file, its columns with the types that they have in the engine."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ledger.errors import UsageError
from ledger.query import engine

if TYPE_CHECKING:
    from collections.abc import Mapping

BATCH_ROWS = 4096


def run(
    database: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Mapping[str, str],
    max_rows: int,
    about: Mapping[str, str],
) -> tuple[bytes, dict[str, Any]]:
    """Run an admitted statement on a locked database: the file, and its `columns`, how many `rows`, `truncated`.

    Args:
        database: locked.
        sql: admitted.
        parameters: their values.
        max_rows: rows kept of the answer.
        about: what the file's metadata is to say.

    Raises:
        UsageError: as `engine.run`.
    """
    sink = io.BytesIO()
    try:
        # a relation streams; the result of `execute` would first hold every row
        reader = database.sql(sql, params=dict(parameters) or None).to_arrow_reader(BATCH_ROWS)
        schema = reader.schema.with_metadata(dict(about))
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            rows, truncated = _copy(reader, writer, max_rows)
    except duckdb.Error as error:
        raise engine.failed(error) from None
    except pa.ArrowException as error:
        raise UsageError("QUERY_FAILED", str(error).split("\n")[0][:500], field="sql") from None
    return sink.getvalue(), {"columns": schema.names, "rows": rows, "truncated": truncated}


def _copy(reader: Any, writer: Any, max_rows: int) -> tuple[int, bool]:
    """How many rows were written, and whether there were more."""
    rows = 0
    for batch in reader:
        kept = batch.slice(0, max_rows - rows)
        writer.write_table(pa.Table.from_batches([kept], schema=writer.schema))
        rows += kept.num_rows
        if kept.num_rows < batch.num_rows:
            return rows, True
    return rows, False
