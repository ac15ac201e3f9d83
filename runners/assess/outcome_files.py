"""Tables of outcomes from elsewhere: read, analysed, and kept as a source where asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runners.prepare.data import SourceNote, keep, record_source
from runners.prepare.inputs import read_input
from verifiers.judgement.outcome_table import Table, read_table

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

MAX_BYTES = 1 << 26


def read(path: Path) -> Table:
    """The table in a file: CSV by its suffix, otherwise JSON lines.

    Raises:
        UsageError: `INPUT_MISSING`.
        EvidenceError: `TABLE_MALFORMED`, `TOO_LARGE`, `UNSAFE_PATH`.
    """
    data = read_input(path, "TABLE", MAX_BYTES)
    return read_table(data, as_csv=path.suffix.lower() == ".csv")


def record(ledger: Ledger, path: Path, note: SourceNote) -> Record:
    """Keep the file as a source that somebody gave: words about it, and no evidence of what it counts."""
    return record_source(ledger, path.name, keep(ledger, path), note, origin=note.origin)
