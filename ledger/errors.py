"""Two families of errors, told apart by whose fault it is.

    LedgerError            the common base; never raised itself
    ├── UsageError         you misused us: a wrong argument, a missing record, a refused step
    └── EvidenceError      the bytes are bad: a record, a blob, a key or a file from somebody else

Hostile bytes raise only `EvidenceError`. Each error carries a stable code from `ledger.codes`.
"""

from __future__ import annotations

from ledger.codes import CODES


def reason(message: str) -> str:
    """What a validation library says of a value, as a message of ours goes on: its own prefix off, small, bounded."""
    return message.removeprefix("Value error, ")[:200].lower().rstrip(".")


class LedgerError(Exception):
    """What both families share.

    Args:
        code: a key of `ledger.codes.CODES`.
        message: one lower-case sentence without a full stop.
        field: the field, option or column at fault, where there is one.
        record: the id (or unique prefix) of the record at fault.
        seq: the record's position in its ledger.
        expected: what should have been there.
        actual: what was there.
        hint: the next command; the code's own hint where none is given.

    Raises:
        KeyError: the code is not in the table (a programming error).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        record: str | None = None,
        seq: int | None = None,
        expected: str | None = None,
        actual: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.record = record
        self.seq = seq
        self.expected = expected
        self.actual = actual
        self.hint = CODES[code].hint if hint is None else hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_dict(self) -> dict[str, str | int]:
        """The error as the `error` object of `--json` output, empty fields left out."""
        names = ("code", "message", "field", "record", "seq", "expected", "actual", "hint")
        pairs = ((name, getattr(self, name)) for name in names)
        return {name: value for name, value in pairs if value not in (None, "")}


class UsageError(LedgerError):
    """You misused us: nothing was written and the ledger is as it was."""


class EvidenceError(LedgerError):
    """The record, blob, key or file is bad, whoever handed it over."""
