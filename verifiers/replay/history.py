"""What a ledger has read before a record: rows that runs were trained on and cases that protocols put to models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ledger.record import Record
from verifiers.data.leakage import PastRow
from verifiers.data.splits import read_assignment
from verifiers.replay.data_rows import rows_of_split
from verifiers.replay.view import View

READERS = ("run.launched", "protocol.registered")


def records_before(record: Record, view: View) -> list[Record]:
    """Every record of `READERS` before this one, in order: the chain is walked back, so none can be left out."""
    found: list[Record] = []
    at = record.prev
    while at is not None:
        earlier = view.get(at)
        if earlier.kind in READERS:
            found.append(earlier)
        at = earlier.prev
    return found[::-1]


def history_of(readers: Iterable[Record], split_id: str, view: View) -> list[str]:
    """Ids of the splits that runs were trained on and of the protocols, this split's own left out.

    A split counts once however many runs read it, and of protocols with the same cases in the same role the first.
    """
    ids: list[str] = []
    seen: set[Any] = {split_id}
    for record in readers:
        name = record.id
        key: Any = None
        if record.kind == "run.launched":
            name = key = str(view.ref(record, "plan").ref("split"))
        elif record.ref("split") == split_id:
            continue
        else:
            key = (record.body["cases"]["digest"], record.body["role"])
        if key not in seen:
            seen.add(key)
            ids.append(name)
    return ids


def past_rows(ids: Iterable[str], view: View) -> Iterator[PastRow]:
    """The rows behind `history_of`: training rows of splits, cases of protocols under their role."""
    for record in map(view.get, ids):
        if record.kind == "protocol.registered":
            for row in view.lines(record.body["cases"]):
                yield PastRow(record.body["role"], row)
            continue
        rows = rows_of_split(record, view)
        lines = list(view.lines(record.body["assignment"]))
        role_of = read_assignment(lines, rows.digests)
        for row, digest in zip(rows.rows, rows.digests, strict=True):
            if role_of[digest] == "train":
                yield PastRow("train", row)
