"""Bundles arrive: verified first and whole, then a ledger, or nothing at all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ledger import disk, staging
from ledger.book import DATABASE, Ledger
from ledger.bundles.unpack import Unpacked, unpack
from ledger.errors import EvidenceError
from ledger.record import Record
from ledger.requests import Request
from ledger.store.carried import CarriedStore
from verifiers.bundles import expect_head, verify_bundle, verify_unpacked
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


def shown(bundle: Path, options: Options, asked: Request) -> tuple[Report, list[Record]]:
    """The records that a request names, from a bundle that was verified: what a signer is shown.

    Args:
        bundle: a file from whoever asks.
        options: what to hold the bundle against.
        asked: what somebody is asked to state.

    Raises:
        UsageError: see `verify_bundle`.
        EvidenceError: the first thing that is wrong with the bundle; `STATEMENT_FOREIGN`, the request names another
            head than the bundle shows; `REF_NOT_FOUND`, a record that it names is not in the bundle.
    """
    root = Path(tempfile.gettempdir())
    with (
        disk.translated(root),
        tempfile.TemporaryDirectory(prefix="evidence-bundle-") as folder,
    ):
        unpacked = unpack(bundle, Path(folder))
        report = verify_unpacked(unpacked, options)
        _refuse([*report.wrong, *([] if report.records else report.missing)])
        expect_head(unpacked, asked.ledger, asked.seal)
        names = [ref for value in asked.refs.values() for ref in _ids(value)]
        return report, [_found(unpacked, name) for name in names]


def _ids(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _found(unpacked: Unpacked, name: str) -> Record:
    if unpacked.manifest.scope == "closure":
        with CarriedStore.open(unpacked.folder / DATABASE) as store:
            record = store.find(name)
    else:
        with Ledger.read(unpacked.folder) as ledger:
            record = ledger.find(name)
    if record is None:
        raise EvidenceError(
            "REF_NOT_FOUND",
            f"record {name[7:19]}, about which something is to be stated, is not in the bundle",
            record=name,
            hint=f"ask for a bundle of it: evidence export bundle OUT --of {name[7:19]}",
        )
    return record


def _refuse(findings: list[Finding]) -> None:
    if findings:
        raise findings[0].as_error()
