"""Verifying a bundle: a whole one as the ledger that it holds, a closure by what it can show (spec: bundles.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ledger import highwater, seals
from ledger import record as records
from ledger.blobs import BlobStore
from ledger.bundles.unpack import Unpacked, unpack
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import CompactRange
from ledger.reading import BLOBS, DATABASE
from ledger.record import Record
from ledger.records.base import Seen
from ledger.store.carried import CarriedStore
from ledger.store.sqlite import SqliteStore
from ledger.suspects import windows_of
from verifiers.blob_pass import BlobPass
from verifiers.closure import (
    FAITH_HISTORY,
    FAITH_SINCE,
    Carried,
    Closure,
    check_closure,
    closure_of,
)
from verifiers.replay.view import View
from verifiers.report import Finding, Report
from verifiers.suspects import refuse_suspect
from verifiers.verify import Options, verify


def verify_bundle(bundle: Path, folder: Path, options: Options | None = None) -> Report:
    """Unpack a bundle into an empty folder and verify it there.

    Hostile bytes end as findings of the report, as in `verify`.

    Args:
        bundle: a file from somebody else.
        folder: empty; what lies there afterwards may be used only where nothing is wrong.
        options: as for a ledger. `since` means nothing here.

    Raises:
        UsageError: the file cannot be read, or there is no room; the record named is not in a whole ledger.
    """
    options = replace(options or Options(), since=None)
    try:
        unpacked = unpack(bundle, folder)
    except EvidenceError as error:
        report = Report(level=options.level)
        report.wrong.append(Finding.of(error))
        return report
    return verify_unpacked(unpacked, options)


def verify_unpacked(unpacked: Unpacked, options: Options) -> Report:
    """Verify what `unpack` gave."""
    if unpacked.manifest.scope == "closure":
        return _verify_closure(unpacked, options)
    report = verify(unpacked.folder, options)
    manifest = unpacked.manifest
    claimed = (manifest.ledger, manifest.size, manifest.root)
    if not report.wrong and claimed != (report.origin, report.records, report.root):
        wrong = EvidenceError(
            "BUNDLE_WRONG",
            "the head that the bundle names is not the one that its records give",
            expected=f"{report.origin} {report.records} {report.root}",
            actual=" ".join(map(str, claimed)),
        )
        report.wrong.append(Finding.of(wrong))
    return report


def expect_head(unpacked: Unpacked, origin: str, seen: Seen) -> None:
    """Refuse a head that is not one of the bundle: whoever states something saw it in this very history.

    Args:
        unpacked: a bundle that was verified.
        origin: the ledger that the statement is for.
        seen: the head that the statement names.

    Raises:
        EvidenceError: `STATEMENT_FOREIGN`.
    """
    manifest = unpacked.manifest
    root = manifest.root if seen.size == manifest.size else None
    if manifest.scope == "ledger" and seen.size < manifest.size:
        root = _root_at(unpacked.folder, seen.size)
    if manifest.ledger != origin or root != seen.root:
        raise EvidenceError(
            "STATEMENT_FOREIGN",
            "what is asked names another head than the bundle shows",
            expected=f"{origin}, {seen.size} records, root {seen.root}",
            actual=f"{manifest.ledger}, {manifest.size} records, root {manifest.root}",
            hint="ask for the bundle under that seal: evidence export bundle OUT --of RECORD",
        )


def _root_at(folder: Path, size: int) -> str:
    tree = CompactRange()
    store = SqliteStore.open_reader(folder / DATABASE)
    try:
        for _, _, signature, entry in store.rows(0, size):
            tree.append(bytes.fromhex(records.record_id(signature, entry)[7:]))
    finally:
        store.close()
    return tree.root().hex()


def _verify_closure(unpacked: Unpacked, options: Options) -> Report:
    report = Report(level=options.level)
    store = CarriedStore.open(unpacked.folder / DATABASE)
    try:
        blobs = BlobStore(unpacked.folder / BLOBS)
        note = unpacked.notes[0][1]
        carried = Carried(unpacked.manifest, store, blobs, unpacked.proof, note)
        closure = check_closure(carried)
        _expect_target(closure, options.record)
        _fill(report, closure, carried)
        _check_end(report, closure, carried, options)
        refuse_suspect(closure.target, windows_of(closure.state.keys), store.find, report)
        if options.level == "blobs" and not report.wrong:
            _check_blobs(report, closure, carried)
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
    finally:
        store.close()
    return report


def _expect_target(closure: Closure, name: str | None) -> None:
    target = closure.target
    if name is None or name == f"@{target.seq}":
        return
    if len(name) < 6 or not target.id[7:].startswith(name.removeprefix("sha256:").lower()):
        raise UsageError(
            "REF_NOT_FOUND",
            f"the bundle is of record {target.id[7:19]} and what it rests on",
            record=name[:80],
        )


def _fill(report: Report, closure: Closure, carried: Carried) -> None:
    manifest = carried.manifest
    report.records, report.seals = closure.records, 1
    report.origin, report.root, report.scope = manifest.ledger, manifest.root, closure.target.id
    report.on_faith[FAITH_HISTORY] = closure.records
    report.on_faith[FAITH_SINCE] = closure.records


def _check_end(report: Report, closure: Closure, carried: Carried, options: Options) -> None:
    """V14: the root key, the seal and the high water that the caller holds a closure against."""
    roots = {name for name, key in closure.state.keys.items() if "root" in key.roles}
    pinned = options.pinned_roots
    if pinned and not pinned & roots:
        raise EvidenceError(
            "ROOT_UNTRUSTED",
            "the root key is none of those pinned",
            expected=", ".join(sorted(pinned)),
            actual=closure.state.root_key,
        )
    report.trust = "pinned" if pinned else "on_faith"
    if options.expect_seal is not None:
        _check_seal(report, seals.read_unverified(options.expect_seal), carried)
    _check_mark(report, closure, carried, options)


def _check_seal(report: Report, kept: seals.Seal, carried: Carried) -> None:
    ours = seals.read_unverified(carried.note)
    if (kept.origin, kept.size, kept.root) != (ours.origin, ours.size, ours.root):
        raise EvidenceError(
            "EXPECTED_SEAL",
            "the bundle is proven under another seal than the one expected",
            expected=f"{kept.origin} {kept.size} {kept.root.hex()}"[:300],
            actual=f"{ours.origin} {ours.size} {ours.root.hex()}",
        )
    report.rollback = "expected seal found"


def _check_mark(report: Report, closure: Closure, carried: Carried, options: Options) -> None:
    """Where this user's high-water file is of just this size, the roots must agree."""
    if options.state_dir is None:
        return
    mark = highwater.read(options.state_dir, carried.manifest.ledger_id)
    if mark is None or mark.size != closure.size:
        return
    highwater.expect_root(mark, bytes.fromhex(carried.manifest.root))
    if report.rollback == "unchecked":
        report.rollback = "high water reached"


class _Partial:
    """The records of a closure for a replay, which may want one that does not travel."""

    def __init__(self, store: CarriedStore) -> None:
        self._store = store

    def find(self, record_id: str) -> Record:
        """A record of the bundle.

        Raises:
            EvidenceError: `BUNDLE_PARTIAL`.
        """
        record = self._store.find(record_id)
        if record is None:
            message = f"record {record_id[7:19]} is needed and is not in the bundle"
            raise EvidenceError("BUNDLE_PARTIAL", message, actual=record_id)
        return record


def _check_blobs(report: Report, closure: Closure, carried: Carried) -> None:
    withheld = {
        item.body["digest"] for item in carried.store.records() if item.kind == "blob.withheld"
    }
    work = BlobPass(View(_Partial(carried.store), carried.blobs), report, withheld)
    work.run(closure_of(carried.store, closure.target), None)


__all__ = ["expect_head", "verify_bundle", "verify_unpacked"]
