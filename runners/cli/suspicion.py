"""Which of the records on show are suspect, and why: by the revocations that the ledger's index knows.

Shown, not verified: `evidence verify` looks at every record. Where no revocation reaches back this costs one
look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


class Marker:
    """Answers for the records of one ledger, which stays open meanwhile."""

    def __init__(self, ledger: Ledger) -> None:
        from ledger.suspects import windows_in

        self._ledger = ledger
        self._windows = windows_in(ledger.of_kind("key.revoked"))
        self._clean: set[str] = set()

    def reason(self, record: Record) -> str | None:
        """Why a record is suspect, or None."""
        from ledger.suspects import find_suspect

        found = find_suspect([record], self._windows, self._ledger.find, self._clean)
        return None if found is None else found.reason

    def reason_of(self, record_id: str) -> str | None:
        """The same for the record of a whole id."""
        record = self._ledger.find(record_id) if self._windows else None
        return None if record is None else self.reason(record)
