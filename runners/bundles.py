"""Bundles arrive: verified first and whole, then a ledger, or nothing at all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ledger import disk, staging
from ledger.bundles.unpack import Unpacked, unpack
from ledger.errors import EvidenceError
from verifiers.bundles import verify_bundle, verify_unpacked
from verifiers.report import Finding, Report
from verifiers.verify import Options

ROLLED_BACK = "LEDGER_ROLLED_BACK"


@dataclass(frozen=True)
class Arrived:
    """A ledger that came in a bundle: where it stands, and what its verification said."""

    folder: Path
    unpacked: Unpacked
    report: Report


def import_bundle(bundle: Path, folder: Path, options: Options, *, behind: bool = False) -> Arrived:
    """Make a ledger of a whole bundle, after everything in it was verified.

    It is unpacked beside its place and renamed there in one step: whoever is killed leaves nothing that is taken for a
    ledger, and the next import to the same place clears it away.

    Args:
        bundle: a file from somebody else.
        folder: where the ledger is to be; nothing may be there.
        options: what to hold it against, and how deep to look.
        behind: also where this user's high-water file knows a longer history: `Ledger.restore` goes on from there.

    Raises:
        UsageError: `LEDGER_EXISTS`, `LEDGER_BUSY`, `BUNDLE_PARTIAL`, `INPUT_MISSING`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: the first thing that is wrong.
    """
    with staging.folder_at(folder) as place:
        unpacked = unpack(bundle, place, whole=True)
        report = verify_unpacked(unpacked, options)
        wrong = [item for item in report.wrong if not (behind and item.code == ROLLED_BACK)]
        _refuse(wrong if report.records else [*wrong, *report.missing])
    return Arrived(folder, replace(unpacked, folder=folder), report)


def verify_apart(bundle: Path, options: Options) -> Report:
    """Verify a bundle in a temporary folder, which is gone afterwards.

    Raises:
        UsageError: see `verify_bundle`.
    """
    root = Path(tempfile.gettempdir())
    with (
        disk.translated(root),
        tempfile.TemporaryDirectory(prefix="evidence-bundle-") as folder,
    ):
        return verify_bundle(bundle, Path(folder), options)


def _refuse(findings: list[Finding]) -> None:
    if not findings:
        return
    first = findings[0]
    raise EvidenceError(
        first.code,
        first.message,
        field=first.field,
        record=first.id,
        seq=first.seq,
        expected=first.expected,
        actual=first.actual,
        hint=first.hint,
    )
