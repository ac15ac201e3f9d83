"""The columns of the tables that a query sees, made from the record models and the rules table.

Nested values are opened (`state_value`), reals are DOUBLE, lists of scalars stay lists, what is deeper is JSON
text. Refs are `ref_<role>`: one id, or a list; `ref_<role>_seq` is where that record stands, as numbers are joined
many times faster than ids. A value of another type than its column's is null: a query is no
verification.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from ledger.query.names import AS_OF, EDGES, RECORDS, TABLES
from ledger.records import KINDS
from ledger.rules import RULES
from ledger.schemas import flat_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ledger.record import Record

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
    """A column: its name, its type (`integer`, `real`, `text`, `boolean`, `json`, `time`, or `list of` one).

    Args:
        places: whether the values are ids of records, and the column holds where those stand.
    """

    name: str
    type: str
    value: Callable[[Record], Any]
    places: bool = False

    @property
    def arrow(self) -> Any:
        """The Arrow type."""
        if self.type.startswith("list of "):
            return pa.list_(_ARROW[self.type.removeprefix("list of ")])
        return _ARROW[self.type]


def columns(table: str) -> list[Column]:
    """The columns of a table that is read.

    Raises:
        KeyError: there is no such table.
    """
    if table == RECORDS:
        return _records_columns()
    if table in _OTHERS:
        return [Column(name, kind, _nothing) for name, kind in _OTHERS[table]]
    kind = {name: kind for kind, name in TABLES.items()}[table]
    return [*_place_columns(), *_ref_columns(kind), *_body_columns(kind)]


_OTHERS = {
    EDGES: (
        ("seq", "integer"),
        ("id", "text"),
        ("kind", "text"),
        ("role", "text"),
        ("target_seq", "integer"),
        ("target", "text"),
        ("target_kind", "text"),
    ),
    AS_OF: (("size", "integer"), ("root", "text")),
}


def _nothing(_record: Record) -> None:
    """These rows are not built column by column."""


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
            ids = _ref_list(role)
            found.append(Column(f"ref_{role}", "list of text", ids))
            found.append(Column(f"ref_{role}_seq", "list of integer", ids, places=True))
        else:
            one = _ref(role)
            found.append(Column(f"ref_{role}", "text", one))
            found.append(Column(f"ref_{role}_seq", "integer", one, places=True))
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
    if len(path) == 1:
        return lambda record: record.body.get(path[0])

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


def fit_all(values: Iterable[Any], kind: str) -> list[Any]:
    """The values of a column as its type, None where one is of another."""
    plain = _PLAIN.get(kind)
    if plain is not None:  # most columns: one comparison a value
        return [value if type(value) is plain else None for value in values]
    return [fitting(value, kind) for value in values]


def fitting(value: Any, kind: str) -> Any:
    """The value as its column's type, None where it is of another."""
    if value is None:
        return None
    if kind.startswith("list of "):
        inner = kind.removeprefix("list of ")
        return [fitting(item, inner) for item in value] if isinstance(value, list) else None
    if kind in _PLAIN:
        return value if type(value) is _PLAIN[kind] else None
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


_PLAIN: dict[str, type] = {"integer": int, "text": str, "boolean": bool}
_FIT: dict[str, Callable[[Any], Any]] = {
    "real": _fit_real,
    "json": lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode(),
    "time": lambda value: value,
}
