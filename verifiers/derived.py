"""Step V15: guards and derived files are looked at and spoken of; nothing else relies on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ledger.errors import EvidenceError, UsageError
from ledger.record import Record
from ledger.store.index import IndexReader


def index_problem(
    path: Path,
    size: int,
    records: Callable[[int, int], Iterable[Record]],
    seq_of: Callable[[bytes], int | None],
    *,
    whole: bool,
) -> str | None:
    """What is wrong with a ledger's derived index, or None; also None where there is none, or a writer holds it.

    Args:
        path: the index file.
        size: how many records passed.
        records: the records from a seq up to another.
        seq_of: where a record stands by its raw id, from the verifier's own pass.
        whole: compare every row; without it only whether the index ends at a record of this ledger.
    """
    if not os.path.lexists(path):
        return None
    try:
        with IndexReader(path) as index:
            last = -1 if index.last_id is None else seq_of(index.last_id)
            if index.size > size or last != index.size - 1:
                return "it ends at no record of this ledger"
            return _compare(index, records(0, size), seq_of) if whole else None
    except EvidenceError as error:
        return error.message
    except UsageError:
        return None


def _compare(
    index: IndexReader, records: Iterable[Record], seq_of: Callable[[bytes], int | None]
) -> str | None:
    held = edges = 0
    for record in records:
        if record.seq >= index.size:
            break
        held += 1
        if not index.has_record(record):
            return f"it has another place or kind for record {record.seq}"
        for role, ref in record.all_refs():
            edges += 1
            target = seq_of(bytes.fromhex(ref[7:]))
            if target is None or not index.has_edge(target, record.seq, role):
                return f"it lacks an edge of record {record.seq}"
    expected = (held, held, edges)
    if index.size != held or index.counts() != expected:
        return f"it holds {index.counts()} ids, kinds and edges, {expected} are due"
    return None
