"""Which records their notes hide from lists. Nothing is taken from the ledger, and nothing else looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.reading import Reading
    from ledger.record import Record

HIDDEN = "hidden"
SHOWN = "shown"


def is_hidden(ledger: Reading, record: Record) -> bool:
    """Whether the newest note about a record that has one of the two tags says `hidden`."""
    hidden = False
    for note in ledger.referrers(record.id, "about", "note.added"):
        tags = note.body["tags"]
        if HIDDEN in tags or SHOWN in tags:
            hidden = SHOWN not in tags
    return hidden
