"""The records used last, in memory: two generations, so that keeping and finding cost one look-up each."""

from __future__ import annotations

from ledger.record import Record


class Recent:
    """At least the `size` records added or found last, at most twice as many.

    A generation that is full becomes the old one, and the one before it is dropped whole. What is found in
    the old one moves to the young one: a record that many others name stays.

    Args:
        size: records in a generation.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[str, Record] = {}
        self._old: dict[str, Record] = {}

    def get(self, record_id: str) -> Record | None:
        """The record of an id, or None where it is not among them."""
        record = self._young.get(record_id)
        if record is None:
            record = self._old.get(record_id)
            if record is not None:
                self.add(record)
        return record

    def add(self, record: Record) -> None:
        """Keep a record."""
        young = self._young
        young[record.id] = record
        if len(young) >= self._size:
            self._old, self._young = young, {}

    def clear(self) -> None:
        """Forget all of them."""
        self._young, self._old = {}, {}
