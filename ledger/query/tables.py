"""The tables that a query sees, read in one pass over a ledger's rows into Arrow; see `columns` for what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ledger import record as records
from ledger.merkle import CompactRange
from ledger.query.columns import columns, fit_all
from ledger.query.names import AS_OF, EDGES, RECORDS, TABLES
from ledger.query.places import Before, Places
from ledger.query.spool import HELD_BYTES, Spool
from ledger.store.choose import open_reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledger.query.segments import History
    from ledger.record import Record
    from ledger.store.durable import Row

CHUNK_ROWS = 4096
_ID_START = len("sha256:")
_TARGET_SEQ, _TARGET_KIND = 4, 6


@dataclass
class Loaded:
    """Tables read in one pass, and the head they were read at."""

    tables: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    root: str = ""
    sealed: dict[str, Any] = field(default_factory=dict)
    """Of a table whose earlier rows lie in segments: those rows, as a dataset of pyarrow."""


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
    places = Places(before, kept=bool(wanted & {EDGES, *TABLES.values()}))
    builders = {name: _Builder(name, held_bytes, places) for name in wanted}
    edges = _Edges(places) if EDGES in wanted else None
    needles = _needles(wanted)
    for seq, _, signature, entry in rows:
        record_id = records.record_id(signature, entry)
        raw = bytes.fromhex(record_id[_ID_START:])
        tree.append(raw)
        # canonical bytes hold the kind exactly so; a hit in a body costs one parse and no more
        if needles is not None and not any(needle in entry for needle in needles):
            places.add(raw, seq)
            continue
        record = records.parse(entry, signature)
        for name in (RECORDS, TABLES.get(record.kind, "")):
            if name in builders:
                builders[name].take(record)
        if edges is not None:
            for row in edges.of(record):
                builders[EDGES].add(row)
        places.add(raw, seq)
    root = tree.root().hex()
    if AS_OF in builders:
        builders[AS_OF].add([tree.size, root])
    places.complete()
    if edges is not None:
        edges.complete()
    return Loaded({name: item.finish() for name, item in builders.items()}, tree.size, root)


class _Builder:
    """Rows to an Arrow table, a chunk at a time, so that Python objects do not pile up.

    Where rows may name records before the stretch that is read they are kept until it is known where those
    stand: no more than a stretch has.
    """

    def __init__(self, table: str, held_bytes: int, places: Places) -> None:
        self._columns = columns(table)
        self._places = places
        self._placed = [number for number, column in enumerate(self._columns) if column.places]
        self._waits = places.waits and (table == EDGES or bool(self._placed))
        self._schema = pa.schema([(column.name, column.arrow) for column in self._columns])
        self._rows: list[list[Any]] = []
        self._spool = Spool(self._schema, held_bytes)

    def take(self, record: Record) -> None:
        row = [column.value(record) for column in self._columns]
        for number in self._placed:
            row[number] = self._places.of(row[number])
        self.add(row)

    def add(self, row: list[Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= CHUNK_ROWS and not self._waits:
            self._flush()

    def finish(self) -> Any:
        self._flush()
        return self._spool.finish()

    def _flush(self) -> None:
        if not self._rows:
            return
        for number in self._placed:
            for row in self._rows:
                row[number] = self._places.placed(row[number])
        arrays = [
            pa.array(fit_all(values, column.type), type=column.arrow)
            for column, values in zip(self._columns, zip(*self._rows, strict=True), strict=True)
        ]
        self._spool.add(pa.record_batch(arrays, schema=self._schema))
        self._rows = []


class _Edges:
    """Rows of the edges table; the kind of what is named is known of records that were read."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._kinds: dict[int, str] = {}  # few distinct ones, each kept once
        self._kind_of: dict[str, str] = {}
        self._late: list[list[Any]] = []

    def of(self, record: Record) -> list[list[Any]]:
        self._kinds[record.seq] = self._kind_of.setdefault(record.kind, record.kind)
        rows = [
            [record.seq, record.id, record.kind, role, self._places.of(ref), ref, None]
            for role, ref in record.all_refs()
        ]
        for row in rows:
            self._late.append(row) if isinstance(row[_TARGET_SEQ], str) else self._complete(row)
        return rows

    def complete(self) -> None:
        """Fill in what lies before the stretch, when `places` knows it."""
        for row in self._late:
            self._complete(row)

    def _complete(self, row: list[Any]) -> None:
        seq = row[_TARGET_SEQ] = self._places.placed(row[_TARGET_SEQ])
        row[_TARGET_KIND] = self._kinds.get(seq) or self._places.kinds.get(seq)


def _needles(wanted: frozenset[str]) -> list[bytes] | None:
    """Bytes of which a wanted record's entry holds one; None where every record is wanted."""
    if wanted & {RECORDS, EDGES}:
        return None
    return [f'"kind":"{kind}"'.encode() for kind, name in TABLES.items() if name in wanted]
