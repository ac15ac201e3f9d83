"""The whole verification: steps V1 to V20 in order (docs/spec/verification.md).

Reads a ledger folder as a stranger would: read-only, nothing of it trusted, no torch, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ledger import highwater, seals
from ledger.blobs import BlobStore, named_blobs
from ledger.book import BLOBS, Ledger
from ledger.errors import EvidenceError, UsageError
from ledger.record import Record
from ledger.state import State
from verifiers.chain import ChainResult, verify_chain
from verifiers.replay.view import Replay, View, expect
from verifiers.report import Finding, Level, Report

__all__ = ["Options", "verify"]

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """What to check and what to hold it against.

    Args:
        level: `records`, or `blobs` for re-hashing and replay too.
        record: id or prefix; blobs and replay are then limited to what this record rests on.
        pinned_roots: root key ids that are trusted; empty means taken on faith.
        expect_seal: a signed note that the ledger must contain.
        state_dir: where this user's high-water files lie; None leaves rollback unchecked.
        workers: processes for signatures, None for all cores.
        progress: called with (stage, done, total).
    """

    level: Level = "records"
    record: str | None = None
    pinned_roots: frozenset[str] = frozenset()
    expect_seal: bytes | None = None
    state_dir: Path | None = None
    workers: int | None = None
    progress: Progress | None = None


def verify(path: Path, options: Options | None = None) -> Report:
    """Verify a ledger folder.

    Hostile bytes end as findings of the report. A folder that cannot be opened at all is `incomplete`
    where nothing was readable, `wrong` where what was read is no ledger.

    Raises:
        UsageError: the record named in the options is not in the ledger.
    """
    options = options or Options()
    report = Report(level=options.level)
    try:
        ledger = Ledger.read(path)
    except UsageError as error:
        report.missing.append(Finding.of(error))
        return report
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
        return report
    with ledger:
        try:
            _verify_open(ledger, options, report)
        except EvidenceError as error:  # a hostile column that no step expected
            report.wrong.append(Finding.of(error))
    return report


def _verify_open(ledger: Ledger, options: Options, report: Report) -> None:
    size = ledger.size
    if size == 0:
        report.missing.append(
            Finding.of(EvidenceError("LEDGER_EMPTY", "the ledger holds no record"))
        )
        return
    expected = _expected_seal(options, report)
    mark = _high_water(ledger, options, report)
    wanted = frozenset(item for item in (expected and expected.size, mark and mark.size) if item)
    result = _run_chain(ledger, size, options, wanted)
    report.records = result.chain.size
    report.root = result.chain.tree.root().hex()
    report.origin = result.chain.state.origin
    report.seals = result.seals_checked
    report.wrong += result.wrong
    report.warnings += result.warnings
    if not result.wrong:
        _check_end(result, options, report, expected, mark)
    _check_guards(ledger, report)
    if options.level == "blobs" and not report.wrong:
        _check_blobs(ledger, options, report)


def _run_chain(ledger: Ledger, size: int, options: Options, wanted: frozenset[int]) -> ChainResult:
    """V2 to V13. The reading error of a hostile row becomes a finding like any other."""
    progress = options.progress
    store = ledger.store
    return verify_chain(
        store.rows(0),
        store.row,
        store.seals(),
        expected_records=size,
        workers=options.workers,
        roots_wanted=wanted,
        progress=None if progress is None else lambda done: progress("records", done, size),
    )


def _expected_seal(options: Options, report: Report) -> seals.Seal | None:
    if options.expect_seal is None:
        return None
    try:
        return seals.read_unverified(options.expect_seal)
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
        return None


def _high_water(ledger: Ledger, options: Options, report: Report) -> highwater.HighWater | None:
    if options.state_dir is None:
        return None
    try:
        first = ledger.at(0)
        return None if first is None else highwater.read(options.state_dir, first.id)
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
        return None


def _check_end(
    result: ChainResult,
    options: Options,
    report: Report,
    expected: seals.Seal | None,
    mark: highwater.HighWater | None,
) -> None:
    """V14: pinned root, expected seal, high water, keys revoked from an earlier seq."""
    state = result.chain.state
    if options.pinned_roots:
        roots = {name for name, key in state.keys.items() if "root" in key.roles}
        if roots & options.pinned_roots:
            report.trust = "pinned"
        else:
            _wrong(
                report,
                "ROOT_UNTRUSTED",
                "the root key is none of those pinned",
                ", ".join(sorted(options.pinned_roots)),
                state.root_key,
            )
    if expected is not None and options.expect_seal is not None:
        _check_expected(result, report, expected, options.expect_seal)
    if mark is not None:
        _check_mark(result, report, mark)
    for key, from_seq, seq in result.revocations:
        message = f"records {from_seq} to {seq - 1} by {key} are suspect: the key was revoked from {from_seq}"
        report.warnings.append(Finding("KEY_SUSPECT", "V14", message, seq))


def _check_expected(result: ChainResult, report: Report, expected: seals.Seal, note: bytes) -> None:
    size = result.chain.size
    root = result.roots.get(expected.size)
    if expected.origin != report.origin or root is None or root != expected.root:
        _wrong(
            report,
            "EXPECTED_SEAL",
            f"the ledger of {size} records does not contain the seal of {expected.size}",
            f"{expected.origin} {expected.size} {expected.root.hex()}",
            f"{report.origin} {size} {root.hex() if root else 'shorter'}",
        )
        return
    publics = _seal_publics(result.chain.state)
    try:
        seals.open_seal(note, report.origin, publics)
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
    else:
        report.rollback = "expected seal found"


def _check_mark(result: ChainResult, report: Report, mark: highwater.HighWater) -> None:
    size = result.chain.size
    if size < mark.size:
        _wrong(
            report,
            "LEDGER_ROLLED_BACK",
            f"the ledger has {size} records, it had {mark.size} when last written here",
            str(mark.size),
            str(size),
        )
    elif result.roots.get(mark.size) != mark.root:
        _wrong(
            report,
            "LEDGER_FORKED",
            f"the first {mark.size} records are not those last written here",
            mark.root.hex(),
            result.roots[mark.size].hex(),
        )
    else:
        report.rollback = "high water reached"


def _seal_publics(state: State) -> list[bytes]:
    return [bytes.fromhex(key.public) for key in state.keys.values() if "seal" in key.roles]


def _wrong(report: Report, code: str, message: str, expected: str, actual: str) -> None:
    error = EvidenceError(code, message, expected=expected, actual=actual)
    report.wrong.append(Finding.of(error))


def _check_guards(ledger: Ledger, report: Report) -> None:
    """V15: said, never decisive; nothing above relied on them."""
    for deviation in ledger.deviations:
        report.warnings.append(Finding.of(EvidenceError("TRIGGER_MISSING", f"{deviation} is gone")))
    if ledger.index_was_stale:
        error = EvidenceError("INDEX_STALE", "the derived index did not fit the records")
        report.warnings.append(Finding.of(error))


@dataclass
class _BlobPass:
    """V16 to V20 over the records in scope."""

    blobs: BlobStore
    view: View
    report: Report
    withheld: set[str]
    replays: Mapping[str, Replay]
    seen: set[str] = field(default_factory=set)

    def check(self, record: Record) -> None:
        """Re-hash what the record names; where all of it is there, derive its numbers again."""
        whole = True
        for blob in named_blobs(record.body):
            whole &= self._check_blob(record, blob.digest, blob.size)
        replay = self.replays.get(record.kind)
        if whole and replay is not None:
            self._replay(record, replay)

    def _check_blob(self, record: Record, digest: str, size: int) -> bool:
        if digest in self.seen:
            return True
        try:
            expect("BLOB_WRONG", f"size of blob {digest}", size, len(self.blobs.read(digest)))
        except EvidenceError as error:
            self._not_read(record, digest, error)
            return False
        self.seen.add(digest)
        self.report.blobs.checked += 1
        self.report.blobs.bytes += size
        return True

    def _not_read(self, record: Record, digest: str, error: EvidenceError) -> None:
        finding = Finding.of(error, record.seq, record.id)
        if error.code != "BLOB_MISSING":
            self.report.wrong.append(finding)
        elif digest in self.withheld:
            self.report.blobs.withheld += 1
            self.report.warnings.append(
                Finding("BLOB_WITHHELD", "V16", f"blob {digest} is withheld", record.seq, record.id)
            )
        else:
            self.report.blobs.unread += 1
            self.report.missing.append(finding)

    def _replay(self, record: Record, replay: Replay) -> None:
        try:
            replay(record, self.view)
        except EvidenceError as error:
            finding = Finding.of(error, record.seq, record.id)
            target = self.report.missing if error.code == "BLOB_MISSING" else self.report.wrong
            target.append(finding)
        else:
            count = self.report.replayed.get(record.kind, 0)
            self.report.replayed[record.kind] = count + 1


def _check_blobs(ledger: Ledger, options: Options, report: Report) -> None:
    from verifiers.replay import REPLAYS  # noqa: PLC0415 - loads SciPy, which level records does without

    blobs = BlobStore(ledger.path / BLOBS)
    withheld = {record.body["digest"] for record in ledger.of_kind("blob.withheld")}
    work = _BlobPass(blobs, View(ledger, blobs), report, withheld, REPLAYS)
    scope = _scope(ledger, options, report)
    total = report.records
    for record in scope:
        work.check(record)
        if options.progress is not None:
            options.progress("blobs", record.seq, total)


def _scope(ledger: Ledger, options: Options, report: Report) -> Iterable[Record]:
    if options.record is None:
        return ledger.records(0, report.records)
    target = ledger.get(options.record)
    report.scope = target.id
    return closure(ledger, target)


def closure(ledger: Ledger, target: Record) -> Iterator[Record]:
    """A record and everything it rests on, by refs, oldest first."""
    found: dict[str, Record] = {target.id: target}
    queue = [target]
    while queue:
        for _, ref in queue.pop().all_refs():
            if ref not in found:
                record = ledger.get(ref)
                found[ref] = record
                queue.append(record)
    yield from sorted(found.values(), key=lambda record: record.seq)
