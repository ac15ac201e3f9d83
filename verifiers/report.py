"""What a verification says: verdict, level, trust, findings; the same for a person and a program."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ledger.codes import CODES
from ledger.errors import EvidenceError, LedgerError
from verifiers.steps import step_of

Verdict = Literal["verified", "wrong", "incomplete"]
Level = Literal["records", "blobs"]
Trust = Literal["pinned", "on_faith"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or missing: its code, the step that found it, where, and what helps."""

    code: str
    step: str
    message: str
    seq: int | None = None
    id: str | None = None
    field: str | None = None
    expected: str | None = None
    actual: str | None = None
    hint: str = ""

    @classmethod
    def of(
        cls, error: LedgerError, seq: int | None = None, record_id: str | None = None
    ) -> Finding:
        """The finding that an error stands for; its own position wins over the one given."""
        return cls(
            code=error.code,
            step=step_of(error.code),
            message=error.message,
            seq=error.seq if error.seq is not None else seq,
            id=error.record or record_id,
            field=error.field,
            expected=error.expected,
            actual=error.actual,
            hint=error.hint or CODES[error.code].hint,
        )

    def as_error(self) -> EvidenceError:
        """The finding as the error that a caller is answered with."""
        return EvidenceError(
            self.code,
            self.message,
            field=self.field,
            record=self.id,
            seq=self.seq,
            expected=self.expected,
            actual=self.actual,
            hint=self.hint,
        )


@dataclass
class BlobCount:
    """Blobs re-hashed and whole, those with other bytes, those withheld on purpose, and those not there to read.

    The last three count once for each record that names the blob.
    """

    checked: int = 0
    wrong: int = 0
    withheld: int = 0
    unread: int = 0
    bytes: int = 0


@dataclass
class Report:
    """The outcome of one verification.

    `wrong` and `missing` are findings by weight: any of the first makes the verdict wrong, any of the
    second makes it incomplete. `warnings` change nothing. `since` is the seq of the first record that was
    checked: those before it are vouched for by what `rollback` names, and by nothing here. `replayed` counts records whose numbers were
    derived again, by kind; `on_faith` counts, by sentence, what in them is still the writer's word.
    """

    level: Level
    trust: Trust = "on_faith"
    rollback: str = "unchecked"
    records: int = 0
    since: int = 0
    root: str = ""
    origin: str = ""
    seals: int = 0
    blobs: BlobCount = field(default_factory=BlobCount)
    replayed: dict[str, int] = field(default_factory=dict)
    on_faith: dict[str, int] = field(default_factory=dict)
    wrong: list[Finding] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    scope: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Wrong beats incomplete, and nothing read is never verified."""
        if self.wrong:
            return "wrong"
        return "incomplete" if self.missing or not self.records else "verified"

    @property
    def findings(self) -> list[Finding]:
        """Everything that keeps the verdict from being verified."""
        return self.wrong + self.missing

    def as_dict(self) -> dict[str, Any]:
        """The `result` object of `evidence verify --json`."""
        plain = asdict(self)
        del plain["wrong"], plain["missing"]
        return {
            "verdict": self.verdict,
            **plain,
            "findings": [asdict(item) for item in self.findings],
        }
