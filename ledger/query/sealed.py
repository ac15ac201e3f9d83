"""Segments as a query reads them: checked against the ledger, mapped, and given to the engine as datasets.

Every file is mapped before anybody's SQL runs. Nothing is opened later: the process of a query may not.
"""

from __future__ import annotations

import mmap
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledger import record as records
from ledger.digests import PREFIX
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import CompactRange
from ledger.query.columns import columns
from ledger.query.names import RECORDS
from ledger.query.places import Before
from ledger.query.segments import (
    TAIL_UNITS,
    History,
    Manifest,
    Segment,
    invalid,
    layout,
    opened,
    path_of,
    stat_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ledger.store.durable import Store

_PLACE = ["id", "seq", "kind"]
_File = tuple[Segment, mmap.mmap]


class Sealed:
    """The segments of a ledger, which are its own.

    Args:
        folder: where the files lie.
        manifest: the list, checked.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._segments = manifest.segments
        self._layouts = manifest.layouts
        self.stop = manifest.stop

    @classmethod
    def opened(cls, history: History, store: Store) -> Sealed | None:
        """The segments of the ledger in a store; None where it has none and needs none.

        Raises:
            UsageError: `SEGMENTS_DUE`, the ledger has grown so that more should be sealed first.
            EvidenceError: `SEGMENT_INVALID`, what is sealed is not this ledger's history; `UNSAFE_PATH`.
        """
        size, _ = store.tail()
        ledger_id = id_at(store, 0)
        if ledger_id is None:
            return None
        folder = history.of(ledger_id)
        manifest = Manifest.read(folder, ledger_id)
        stop = 0 if manifest is None else manifest.stop
        if size >= history.from_records and size - stop > TAIL_UNITS * history.unit:
            raise UsageError("SEGMENTS_DUE", f"{size - stop} records wait to be sealed")
        if manifest is None or not stop:
            return None
        check_chain(store, manifest.segments)
        return cls(folder, manifest)

    def before(self) -> Before:
        """What a reader of the later records needs to know of the sealed ones."""
        tree = CompactRange()
        for item in self._segments:
            tree.append_subtree(bytes.fromhex(item.root), item.stop - item.start)
        return Before(tree, self._find)

    def datasets(self, wanted: Iterable[str]) -> dict[str, Any]:
        """The sealed rows of each table wanted that has some.

        Raises:
            EvidenceError: `SEGMENT_INVALID`, `UNSAFE_PATH`.
        """
        import pyarrow.dataset as ds  # noqa: PLC0415 - slow to load, and lineage does without

        parquet = ds.ParquetFileFormat(
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(
                page_checksum_verification=True
            )
        )
        found: dict[str, Any] = {}
        for table in wanted:
            parts = [parquet.make_fragment(pa.py_buffer(data)) for _, data in self.files_of(table)]
            if parts:
                schema = pa.schema([(item.name, item.arrow) for item in columns(table)])
                found[table] = ds.FileSystemDataset(parts, schema, parquet)
        return found

    def files_of(self, table: str) -> list[tuple[Segment, mmap.mmap]]:
        """A table's files, mapped.

        Raises:
            EvidenceError: `SEGMENT_INVALID`, `UNSAFE_PATH`.
        """
        there = [item for item in self._segments if table in item.files]
        if there and self._layouts.get(table) != layout(table):
            raise invalid(f"the files of {table} have other columns")
        return [(item, mapped(self._folder, item, table)) for item in there]

    def _find(self, ids: set[bytes]) -> dict[bytes, tuple[int, str]]:
        """Where sealed records stand, and their kinds, by their raw ids."""
        wanted = pa.array([PREFIX + raw.hex() for raw in ids], type=pa.string())
        found: dict[bytes, tuple[int, str]] = {}
        for _, data in _likeliest_first(self.files_of(RECORDS)):
            if len(found) == len(ids):
                break
            table = read(data, _PLACE)
            table = table.filter(pc.is_in(table["id"], value_set=wanted))
            for row in table.to_pylist():
                found[bytes.fromhex(row["id"].removeprefix(PREFIX))] = (row["seq"], row["kind"])
        return found


def _likeliest_first(files: list[_File]) -> list[_File]:
    """New records name what is just before them, or a run or a split at the very beginning."""
    return [*files[-1:], *files[:-1]]


def read(data: mmap.mmap, names: list[str], words: Iterable[str] = ()) -> Any:
    """Some columns of a mapped file, as a table; those of few `words` as dictionaries, which need no text made."""
    return pq.read_table(
        pa.BufferReader(pa.py_buffer(data)),
        columns=names,
        read_dictionary=list(words),
        page_checksum_verification=True,
    )


def mapped(folder: Path, segment: Segment, table: str) -> mmap.mmap:
    """A table's file of a segment, which is the one that was written.

    Raises:
        EvidenceError: `SEGMENT_INVALID`, it is another or gone; `UNSAFE_PATH`.
    """
    wanted = segment.files[table]
    path = path_of(folder, (segment.start, segment.stop), table)
    try:
        stream = opened(path)
    except FileNotFoundError:
        raise invalid(f"{path.name} is gone") from None
    with stream:
        now = stat_of(stream)
        size = os.fstat(stream.fileno()).st_size
        if size != wanted.bytes:
            raise invalid(f"{path.name} has {size} bytes instead of {wanted.bytes}")
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if now != wanted.stat and PREFIX + sha256(data).hexdigest() != wanted.digest:
        raise invalid(f"{path.name} is not the file that was written")
    return data


def check_chain(store: Store, segments: list[Segment]) -> None:
    """Each segment's last record is the ledger's at its place; its id stands for all records before it.

    Raises:
        EvidenceError: `SEGMENT_INVALID`.
    """
    for item in segments:
        if id_at(store, item.stop - 1) != item.last:
            raise invalid(f"the ledger has another record at {item.stop - 1} than its segment")


def id_at(store: Store, seq: int) -> str | None:
    """The id of the record at a seq, by its bytes; None where there is none."""
    row = store.row(seq)
    return None if row is None else records.record_id(row[2], row[3])


__all__ = ["EvidenceError", "Sealed", "check_chain", "id_at", "mapped", "read"]
