"""Steps V2 to V13 over rows of any origin: a stream whose memory does not grow with the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

from ledger import record as records
from ledger import seals
from ledger.admission import Chain
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.recent import Recent
from ledger.record import Record
from ledger.state import State
from verifiers.report import Finding
from verifiers.scratch import Scratch
from verifiers.signatures import SignatureChecker

Row = tuple[int, bytes | None, bytes, bytes]
"""(seq, id stored beside the record or None, signature, entry)"""
RowAt = Callable[[int], Row | None]
RECENT_RECORDS = 2048
MAX_FINDINGS = 100


class Earlier(Protocol):
    """Where records before the beginning of a pass may stand: a hint of anybody's."""

    def seq_of(self, raw_id: bytes) -> int | None:
        """The seq of a record by its raw id, or None."""

    def close(self) -> None:
        """Close what was opened for it."""


class Passed:
    """The records that passed so far: fetched by id, certified by their hash, from a scratch of the verifier's own.

    Args:
        row_at: fetches a row by seq.
        earlier: where a record before the pass's beginning may stand.
    """

    def __init__(self, row_at: RowAt, earlier: Earlier | None = None) -> None:
        self.scratch = Scratch()
        self._row_at = row_at
        self._earlier = earlier
        self._recent = Recent(RECENT_RECORDS)

    def remember(self, record: Record) -> None:
        """Take in a record that passed."""
        self.scratch.add(bytes.fromhex(record.id[7:]), record.seq)
        self._recent.add(record)

    def find(self, record_id: str) -> Record | None:
        """The record of an id among those that passed, or None."""
        found = self._recent.get(record_id)
        if found is not None:
            return found
        raw = bytes.fromhex(record_id[7:])
        seq = self.scratch.seq_of(raw)
        if seq is None and self._earlier is not None:
            seq = self._earlier.seq_of(raw)
        row = self._row_at(seq) if seq is not None else None
        if row is None:
            return None
        record = records.parse(row[3], row[2])
        if record.id != record_id:
            return None
        self._recent.add(record)
        return record

    def close(self) -> None:
        """Drop what was remembered."""
        self.scratch.close()
        if self._earlier is not None:
            self._earlier.close()


@dataclass
class ChainResult:
    """How far a pass came: the chain after the last good record, and what was found from `start` on."""

    chain: Chain
    passed: Passed
    wrong: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    seals_checked: int = 0
    roots: dict[int, bytes] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)
    start: int = 0
    restores: list[Record] = field(default_factory=list)


def verify_chain(
    rows: Iterable[Row],
    row_at: RowAt,
    notes: Iterable[tuple[int, bytes]] = (),
    *,
    expected_records: int = 0,
    workers: int | None = 1,
    roots_wanted: frozenset[int] = frozenset(),
    progress: Callable[[int], None] | None = None,
    begun: ChainResult | None = None,
) -> ChainResult:
    """Check records in order and the seals over them; stop at the first bad record.

    Rows or seals that cannot be read end the pass with a finding of their own, after what was found before.

    Args:
        rows: every row in seq order.
        row_at: fetches a row again by seq.
        notes: (size, signed note) of every seal, by size.
        expected_records: how many rows are coming, to decide on a pool of processes.
        workers: processes for signatures; None for all cores.
        roots_wanted: sizes at which the caller wants the tree's root.
        progress: called with the number of records done, now and then.
        begun: a pass over the records before the first row, to go on with; None to begin at record 0.
    """
    result = begun or _begin(row_at)
    checker = SignatureChecker(workers, expected_records)
    pending = _SealQueue(notes)
    try:
        for row in _readable(rows, result):
            if not _take(row, result, checker, pending, roots_wanted):
                break
            if progress is not None and row[0] % 1000 == 0:
                progress(row[0])
        _signature_finding(checker.finish(), row_at, result)
    except (
        BaseException
    ):  # an interrupt among them: nobody gets the result, so nobody else closes it
        result.passed.close()
        raise
    finally:
        checker.close()
    if not result.wrong:
        result.wrong += [
            Finding.of(seals.tail_cut(size, result.chain.size)) for size in pending.beyond()
        ]
    if pending.unreadable is not None:
        result.wrong.append(pending.unreadable)
    return result


def _begin(row_at: RowAt) -> ChainResult:
    passed = Passed(row_at)
    return ChainResult(Chain(State(), CompactRange(), None, passed.find), passed)


def _readable(rows: Iterable[Row], result: ChainResult) -> Iterator[Row]:
    """The rows; where one cannot be read, that is the finding at its place and the last one."""
    try:
        yield from rows
    except EvidenceError as error:
        # it stands where the next record was due, whatever number a damaged row gives itself
        result.wrong.append(replace(Finding.of(error), seq=result.chain.size))


