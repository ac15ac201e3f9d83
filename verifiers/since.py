"""Beginning at a snapshot instead of record 0: where, and what must vouch for what lies before.

The newest usable snapshot below the size asked for is taken; without one the pass begins at record 0. The
snapshot's tree goes on to the end, so a mark from outside at any size beyond it (a seal that was kept, the
high-water file) shows that the snapshot is the one that stood there when the mark was made. A record before
the snapshot that is referred to is found by a hint and certified by its hash, not by its place.
"""

from __future__ import annotations

from pathlib import Path

from ledger import record as records
from ledger.blobs import BlobStore
from ledger.book import BLOBS
from ledger.errors import EvidenceError, UsageError
from ledger.snapshots import SNAPSHOT, chain_at
from ledger.store.choose import index_name
from ledger.store.durable import Store
from ledger.store.index import IndexReader
from verifiers.chain import ChainResult, Passed
from verifiers.scratch import Scratch

_WINDOW_RECORDS = 4096
_MARKER = f'"{SNAPSHOT}"'.encode()


def begin_at_snapshot(path: Path, store: Store, size: int) -> ChainResult | None:
    """A pass that begins so that every record from `size` on is checked; None to begin at record 0.

    Args:
        path: the ledger's folder.
        store: its database.
        size: how many records the caller has seen checked before.
    """
    stop = min(size, store.tail()[0])
    while stop > 0:
        first = max(0, stop - _WINDOW_RECORDS)
        rows = list(store.rows(first, stop))
        if len(rows) != stop - first:
            return None  # a gap: the pass from record 0 says where
        for seq, _, signature, entry in reversed(rows):
            begun = _begin_at(path, store, seq, entry, signature) if _MARKER in entry else None
            if begun is not None:
                return begun
        stop = first
    return None


def _begin_at(
    path: Path, store: Store, seq: int, entry: bytes, signature: bytes
) -> ChainResult | None:
    try:
        record = records.parse(entry, signature)
    except EvidenceError:
        return None  # no record, so no snapshot; the pass itself says so where it meets it
    if record.seq != seq:
        return None  # copied from another place: records between the two would not be looked at
    passed = Passed(store.row, _Earlier(path, store, record.seq))
    chain = chain_at(record, BlobStore(path / BLOBS), passed.find)
    if chain is None:
        passed.close()
        return None
    return ChainResult(chain, passed, start=chain.size)


class _Earlier:
    """Where records before the beginning may stand: from the derived index, else from the stored ids."""

    def __init__(self, path: Path, store: Store, stop: int) -> None:
        self._store = store
        self._stop = stop
        self._index = _open_index(path / index_name(path), stop)
        self._rows: Scratch | None = None

    def seq_of(self, raw_id: bytes) -> int | None:
        """The seq beside which this id is stored, None where it is stored nowhere before the beginning."""
        seq = self._ask_index(raw_id)
        row = self._store.row(seq) if seq is not None and seq < self._stop else None
        if row is not None and row[1] == raw_id:
            return seq
        return self._ask_rows(raw_id)  # the index lacks it or lies

    def close(self) -> None:
        """Close what was opened."""
        for opened in (self._index, self._rows):
            if opened is not None:
                opened.close()

    def _ask_index(self, raw_id: bytes) -> int | None:
        try:
            return None if self._index is None else self._index.seq_of(raw_id)
        except (EvidenceError, UsageError):
            return None

    def _ask_rows(self, raw_id: bytes) -> int | None:
        if self._rows is None:
            self._rows = Scratch()
            for seq, stored_id, _, _ in self._store.rows(0, self._stop):
                self._rows.add(stored_id, seq)
        return self._rows.seq_of(raw_id)


def _open_index(path: Path, stop: int) -> IndexReader | None:
    try:
        index = IndexReader(path)
    except (EvidenceError, UsageError):
        return None
    if index.size < stop:
        index.close()
        return None
    return index
