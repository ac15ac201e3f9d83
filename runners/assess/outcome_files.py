"""Tables of outcomes from elsewhere: read, analysed, and kept as a source where asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError
from runners.prepare.data import SourceNote, keep, record_source
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
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError("INPUT_MISSING", f"there is no file {path}", field="TABLE") from None
    if len(data) > MAX_BYTES:
        raise EvidenceError("TOO_LARGE", f"{path.name} has more than {MAX_BYTES} bytes")
    return read_table(data, as_csv=path.suffix.lower() == ".csv")


def record(ledger: Ledger, path: Path, note: SourceNote) -> Record:
    """Keep the file as a source that somebody gave: words about it, and no evidence of what it counts."""
    return record_source(ledger, path.name, keep(ledger, path), note, origin=note.origin)
