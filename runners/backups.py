"""A backup of a live ledger, verified before it counts as one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ledger import staging
from ledger.backups import Copied, copy_ledger
from ledger.errors import EvidenceError
from verifiers.report import Report
from verifiers.verify import Options, verify


@dataclass(frozen=True)
class BackedUp:
    """A backup that was made: what was copied, and what verifying the copy said."""

    copied: Copied
    report: Report


def back_up(folder: Path, target: Path, options: Options) -> BackedUp:
    """Copy a ledger that others may be writing; the copy stands at its place only once it is verified.

    Args:
        folder: the ledger's.
        target: where the copy is to be; nothing may be there.
        options: how deep to look and what to hold the copy against. A high-water file that others moved forward
            while the copy was made says nothing against it, so leave `state_dir` out.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `LEDGER_EXISTS`, `LEDGER_BUSY`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: the first thing that is wrong with the ledger, and so with the copy.
    """
    with staging.folder_at(target) as place:
        copied = copy_ledger(folder, place)
        report = verify(place, options)
        bad = report.wrong or ([] if report.records else report.missing)
        if bad:
            first = bad[0]
            raise EvidenceError(
                first.code,
                f"the copy is not verified: {first.message}",
                record=first.id,
                seq=first.seq,
                expected=first.expected,
                actual=first.actual,
                hint="see what is wrong with the ledger: evidence verify",
            )
    return BackedUp(copied, report)
