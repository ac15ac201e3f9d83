"""The process that reads a table: Parquet or Arrow on standard input, one JSON line a row on standard output.

Started by `verifiers.data.arrow_lines`. A field that is null in a table is a field that the row does not have,
since a table has one set of fields for all its rows; only the content of a turn with tool calls stays null.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verifiers.data.arrow_lines import REFUSED

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 600
BATCH_ROWS = 64
MAX_COLUMNS = 1000
MAX_DEPTH = 16
_PAGES = Path("/proc/self/statm")


class Unreadable(Exception):
    """The table cannot be rows; says why."""


def main() -> int:
    """Convert what comes in; the exit status."""
    data = sys.stdin.buffer.read()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _limit(len(data))
    try:
        for batch in _batches(pa.py_buffer(data), sys.argv[1]):
            for row in batch.to_pylist():
                line = json.dumps(present(row), ensure_ascii=False)
                sys.stdout.buffer.write(line.encode() + b"\n")  # UTF-8 whatever the locale
        sys.stdout.buffer.flush()
    except (Unreadable, pa.ArrowException, OSError, ValueError, OverflowError) as error:
        print(" ".join(str(error).split())[:200], file=sys.stderr)  # noqa: T201 - to the parent
        return REFUSED
    return 0


def _batches(data: pa.Buffer, form: str) -> Iterator[pa.RecordBatch]:
    reader = pa.BufferReader(data)
    if form == "parquet":
        table = pq.ParquetFile(reader)
        _check_fields(table.schema_arrow)
        yield from table.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
        return
    stream = _open(reader)
    _check_fields(stream.schema)
    for batch in stream:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _open(reader: pa.BufferReader) -> Any:
    """A stream, as data sets are saved to disk, or a file with a footer read batch by batch."""
    if reader.read(6) != b"ARROW1":
        reader.seek(0)
        return pa.ipc.open_stream(reader)
    return _File(pa.ipc.open_file(reader))


class _File:
    def __init__(self, file: Any) -> None:
        self.schema = file.schema
        self._file = file

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._file.num_record_batches):
            yield self._file.get_batch(number)


def _check_fields(schema: pa.Schema) -> None:
    if len(schema) > MAX_COLUMNS:
        raise Unreadable(f"it has {len(schema)} columns")
    _check_names([field.name for field in schema], "the table")
    for field in schema:
        _check_type(field.type, field.name, 1)


def _check_type(kind: pa.DataType, name: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Unreadable(f"column {name[:40]!r} nests too deep")
    if pa.types.is_struct(kind):
        _check_names([field.name for field in kind], f"column {name[:40]!r}")
        for field in kind:
            _check_type(field.type, f"{name}.{field.name}", depth + 1)
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        _check_type(kind.value_type, f"{name}[]", depth + 1)
    elif pa.types.is_dictionary(kind):
        _check_type(kind.value_type, name, depth + 1)
    elif not _is_plain(kind):
        raise Unreadable(f"column {name[:40]!r} is of type {str(kind)[:40]}, which no row holds")


def _is_plain(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_boolean,
        pa.types.is_integer, pa.types.is_floating, pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _check_names(names: list[str], where: str) -> None:
    if len(set(names)) != len(names):
        raise Unreadable(f"{where} has one name twice")


def present(value: Any) -> Any:
    """A value without the fields that are null in it."""
    if isinstance(value, list):
        return [present(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: present(item) for name, item in value.items() if item is not None}
    if kept.get("role") == "assistant" and "tool_calls" in kept:
        kept.setdefault("content", None)
    return kept


def _limit(given_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    if _PAGES.exists():  # Linux; elsewhere the time limit is left
        used = int(_PAGES.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        limit = used + given_bytes + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())
