"""Step V14: what revocations from an earlier seq make suspect, and the promotions that are void by it.

One pass over the records since the first window, in order. It keeps four bytes a record and no record itself; refs
are looked up in a scratch of its own, by hashes that it derived. The definition is `ledger.suspects`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ledger.errors import EvidenceError
from ledger.record import Record
from ledger.suspects import Resolve, Window, Windows, find_suspect, first_seq, rests_on, suspect_key
from verifiers.report import Finding, Report
from verifiers.scratch import Scratch

PROMOTIONS_NAMED = 100


@dataclass
class Tally:
    """A revocation that reaches back, and how many records it makes suspect: the key's own, and descendants.

    Each suspect is counted once: under the first revocation of a key of its own, else under the first that
    reaches it.
    """

    key: str
    window: Window
    own: int = 0
    descendants: int = 0

    @property
    def message(self) -> str:
        """What the report says of it."""
        start, stop = self.window.start, self.window.stop
        return (
            f"records {start} to {stop - 1} by {self.key} are suspect: the key was revoked from {start}; "
            f"{self.own:,} of its own, {self.descendants:,} that rest on suspect ones"
        )


@dataclass
class Marks:
    """What the pass found.

    Attributes:
        tallies: one for each revocation that reaches back, in their order.
        void: (record, tally) of promotions among the suspects, the first hundred.
        void_count: how many there are.
    """

    tallies: list[Tally]
    void: list[tuple[Record, Tally]] = field(default_factory=list)
    void_count: int = 0


def mark(since: Iterable[Record], size: int, windows: Windows) -> Marks:
    """Find every suspect.

    Args:
        since: the records from `first_seq(windows)` on, in order.
        size: how many records the ledger has.
        windows: of the keys that were revoked from an earlier seq; at least one.
    """
    scratch = Scratch()
    try:
        return _marked(since, size, windows, scratch)
    finally:
        scratch.close()


def _marked(since: Iterable[Record], size: int, windows: Windows, scratch: Scratch) -> Marks:
    by_stop = sorted(windows.items(), key=lambda item: item[1].stop)
    marks = Marks([Tally(key, window) for key, window in by_stop])
    number_of = {tally.key: place + 1 for place, tally in enumerate(marks.tallies)}
    first = first_seq(windows)
    cause = array("I", bytes(array("I").itemsize * (size - first)))  # 0: not suspect
    for record in since:
        key = suspect_key(record, windows)
        own = [] if key is None else [number_of[key]]
        causes = own + _causes(record, cause, first, scratch)
        scratch.add(bytes.fromhex(record.id[7:]), record.seq)
        if not causes:
            continue
        cause[record.seq - first] = min(causes)
        tally = marks.tallies[(own or [min(causes)])[0] - 1]
        tally.own += bool(own)
        tally.descendants += not own
        if record.kind == "promotion.granted":
            marks.void_count += 1
            if len(marks.void) < PROMOTIONS_NAMED:
                marks.void.append((record, tally))
    return marks


def _causes(record: Record, cause: array[int], first: int, scratch: Scratch) -> list[int]:
    """Numbers of the revocations that a record's refs lead to, the first one of each ref."""
    seqs = (scratch.seq_of(bytes.fromhex(ref[7:])) for ref in rests_on(record))
    found = (cause[seq - first] for seq in seqs if seq is not None)
    return [number for number in found if number]


def report_suspects(marks: Marks, report: Report) -> None:
    """Warn of each revocation that reaches back and of each promotion that it voids."""
    for tally in marks.tallies:
        warning = EvidenceError("KEY_SUSPECT", tally.message)
        report.warnings.append(Finding.of(warning, tally.window.stop))
    for record, tally in marks.void:
        more = ""
        if record is marks.void[-1][0] and marks.void_count > len(marks.void):
            more = f" (and {marks.void_count - len(marks.void):,} later ones)"
        void = EvidenceError(
            "PROMOTION_VOID",
            f"the promotion rests on records of {tally.key}, which record {tally.window.stop} revoked{more}",
        )
        report.warnings.append(Finding.of(void, record.seq, record.id))


def refuse_suspect(named: Record, windows: Windows, resolve: Resolve, report: Report) -> None:
    """Whoever asks about one record that is suspect gets a no, and learns which record to blame."""
    suspect = find_suspect([named], windows, resolve)
    if suspect is None:
        return
    code = "PROMOTION_VOID" if named.kind == "promotion.granted" else "EVIDENCE_SUSPECT"
    rests = "" if suspect.record.id == named.id else f"{named.kind} rests on suspect evidence: "
    error = EvidenceError(code, rests + suspect.reason, actual=suspect.record.id)
    finding = Finding.of(error, named.seq, named.id)
    report.wrong.append(replace(finding, step="V14"))  # admission gives the same code at V11
