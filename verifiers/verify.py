"""The whole verification: steps V1 to V20 in order (docs/spec/verification.md).

Reads a ledger folder as a stranger would: read-only, nothing of it trusted, no torch, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ledger import record as records
from ledger.blobs import BlobStore
from ledger.book import BLOBS
from ledger.errors import EvidenceError, UsageError
from ledger.record import Record
from ledger.store.choose import index_name, open_reader
from ledger.store.durable import FIRST_SEQ, Store
from ledger.suspects import first_seq, windows_of
from verifiers.chain import ChainResult, verify_chain
from verifiers.derived import index_problem
from verifiers.ending import Expectations, check_end, expectations
from verifiers.report import Finding, Level, Report
from verifiers.since import begin_at_snapshot
from verifiers.suspects import mark, refuse_suspect, report_suspects

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """What to check and what to hold it against.

    Args:
        level: `records`, or `blobs` for re-hashing and replay too.
        record: id or prefix; blobs and replay are then limited to what this record rests on.
        pinned_roots: root key ids that are trusted; empty means taken on faith.
        expect_seal: a signed note that the ledger must contain.
        since: how many records were checked before: the pass begins at the newest snapshot that lies among
            them, under the seal given and under the high-water file. `last` leaves it to these two.
        state_dir: where this user's high-water files lie; None leaves rollback unchecked.
        workers: processes for signatures, None for all cores.
        progress: called with (stage, done, total).
    """

    level: Level = "records"
    record: str | None = None
    pinned_roots: frozenset[str] = frozenset()
    expect_seal: bytes | None = None
    state_dir: Path | None = None
    since: int | Literal["last"] | None = None
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
        store = open_reader(path)
    except UsageError as error:
        report.missing.append(Finding.of(error))
        return report
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
        return report
    try:
        _verify_store(path, store, options, report)
    except EvidenceError as error:  # a row or a file that cannot be read at all
        report.wrong.append(Finding.of(error))
    finally:
        store.close()
    return report


def _verify_store(path: Path, store: Store, options: Options, report: Report) -> None:
    # the high-water file first: read after the records it may rightly be ahead of them
    first = _first(store)
    expected = expectations(options.pinned_roots, options.expect_seal, options.state_dir, first)
    with ExitStack() as until_told:
        with store.snapshot():  # rows are read more than once, and are the same each time
            size = _claimed_size(store)
            if size is None:
                empty = EvidenceError("LEDGER_EMPTY", "the ledger holds no record")
                report.missing.append(Finding.of(empty))
                return
            result = _reaching_back(path, store, size, options, expected)
            until_told.callback(result.passed.close)
            if not result.wrong:
                _expect_first(result, first)
            _check_records(path, store, result, expected, options, report)
        _check_guards(path, store, result, options, report)


def _check_records(
    path: Path,
    store: Store,
    result: ChainResult,
    expected: Expectations,
    options: Options,
    report: Report,
) -> None:
    _report_chain(result, expected, report)
    if not result.wrong:
        named = None if options.record is None else _named(result, store, options.record)
        report.scope = named.id if named else None
        _check_suspects(store, result, named, report)
    if options.level == "blobs" and not report.wrong:
        _check_blobs(path, store, result, options, report)


def _claimed_size(store: Store) -> int | None:
    """How many records the last row speaks of, None where there is no row; 0 where it cannot be read.

    Only to be ready for that many: the pass reads the rows themselves and says what is wrong with them.
    """
    try:
        size, last_id = store.tail()
    except EvidenceError:
        return 0
    return None if last_id is None else max(size, 0)


def _first(store: Store) -> Record | None:
    """Record 0 as far as it can be read; the chain pass says what is wrong with it."""
    try:
        row = store.row(0)
        return None if row is None else records.parse(row[3], row[2])
    except EvidenceError:
        return None


def _reaching_back(
    path: Path, store: Store, size: int, options: Options, expected: Expectations
) -> ChainResult:
    """The pass over the records; begun anew further back where a revocation reaches behind its beginning."""
    seen = _seen_before(options, expected)
    result = _run_chain(path, store, size, options, expected, seen)
    windows = windows_of(result.chain.state.keys)
    if result.wrong or not windows or first_seq(windows) >= result.start:
        return result
    result.passed.close()
    return _run_chain(path, store, size, options, expected, first_seq(windows))


def _seen_before(options: Options, expected: Expectations) -> int:
    """How many records may be passed over: so few that every mark from outside lies beyond the beginning."""
    sizes = sorted(expected.sizes)
    if options.since is None or (options.since == "last" and not sizes):
        return 0
    asked = [] if options.since == "last" else [options.since]
    return min([*asked, *sizes])


def _run_chain(
    path: Path,
    store: Store,
    size: int,
    options: Options,
    expected: Expectations,
    seen: int,
) -> ChainResult:
    progress = options.progress
    begun = begin_at_snapshot(path, store, seen) if seen else None
    first = begun.start if begun else 0
    return verify_chain(
        store.rows(first if begun else FIRST_SEQ),
        store.row,
        (seal for seal in store.seals() if seal[0] > first or not begun),
        expected_records=size - first,
        workers=options.workers,
        roots_wanted=expected.sizes,
        progress=None if progress is None else lambda done: progress("records", done, size),
        begun=begun,
    )


def _report_chain(result: ChainResult, expected: Expectations, report: Report) -> None:
    report.records = result.chain.size
    report.since = result.start
    report.root = result.chain.tree.root().hex()
    report.origin = result.chain.state.origin
    report.seals = result.seals_checked
    report.wrong += result.wrong
    report.warnings += result.warnings
    if not result.wrong:
        check_end(result, expected, report)


def _check_suspects(
    store: Store, result: ChainResult, named: Record | None, report: Report
) -> None:
    """V14: what revocations reach back to; nothing is read again where none does."""
    windows = windows_of(result.chain.state.keys)
    if not windows:
        return
    size = result.chain.size
    since = _passed(store, result, first_seq(windows), size)
    report_suspects(mark(since, size, windows), report)
    if named is not None:
        refuse_suspect(named, windows, result.passed.find, report)


def _check_blobs(
    path: Path, store: Store, result: ChainResult, options: Options, report: Report
) -> None:
    from verifiers.blob_pass import closure, make_pass  # noqa: PLC0415 - loads SciPy, which level records does without

    work = make_pass(result.passed, BlobStore(path / BLOBS), result.withheld, report)
    scope = _passed(store, result, report.since, report.records)
    if report.scope is not None:
        scope = closure(work.view, work.view.get(report.scope))
    progress, total = options.progress, report.records
    work.run(scope, None if progress is None else lambda done: progress("blobs", done, total))


def _check_guards(
    path: Path, store: Store, result: ChainResult, options: Options, report: Report
) -> None:
    """V15: said, never decisive; nothing above relied on them."""
    for deviation in store.deviations:
        gone = EvidenceError("TRIGGER_MISSING", f"{deviation} is gone or changed")
        report.warnings.append(Finding.of(gone))
    if report.wrong or report.since:
        return  # an index is compared with all records or not at all
    problem = index_problem(
        path / index_name(path),
        report.records,
        lambda start, stop: _records(store, start, stop),
        result.passed.scratch.seq_of,
        whole=options.level == "blobs",
    )
    if problem is not None and store.tail()[0] == report.records:
        # where writers appended meanwhile, the index may rightly be further than what was verified
        stale = EvidenceError("INDEX_STALE", f"the derived index is not the records': {problem}")
        report.warnings.append(Finding.of(stale))


def _expect_first(result: ChainResult, first: Record | None) -> None:
    """Record 0, by which the high-water file was found, is the one that the chain begins with."""
    begins = result.chain.state.ledger_id
    if result.chain.size and (first is None or first.id != begins):
        raise EvidenceError("LEDGER_UNREADABLE", "the store gives two records for seq 0", seq=0)


def _passed(store: Store, result: ChainResult, start: int, stop: int) -> Iterator[Record]:
    """Records read again, each the one that passed at its place: a store may answer otherwise when it is asked again.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`, it does.
    """
    seq = start
    for seq, record in enumerate(_records(store, start, stop), start):
        if result.passed.scratch.seq_of(bytes.fromhex(record.id[7:])) != seq:
            raise _another(seq)
        yield record
    if stop > start and seq != stop - 1:
        raise _another(seq)


def _another(seq: int) -> EvidenceError:
    return EvidenceError(
        "LEDGER_UNREADABLE",
        f"the store gives another record for seq {seq} when asked again",
        seq=seq,
    )


def _records(store: Store, start: int, stop: int) -> Iterator[Record]:
    for _, _, signature, entry in store.rows(start, stop):
        yield records.parse(entry, signature)


def _named(result: ChainResult, store: Store, name: str) -> Record:
    """The record of a whole id, a prefix or a seq written `@12`, among those that passed.

    Raises:
        UsageError: `REF_MALFORMED`, `REF_NOT_FOUND`, `REF_AMBIGUOUS`.
    """
    if name.startswith("@") and name[1:].isdecimal() and name.isascii() and len(name) < 18:
        seqs = [int(name[1:])]
    else:
        prefix = name.removeprefix("sha256:").lower()
        if not 6 <= len(prefix) <= 64 or set(prefix) - set("0123456789abcdef"):
            raise UsageError("REF_MALFORMED", f"{name[:80]!r} is no record id", record=name[:80])
        bounds = (bytes.fromhex(prefix.ljust(64, end)) for end in "0f")
        seqs = result.passed.scratch.with_prefix(*bounds)
    seqs = [seq for seq in seqs if seq >= result.start]
    rows = [row for seq in seqs if seq < result.chain.size and (row := store.row(seq))]
    if len(rows) != 1:
        code = "REF_AMBIGUOUS" if rows else "REF_NOT_FOUND"
        raise UsageError(code, f"{len(rows)} records fit {name[:80]!r}", record=name[:80])
    named = records.parse(rows[0][3], rows[0][2])
    if result.passed.scratch.seq_of(bytes.fromhex(named.id[7:])) != rows[0][0]:
        raise _another(rows[0][0])
    return named


__all__ = ["Options", "Progress", "verify"]
