"""A run's updates, those that count told from those that its resumptions left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.reading import Reading
    from ledger.record import Record


@dataclass(frozen=True)
class Updates:
    """Updates of a run in the order of the ledger: `live` ones count, `superseded` ones are kept."""

    live: tuple[Record, ...]
    superseded: tuple[Record, ...]


def updates_of(ledger: Reading, run: Record) -> Updates:
    """A run's own updates; those that it inherited are its ancestors'.

    Raises:
        EvidenceError: `BODY_INVALID`, a record is not as its kind must be.
    """
    resumed = [
        (record.seq, int(record.body["from_update"]))
        for record in ledger.referrers(run.id, "run", "run.resumed")
    ]
    found: dict[bool, list[Record]] = {False: [], True: []}
    for record in ledger.referrers(run.id, "run", "update.acknowledged"):
        step = int(record.body["step"])
        left = any(record.seq < seq and step > start for seq, start in resumed)
        found[left].append(record)
    return Updates(tuple(found[False]), tuple(found[True]))
