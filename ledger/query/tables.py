"""The tables that a query sees: `records`, `edges` and one typed table a kind, as Arrow.

Columns of a kind's table come from its model: nested values are opened (`state_value`), reals are
DOUBLE, lists of scalars stay lists, what is deeper is JSON text. Refs are `ref_<role>`: one id, or a list.
A value of another type than its column's is null: a query is no verification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from ledger import record as records
from ledger.merkle import CompactRange
from ledger.query.names import EDGES, RECORDS, TABLES
from ledger.records import KINDS
from ledger.rules import RULES
from ledger.schemas import flat_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ledger.record import Record
    from ledger.store.sqlite import Row

CHUNK_ROWS = 16_384

_SCALARS = {"integer": "integer", "string": "text", "boolean": "boolean"}
_ARROW = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "json": pa.string(),
    "time": pa.timestamp("ms"),
}


@dataclass(frozen=True)
class Column:
    """A column: its name, its type (`integer`, `real`, `text`, `boolean`, `json`, `time`, or `list of` one)."""

    name: str
    type: str
    value: Callable[[Record], Any]

    @property
    def arrow(self) -> Any:
        """The Arrow type."""
        if self.type.startswith("list of "):
            return pa.list_(_ARROW[self.type.removeprefix("list of ")])
        return _ARROW[self.type]


@dataclass
class Loaded:
    """Tables read in one pass, and the head they were read at."""

    tables: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    root: str = ""


def columns(table: str) -> list[Column]:
    """The columns of a table.

    Raises:
        KeyError: there is no such table.
    """
    if table == RECORDS:
        return _records_columns()
    if table == EDGES:
        return [Column(name, kind, _nothing) for name, kind in _EDGE_COLUMNS]
    kind = {name: kind for kind, name in TABLES.items()}[table]
    return [*_place_columns(), *_ref_columns(kind), *_body_columns(kind)]


def load(rows: Iterable[Row], wanted: frozenset[str]) -> Loaded:
    """Read the tables wanted, and the head, in one pass over a ledger's rows.

    Args:
        rows: (seq, stored id, signature, entry) from seq 0 on.
        wanted: table names.

    Raises:
        EvidenceError: a row is no record.
    """
    tree = CompactRange()
    builders = {name: _Builder(columns(name)) for name in wanted}
    edges = _Edges() if EDGES in wanted else None
    needles = _needles(wanted)
    for _, _, signature, entry in rows:
        record_id = records.record_id(signature, entry)
        tree.append(bytes.fromhex(record_id[7:]))
        # canonical bytes hold the kind exactly so; a hit in a body costs one parse and no more
        if needles is not None and not any(needle in entry for needle in needles):
            continue
        record = records.parse(entry, signature)
        for name in (RECORDS, TABLES.get(record.kind, "")):
            if name in builders:
                builders[name].add([column.value(record) for column in builders[name].columns])
        if edges is not None:
            for row in edges.of(record):
                builders[EDGES].add(row)
    tables = {name: builder.finish() for name, builder in builders.items()}
    return Loaded(tables, tree.size, tree.root().hex())


class _Builder:
    """Rows to an Arrow table, a chunk at a time, so that Python objects do not pile up."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns
        self._schema = pa.schema([(column.name, column.arrow) for column in columns])
        self._rows: list[list[Any]] = []
        self._batches: list[Any] = []

    def add(self, row: list[Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= CHUNK_ROWS:
            self._flush()

    def finish(self) -> Any:
        self._flush()
        return pa.Table.from_batches(self._batches, schema=self._schema)

    def _flush(self) -> None:
        if not self._rows:
            return
        arrays = [
            pa.array([_fitting(value, column.type) for value in values], type=column.arrow)
            for column, values in zip(self.columns, zip(*self._rows, strict=True), strict=True)
        ]
        self._batches.append(pa.record_batch(arrays, schema=self._schema))
        self._rows = []


_EDGE_COLUMNS = (
    ("seq", "integer"),
    ("id", "text"),
    ("kind", "text"),
    ("role", "text"),
    ("target_seq", "integer"),
    ("target", "text"),
    ("target_kind", "text"),
)


class _Edges:
    """Rows of the edges table; remembers where each record stands."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, str]] = {}

    def of(self, record: Record) -> list[list[Any]]:
        self._places[record.id] = (record.seq, record.kind)
        rows = []
        for role, target in record.all_refs():
            seq, kind = self._places.get(target, (None, None))
            rows.append([record.seq, record.id, record.kind, role, seq, target, kind])
        return rows


def _needles(wanted: frozenset[str]) -> list[bytes] | None:
    """Bytes of which a wanted record's entry holds one; None where every record is wanted."""
    if wanted & {RECORDS, EDGES}:
        return None
    return [f'"kind":"{kind}"'.encode() for kind, name in TABLES.items() if name in wanted]


def _nothing(_record: Record) -> None:
    """Edges are built from refs, not column by column."""


def _place_columns() -> list[Column]:
    return [
        Column("seq", "integer", lambda record: record.seq),
        Column("id", "text", lambda record: record.id),
        Column("time", "time", lambda record: _moment(record.time)),
        Column("actor", "text", lambda record: record.actor),
    ]


def _records_columns() -> list[Column]:
    return [
        *_place_columns(),
        Column("kind", "text", lambda record: record.kind),
        Column("schema", "integer", lambda record: record.schema),
        Column("prev", "text", lambda record: record.prev),
        Column("signed_by", "text", lambda record: record.statement and record.statement.key),
        Column("entry_bytes", "integer", lambda record: len(record.entry)),
        Column("refs", "json", lambda record: record.refs),
        Column("body", "json", lambda record: record.body),
    ]


def _ref_columns(kind: str) -> list[Column]:
    found = []
    for role, ref in RULES[kind].refs.items():
        if ref.many:
            found.append(Column(f"ref_{role}", "list of text", _ref_list(role)))
        else:
            found.append(Column(f"ref_{role}", "text", _ref(role)))
    return found


def _ref(role: str) -> Callable[[Record], Any]:
    return lambda record: record.ref(role)


def _ref_list(role: str) -> Callable[[Record], Any]:
    return lambda record: record.ref_list(role)


def _body_columns(kind: str) -> list[Column]:
    return [
        Column("_".join(path), _type(schema), _at(path))
        for path, schema in flat_properties(KINDS[kind])
    ]


def _at(path: tuple[str, ...]) -> Callable[[Record], Any]:
    def value(record: Record) -> Any:
        found: Any = record.body
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    return value


def _type(schema: dict[str, Any]) -> str:
    if schema.get("format") == "real":
        return "real"
    if schema.get("type") == "array":
        inner = _type(schema.get("items", {}))
        return f"list of {inner}" if inner in _ARROW and inner != "json" else "json"
    if isinstance(schema.get("const"), int):
        return "integer"
    return _SCALARS.get(str(schema.get("type")), "json")


def _fitting(value: Any, kind: str) -> Any:
    """The value as its column's type, None where it is of another."""
    if value is None:
        return None
    if kind.startswith("list of "):
        inner = kind.removeprefix("list of ")
        return [_fitting(item, inner) for item in value] if isinstance(value, list) else None
    return _FIT[kind](value)


def _fit_real(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _moment(text: str) -> datetime:
    """A record's time, in UTC without saying so, as SQL compares it."""
    return datetime.fromisoformat(text.removesuffix("Z"))


_FIT: dict[str, Callable[[Any], Any]] = {
    "integer": lambda value: value if type(value) is int else None,
    "real": _fit_real,
    "text": lambda value: value if isinstance(value, str) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "json": lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode(),
    "time": lambda value: value,
}