def _take(
    row: Row,
    result: ChainResult,
    checker: SignatureChecker,
    pending: _SealQueue,
    wanted: frozenset[int],
) -> bool:
    """Take in a row and the seals over it; whether the pass goes on."""
    try:
        record = _admit(result.chain, row, result, checker)
    except EvidenceError as error:
        result.wrong.append(Finding.of(error, seq=row[0]))
        return False
    result.passed.remember(record)
    _after(result.chain, record, result, pending, wanted)
    return checker.bad_seq is None


def _admit(chain: Chain, row: Row, result: ChainResult, checker: SignatureChecker) -> Record:
    seq, stored_id, signature, entry = row
    if seq != chain.size:
        raise EvidenceError(
            "SEQ_GAP",
            f"row {seq} where {chain.size} comes next",
            seq=seq,
            expected=str(chain.size),
            actual=str(seq),
        )
    record = records.parse(entry, signature)
    codes = chain.admit(record, signature_known_good=True)
    checker.add((record.seq, chain.last_public, entry, signature))
    if stored_id is not None and "sha256:" + stored_id.hex() != record.id:
        raise EvidenceError(
            "ROW_ID_WRONG",
            "the id stored beside the record is not the hash of its bytes",
            seq=seq,
            record=record.id,
            expected=record.id,
            actual="sha256:" + stored_id.hex(),
        )
    for code in codes:
        message = f"time {record.time} is earlier than the record before"
        result.warnings.append(Finding(code, "V15", message, record.seq, record.id))
    return record


def _after(
    chain: Chain, record: Record, result: ChainResult, pending: _SealQueue, wanted: frozenset[int]
) -> None:
    if record.kind == "ledger.restored":
        result.restores.append(record)
    if record.kind == "blob.withheld":
        result.withheld.add(record.body["digest"])
    if chain.size in wanted:
        result.roots[chain.size] = chain.tree.root()
    for size, note in pending.at(chain.size):
        finding = _check_seal(chain, size, note)
        result.seals_checked += 1
        if finding is not None and len(result.wrong) < MAX_FINDINGS:
            result.wrong.append(finding)


def _check_seal(chain: Chain, size: int, note: bytes) -> Finding | None:
    """V13: signed by a key that held the seal role at that size, over this root."""
    state = chain.state
    publics = [
        bytes.fromhex(key.public)
        for key in state.keys.values()
        if "seal" in key.roles
        and key.from_seq <= chain.size
        and (key.until_seq is None or chain.size <= key.until_seq)
    ]
    try:
        seal = seals.open_seal(note, state.origin, publics)
        _check_root(seal, size, chain)
    except EvidenceError as error:
        return Finding.of(error, seq=chain.size - 1, record_id=chain.last_id)
    return None


def _check_root(seal: seals.Seal, size: int, chain: Chain) -> None:
    if seal.size != size or size != chain.size or seal.root != chain.tree.root():
        raise EvidenceError(
            "SEAL_WRONG",
            f"the seal at size {chain.size} has another root than the records give",
            expected=chain.tree.root().hex(),
            actual=seal.root.hex(),
        )


def _signature_finding(bad_seq: int | None, row_at: RowAt, result: ChainResult) -> None:
    """A bad signature counts before anything found at a later record."""
    if bad_seq is None:
        return
    row = row_at(bad_seq)
    record_id = records.record_id(row[2], row[3]) if row else None
    error = EvidenceError("SIGNATURE_INVALID", "the signature is not the writer's over these bytes")
    earlier = [item for item in result.wrong if item.seq is not None and item.seq < bad_seq]
    result.wrong = [*earlier, Finding.of(error, bad_seq, record_id)]


class _SealQueue:
    """Seals in order of size, waiting for the chain to reach them; one is held at a time.

    Attributes:
        unreadable: what to report where the seals could not all be read; those after it count as absent.
    """

    def __init__(self, notes: Iterable[tuple[int, bytes]]) -> None:
        self.unreadable: Finding | None = None
        self._notes = self._readable(notes)
        self._next = next(self._notes, None)

    def _readable(self, notes: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        try:
            yield from notes
        except EvidenceError as error:
            self.unreadable = Finding.of(error)

    def at(self, size: int) -> Iterator[tuple[int, bytes]]:
        """The seals up to a size that were not given yet: those of the size, and any below it."""
        while self._next is not None and self._next[0] <= size:
            yield self._next
            self._next = next(self._notes, None)

    def beyond(self) -> list[int]:
        """The sizes of the first seals that the chain did not reach."""
        rest = [] if self._next is None else [self._next[0]]
        return rest + [size for size, _ in islice(self._notes, MAX_FINDINGS)]
