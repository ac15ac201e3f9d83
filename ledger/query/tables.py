"""The tables that a query sees, read in one pass over a ledger's rows into Arrow; see `columns` for what they hold."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ledger import record as records
from ledger.merkle import CompactRange
from ledger.query.columns import Column, columns, fit_all
from ledger.query.names import AS_OF, EDGES, RECORDS, TABLES
from ledger.query.spool import HELD_BYTES, Spool
from ledger.store.choose import open_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledger.query.segments import History
    from ledger.record import Record
    from ledger.store.durable import Row

CHUNK_ROWS = 4096
_ID_START = len("sha256:")
_TARGET_SEQ, _TARGET, _TARGET_KIND = 4, 5, 6


@dataclass
class Loaded:
    """Tables read in one pass, and the head they were read at."""

    tables: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    root: str = ""
    sealed: dict[str, Any] = field(default_factory=dict)
    """Of a table whose earlier rows lie in segments: those rows, as a dataset of pyarrow."""


@dataclass(frozen=True)
class Before:
    """What is known of the records before those that are read.

    Args:
        tree: over them.
        find: where records of these raw ids stand, and their kinds.
    """

    tree: CompactRange
    find: Callable[[set[bytes]], dict[bytes, tuple[int, str]]]


def load_folder(folder: Path, wanted: frozenset[str], history: History | None = None) -> Loaded:
    """Read tables from a ledger's store by a connection of its own, in one read transaction.

    Args:
        folder: the ledger's, maybe a stranger's; its store is closed again.
        wanted: table names.
        history: where this ledger's segments may lie; None to read every record.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `DISK_FULL`; `SEGMENTS_DUE`, more records wait to be sealed than are read.
        EvidenceError: the store's own; a row is no record; `SEGMENT_INVALID`.
    """
    store = open_reader(folder)
    try:
        with store.snapshot():
            if history is None:
                return load(store.rows(0), wanted)
            from ledger.query.sealed import Sealed  # noqa: PLC0415 - loads Arrow's datasets

            sealed = Sealed.opened(history, store)
            if sealed is None:
                return load(store.rows(0), wanted)
            found = load(store.rows(sealed.stop), wanted, before=sealed.before())
            found.sealed = sealed.datasets(wanted)
            return found
    finally:
        store.close()


def load(
    rows: Iterable[Row],
    wanted: frozenset[str],
    held_bytes: int = HELD_BYTES,
    before: Before | None = None,
) -> Loaded:
    """Read the tables wanted, and the head, in one pass over a ledger's rows.

    Args:
        rows: (seq, stored id, signature, entry) from seq 0 on, or from where `before` ends.
        wanted: table names.
        held_bytes: how much of each table is kept in memory; the rest is spilled.
        before: what was read before; its rows are not in the tables.

    Raises:
        EvidenceError: a row is no record.
        UsageError: `DISK_FULL`, `OS_REFUSED`, of the folder for temporary files.
    """
    tree = CompactRange() if before is None else before.tree.copy()
    builders = {name: _Builder(columns(name), held_bytes) for name in wanted}
    edges = _Edges() if EDGES in wanted else None
    late: list[list[Any]] = []  # edges whose ends may lie before: no more than a stretch has
    needles = _needles(wanted)
    for _, _, signature, entry in rows:
        record_id = records.record_id(signature, entry)
        tree.append(bytes.fromhex(record_id[_ID_START:]))
        # canonical bytes hold the kind exactly so; a hit in a body costs one parse and no more
        if needles is not None and not any(needle in entry for needle in needles):
            continue
        record = records.parse(entry, signature)
        for name in (RECORDS, TABLES.get(record.kind, "")):
            if name in builders:
                builders[name].take(record)
        if edges is not None:
            for row in edges.of(record):
                late.append(row) if before is not None else builders[EDGES].add(row)
    if before is not None:
        for row in _placed(late, before):
            builders[EDGES].add(row)
    root = tree.root().hex()
    if AS_OF in builders:
        builders[AS_OF].add([tree.size, root])
    return Loaded({name: item.finish() for name, item in builders.items()}, tree.size, root)


def _placed(rows: list[list[Any]], before: Before) -> Iterator[list[Any]]:
    """Rows of edges, those completed whose end lies before the stretch."""
    missing = {_raw(row[_TARGET]) for row in rows if row[_TARGET_SEQ] is None}
    found = before.find(missing) if missing else {}
    for row in rows:
        place = found.get(_raw(row[_TARGET])) if row[_TARGET_SEQ] is None else None
        if place is not None:
            row[_TARGET_SEQ], row[_TARGET_KIND] = place
        yield row


class _Builder:
    """Rows to an Arrow table, a chunk at a time, so that Python objects do not pile up."""

    def __init__(self, columns: list[Column], held_bytes: int) -> None:
        self._columns = columns
        self._schema = pa.schema([(column.name, column.arrow) for column in columns])
        self._rows: list[list[Any]] = []
        self._spool = Spool(self._schema, held_bytes)

    def take(self, record: Record) -> None:
        self.add([column.value(record) for column in self._columns])

    def add(self, row: list[Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= CHUNK_ROWS:
            self._flush()

    def finish(self) -> Any:
        self._flush()
        return self._spool.finish()

    def _flush(self) -> None:
        if not self._rows:
            return
        arrays = [
            pa.array(fit_all(values, column.type), type=column.arrow)
            for column, values in zip(self._columns, zip(*self._rows, strict=True), strict=True)
        ]
        self._spool.add(pa.record_batch(arrays, schema=self._schema))
        self._rows = []


class _Edges:
    """Rows of the edges table; remembers where each record stands, in some hundred bytes a record."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._seqs = array("q")
        self._kinds: list[str] = []  # few distinct ones, each kept once
        self._kind_of: dict[str, str] = {}

    def of(self, record: Record) -> list[list[Any]]:
        self._places[_raw(record.id)] = len(self._seqs)
        self._seqs.append(record.seq)
        self._kinds.append(self._kind_of.setdefault(record.kind, record.kind))
        return [
            [record.seq, record.id, record.kind, role, *self._target(ref)]
            for role, ref in record.all_refs()
        ]

    def _target(self, ref: str) -> tuple[int | None, str, str | None]:
        place = self._places.get(_raw(ref))
        return (None, ref, None) if place is None else (self._seqs[place], ref, self._kinds[place])


def _raw(record_id: str) -> bytes:
    return bytes.fromhex(record_id[_ID_START:])


def _needles(wanted: frozenset[str]) -> list[bytes] | None:
    """Bytes of which a wanted record's entry holds one; None where every record is wanted."""
    if wanted & {RECORDS, EDGES}:
        return None
    return [f'"kind":"{kind}"'.encode() for kind, name in TABLES.items() if name in wanted]
