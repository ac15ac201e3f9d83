"""Steps V16 to V20: blobs are re-hashed, and what records claim is derived again from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ledger.blobs import JSON_LINES, BlobStore, blobs_of, named_blobs
from ledger.errors import EvidenceError, UsageError
from ledger.record import Record
from verifiers.chain import Passed
from verifiers.replay import REPLAYS
from verifiers.replay.view import Replay, View, expect
from verifiers.report import Finding, Report

# Kinds whose numbers decide something and that no step derives: a ledger that rests on one is not verified. None now.
UNDERIVED: frozenset[str] = frozenset()

# Kinds of which only order, states and refs are checked (V10, V11), and what is therefore somebody's word.
FAITH = {
    "plan.prepared": (
        "that a plan's settings, library settings, code, libraries, hardware, trained tensors and budget in datums "
        "were those named"
    ),
    "model.registered": "that a model's files, licence and source are those named",
    "source.ingested": "where a source came from, its licence and who reviewed it",
    "run.launched": "who launched a run, and where",
    "run.resumed": "who went on with a run, where, and whether on its plan's hardware",
    "run.ended": "what a run's end says beyond its counters, rows and figures",
    "update.acknowledged": "that updates computed what they state (re-execution would show it)",
    "checkpoint.restored": "that a state said to be restored was loaded (re-execution would show it)",
    "rollout.rejected": "that a group said to be rejected was at fault",
    "run.reconciled": "that a run found dead did no more work",
}

# What code meets in blobs that hold other values than their record's kind promises.
MALFORMED = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    ArithmeticError,
)


@dataclass
class BlobPass:
    """One pass over the records in scope; findings go to the report."""

    view: View
    report: Report
    withheld: set[str]
    sizes: dict[str, int] = field(default_factory=dict)

    def run(self, records: Iterable[Record], progress: Callable[[int], None] | None) -> None:
        """Check every record in scope."""
        for record in records:
            self.check(record)
            if progress is not None:
                progress(record.seq)

    def check(self, record: Record) -> None:
        """Re-hash what the record names; where all of it is there, derive its numbers again."""
        whole = True
        for digest, size in blobs_of(record.kind, record.body):
            whole &= self._check_blob(record, digest, size)
        whole = whole and self._check_counts(record)
        if record.kind in UNDERIVED:
            gap = EvidenceError("UNDERIVED", f"this version cannot derive {record.kind} again")
            self.report.missing.append(Finding.of(gap, record.seq, record.id))
        self._take(FAITH.get(record.kind))
        replay = REPLAYS.get(record.kind)
        if whole and replay is not None:
            self._replay(record, replay)

    def _check_blob(self, record: Record, digest: str, size: int) -> bool:
        try:
            if digest not in self.sizes:
                self.sizes[digest] = self.view.blobs.check(digest, size)
                self.report.blobs.checked += 1
                self.report.blobs.bytes += self.sizes[digest]
            expect("BLOB_WRONG", f"size of blob {digest}", size, self.sizes[digest])
        except EvidenceError as error:
            self._not_read(record, digest, error)
            return False
        return True

    def _check_counts(self, record: Record) -> bool:
        """A count that stands beside a JSON-lines blob is its number of lines."""
        for blob in named_blobs(record.body):
            if blob.media_type != JSON_LINES or blob.count is None or blob.digest not in self.sizes:
                continue
            try:
                lines = self.view.blobs.read(blob.digest).count(b"\n")
                expect("BLOB_WRONG", f"count of blob {blob.digest}", blob.count, lines)
            except EvidenceError as error:
                self.report.wrong.append(Finding.of(error, record.seq, record.id))
                return False
        return True

    def _not_read(self, record: Record, digest: str, error: EvidenceError) -> None:
        if error.code != "BLOB_MISSING":
            self.report.blobs.wrong += 1
            self.report.wrong.append(Finding.of(error, record.seq, record.id))
        elif digest in self.withheld:
            self.report.blobs.withheld += 1
            note = EvidenceError("BLOB_WITHHELD", f"blob {digest} is withheld")
            self.report.warnings.append(Finding.of(note, record.seq, record.id))
        else:
            self.report.blobs.unread += 1
            self.report.missing.append(Finding.of(error, record.seq, record.id))

    def _replay(self, record: Record, replay: Replay) -> None:
        try:
            faith = replay(record, self.view)
        except (EvidenceError, UsageError) as error:
            finding = Finding.of(error, record.seq, record.id)
            if error.code == "BUNDLE_PARTIAL":
                self.report.missing.append(finding)
            elif error.code != "BLOB_MISSING":
                self.report.wrong.append(finding)
            elif not self._all_withheld(record):
                self.report.missing.append(finding)
        except MALFORMED as error:
            # the one boundary: blobs from strangers may hold anything that parses
            message = f"what {record.kind} names cannot be read as what it should be: {error!r}"[
                :300
            ]
            malformed = EvidenceError("BLOB_MALFORMED", message)
            self.report.wrong.append(Finding.of(malformed, record.seq, record.id))
        else:
            count = self.report.replayed.get(record.kind, 0)
            self.report.replayed[record.kind] = count + 1
            self._take(faith)

    def _take(self, faith: str | None) -> None:
        if faith is not None:
            self.report.on_faith[faith] = self.report.on_faith.get(faith, 0) + 1

    def _all_withheld(self, record: Record) -> bool:
        """Whether every absent blob that a record rests on, near or far, is absent on purpose."""
        return all(
            digest in self.withheld or self.view.blobs.has(digest)
            for earlier in closure(self.view, record)
            for digest, _ in blobs_of(earlier.kind, earlier.body)
        )


def closure(view: View, target: Record) -> Iterator[Record]:
    """A record and everything it rests on, by refs, oldest first."""
    found: dict[str, Record] = {target.id: target}
    queue = [target]
    while queue:
        for _, ref in queue.pop().all_refs():
            if ref not in found:
                found[ref] = view.get(ref)
                queue.append(found[ref])
    yield from sorted(found.values(), key=lambda record: record.seq)


def make_pass(passed: Passed, blobs: BlobStore, withheld: set[str], report: Report) -> BlobPass:
    """A pass whose view reaches only records that passed."""
    return BlobPass(View(passed, blobs), report, withheld)
