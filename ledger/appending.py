"""Appending: one transaction a group, admitted by the rules, signed, durable before anybody is told.

The write lock is taken, records of other processes are caught up with, each draft is admitted, signed and
inserted, and the group is committed before any of its appends returns. Threads of one process share a
transaction; processes take turns. What comes after the commit (index, high water, snapshot) may fail
without taking the record back: it is then a warning.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import highwater, restores, statements
from ledger import record as records
from ledger.admission import Chain
from ledger.blobs import JSON, blobs_of
from ledger.clock import Clock
from ledger.dsse import pae
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.merkle import CompactRange, leaf_hash
from ledger.reading import Reading
from ledger.record import Record, Refs
from ledger.records import KINDS
from ledger.records.base import Body, Seen, Statement
from ledger.snapshots import SNAPSHOT, chain_at
from ledger.state import State
from ledger.store.durable import Store
from ledger.store.index import Index

GROUP_RECORDS = 1000
SNAPSHOT_RECORDS = 16_384
SNAPSHOT_TRIES = 16
_MEDIA_TYPE = b'"media_type":'
SETTLE_TRIES = 4


@dataclass
class Draft:
    """A record that somebody wants appended: everything but its place, time and signature."""

    kind: str
    body: dict[str, Any]
    refs: Refs = field(default_factory=dict)
    statement: Statement | None = None


@dataclass
class _Waiting:
    draft: Draft
    record: Record | None = None
    error: LedgerError | None = None
    done: bool = False


class Appending(Reading):
    """What a ledger does with a key.

    Attributes:
        warnings: (code, seq) of what appending noticed and did not refuse, e.g. `CLOCK_BACKWARDS`.
    """

    def __init__(
        self,
        path: Path,
        store: Store,
        index: Index,
        *,
        key: PrivateKey | None,
        clock: Clock,
        state_dir: Path | None,
    ) -> None:
        super().__init__(path, store, index)
        self.warnings: list[tuple[str, int]] = []
        self._key = key
        self._clock = clock
        self._state_dir = state_dir
        self._chain: Chain | None = None
        self._queue: list[_Waiting] = []
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.RLock()
        self._last_snapshot = 0

    @property
    def key(self) -> PrivateKey | None:
        """The writer's key, None for a reader."""
        return self._key

    def append(
        self,
        kind: str,
        body: dict[str, Any] | Body,
        refs: Refs | None = None,
        statement: Statement | None = None,
    ) -> Record:
        """Append one record; it is durable when this returns. Threads share a transaction.

        Raises:
            UsageError: what the rules refuse, with the code of the rule; nothing was written.
        """
        plain = body.model_dump(by_alias=True) if isinstance(body, Body) else body
        waiting = _Waiting(Draft(kind, plain, refs or {}, statement))
        with self._queue_lock:
            self._queue.append(waiting)
        with self._commit_lock:
            while not waiting.done:  # one group may be full before it reaches this one
                self._commit_group()
        return _outcome(waiting)

    def append_many(self, drafts: list[Draft]) -> list[Record]:
        """Append several records in one transaction each thousand; the first refusal is raised.

        Drafts before the refused one stay appended, those after it are not tried.
        """
        appended: list[Record] = []
        for start in range(0, len(drafts), GROUP_RECORDS):
            group = [_Waiting(draft) for draft in drafts[start : start + GROUP_RECORDS]]
            with self._commit_lock:
                self._commit(group, stop_at_error=True)
            appended += [_outcome(waiting) for waiting in group]
        return appended

    def append_stated(
        self, kind: str, body: dict[str, Any], refs: Refs, *, signer: PrivateKey, nonce: str
    ) -> Record:
        """Append a record with a statement made now by `signer`, over the head as it is."""
        with self._commit_lock:
            chain = self._current_chain()
            seal = Seen(size=chain.size, root=chain.tree.root().hex())
            statement = statements.make(
                signer, ledger=self.origin, kind=kind, refs=refs, body=body, seal=seal, nonce=nonce
            )
            return self.append(kind, body, refs, statement)

    def head(self) -> tuple[int, bytes, str | None]:
        """Size, root and last id, derived from the records themselves."""
        with self._commit_lock:
            chain = self._current_chain()
            return chain.size, chain.tree.root(), chain.last_id

    def seen(self) -> Seen:
        """The head in the form that records and statements name it."""
        size, root, _ = self.head()
        return Seen(size=size, root=root.hex())

    def state(self) -> State:
        """The reducer's state after the last record; not to be changed."""
        with self._commit_lock:
            return self._current_chain().state

    def _writer(self) -> PrivateKey:
        if self._key is None:
            raise UsageError("LEDGER_READ_ONLY", "the ledger was opened without a key")
        return self._key

    def _commit_group(self) -> None:
        with self._queue_lock:
            group, self._queue = self._queue[:GROUP_RECORDS], self._queue[GROUP_RECORDS:]
        self._commit(group, stop_at_error=False)

    def _commit(self, group: list[_Waiting], *, stop_at_error: bool) -> None:
        """Admit, sign and insert a group in one transaction; a failed transaction fails all of it."""
        try:
            self._writer()
            with self.store.transaction():
                chain = self._current_chain()
                admitted = self._admit_group(chain, group, stop_at_error=stop_at_error)
                self.store.append([record.as_row() for record in admitted])
                self._expect_kept(admitted)
        except LedgerError as error:
            self._chain = None
            self._cache.clear()  # what was admitted here was rolled back and must not be found
            for waiting in group:
                waiting.record, waiting.error = None, waiting.error or error
            admitted = []
        except BaseException:
            self._chain = None
            self._cache.clear()
            stopped = UsageError(
                "INTERRUPTED", "the group was interrupted and nothing of it written"
            )
            for waiting in group:
                waiting.record, waiting.error = None, waiting.error or stopped
            raise
        finally:
            for waiting in group:
                waiting.done = True
        if admitted:
            self._after_commit(chain, admitted)

    def _expect_kept(self, admitted: list[Record]) -> None:
        """What was handed to the store is there before it is committed: nothing in between dropped it."""
        if not admitted:
            return
        last = admitted[-1]
        if self.store.tail() != (last.seq + 1, bytes.fromhex(last.id[7:])):
            raise EvidenceError(
                "LEDGER_UNREADABLE",
                f"the store did not keep record {last.seq}; nothing of the group is acknowledged",
                seq=last.seq,
            )

    def _admit_group(
        self, chain: Chain, group: list[_Waiting], *, stop_at_error: bool
    ) -> list[Record]:
        admitted: list[Record] = []
        for position, waiting in enumerate(group):
            try:
                record = self._sign(chain, waiting.draft)
                self._check_blobs(record)
                codes = chain.admit(record, signature_known_good=True)
            except LedgerError as error:
                waiting.error = _as_usage(error)
                if stop_at_error:
                    for later in group[position + 1 :]:
                        later.error = waiting.error
                    break
                continue
            self.warnings += [(code, record.seq) for code in codes]
            self._cache.add(record)
            waiting.record = record
            admitted.append(record)
        return admitted

    def _sign(self, chain: Chain, draft: Draft) -> Record:
        key = self._writer()
        model = KINDS.get(draft.kind)
        entry = records.build_entry(
            ledger=self.origin if chain.size == 0 else chain.state.origin,
            seq=chain.size,
            prev=chain.last_id,
            kind=draft.kind,
            schema=model.version if model else 0,
            time=self._clock(),
            actor=key.id,
            refs=draft.refs,
            body=draft.body,
            statement=draft.statement,
        )
        records.check_size(len(entry))
        signature = key.sign(pae(records.PAYLOAD_TYPE, entry))
        return records.of_built(entry, signature)

    def _check_blobs(self, record: Record) -> None:
        if record.kind == "checkpoint.published":
            records.check_body(record.kind, record.schema, record.body)  # its files are read below
        elif _MEDIA_TYPE not in record.entry:
            return  # whatever else the body says, it names no blob
        for digest, _ in blobs_of(record.kind, record.body):
            if not self.blobs.has(digest):
                raise UsageError(
                    "BLOB_MISSING", f"{record.kind} names blob {digest}, which is not there"
                )

    def _after_commit(self, chain: Chain, admitted: list[Record]) -> None:
        for record in admitted:
            self._add_to_index(record)
            if record.kind == SNAPSHOT:
                self._last_snapshot = record.seq
        try:
            self._write_high_water(chain, durable=False)
            if chain.size - self._last_snapshot >= SNAPSHOT_RECORDS and self._may_seal(chain):
                self._snapshot()
        except LedgerError as error:
            self.warnings.append((error.code, admitted[-1].seq))

    def _may_seal(self, chain: Chain) -> bool:
        key = chain.state.keys.get(self._writer().id)
        return key is not None and "seal" in key.roles

    def _snapshot(self) -> Record:
        """Record a snapshot over whatever head the transaction finds."""
        for _ in range(SNAPSHOT_TRIES):
            chain = self._current_chain()
            state = self.blobs.put(chain.state.to_bytes(), JSON)
            tree = [item.hex() for item in chain.tree.to_hashes()]
            try:
                return self.append(SNAPSHOT, {"state": state.model_dump(), "tree": tree})
            except UsageError as error:
                if error.code != "SNAPSHOT_WRONG":  # another process appended in between: try again
                    raise
        raise UsageError("LEDGER_BUSY", "other processes append too fast for a snapshot")

    def _current_chain(self) -> Chain:
        """The chain at the newest record; rows that other processes appended are taken in."""
        size, last_id = self.store.tail()
        if self._chain is None or self._chain.size < size:
            self._chain = self._taken_in(self._chain, size)
        chain = self._chain
        if size < chain.size:
            raise EvidenceError(
                "LEDGER_ROLLED_BACK",
                f"the ledger has {size} records, this process saw {chain.size}",
                expected=str(chain.size),
                actual=str(size),
            )
        if last_id is not None and chain.last_id != "sha256:" + last_id.hex():
            raise EvidenceError(
                "ROW_ID_WRONG", f"the id stored at seq {size - 1} is not its record's"
            )
        return chain

    def _taken_in(self, chain: Chain | None, size: int) -> Chain:
        """The chain after rows that this process did not write, each admitted by every rule.

        Whoever can write the folder can write rows. So signatures are checked, but for the records under the
        high-water file: those a writer of this user admitted, and the root there shows that they are the same.
        """
        mark = self._high_water()
        known = mark.size if mark is not None and mark.size <= size else 0
        chain = chain or self._load_chain(known)
        self._expect_first(chain)
        self._chain = None  # until all of it stands
        try:
            for record in self.records(chain.size, size):
                self._take_in(chain, record, signature_known_good=record.seq < known)
                if mark is not None and chain.size == known:
                    highwater.expect_root(mark, chain.tree.root())
        except EvidenceError as error:
            error.hint = (
                "nothing was appended; evidence verify says what does not hold in this ledger"
            )
            raise
        return chain

    def _expect_first(self, chain: Chain) -> None:
        """Record 0, by which the high-water file is found, is the one that the chain begins with."""
        first = self.at(0)
        if chain.size and first is not None and first.id != chain.state.ledger_id:
            raise EvidenceError("LEDGER_UNREADABLE", "the store gives two records for seq 0", seq=0)

    def _take_in(self, chain: Chain, record: Record, *, signature_known_good: bool) -> None:
        chain.admit(record, signature_known_good=signature_known_good)
        self._cache.add(record)
        if record.seq >= self._index.size:
            self._add_to_index(record)
        if record.kind == SNAPSHOT:
            self._last_snapshot = record.seq

    def _high_water(self) -> highwater.HighWater | None:
        try:
            return restores.mark_of(self, self._state_dir)
        except UsageError:
            return None  # it was readable when the ledger was opened; without it every signature is checked

    def _load_chain(self, known: int) -> Chain:
        """Start from the newest whole snapshot among the records known good, else from the beginning."""
        for seq in reversed(self._look_up(lambda index: index.of_kind(SNAPSHOT))):
            chain = self._chain_at(seq) if seq < known else None
            if chain is not None:
                return chain
        return Chain(State(), CompactRange(), None, self.find)

    def _chain_at(self, seq: int) -> Chain | None:
        record = self.at(seq)
        return None if record is None else chain_at(record, self.blobs, self.find)

    def _check_high_water(self) -> None:
        """Refuse a ledger that went back, unless root's restore record names exactly the head it had.

        That is what a crash in the middle of a restore leaves, and what the other machines of a restored
        ledger find: the file is lowered here, and looked at again.
        """
        for _ in range(SETTLE_TRIES):
            # the file before the size: other processes append, and bring the file forward, in between
            mark = restores.mark_of(self, self._state_dir)
            try:
                highwater.standing(mark, self.size, self._root_at)
            except EvidenceError as error:
                if error.code not in restores.ALARMS or mark is None or self._state_dir is None:
                    raise
                settled = restores.settle(self, self._state_dir, mark)
                if settled is None:
                    raise
                self.warnings.append(("LEDGER_RESTORED", settled.seq))
            else:
                return
        raise UsageError("LEDGER_BUSY", "other processes keep changing the high-water file")

    def _root_at(self, size: int) -> bytes:
        """The root over the first records, from the newest snapshot that is itself among them.

        A snapshot's tree is a claim that nobody checked. With its own record and all later ones hashed in, a
        root that fits shows that they are the very records; a snapshot just behind them would show nothing.
        """
        tree = self._load_chain(size).tree
        for _, _, signature, entry in self.store.rows(tree.size, size):
            tree.append(leaf_hash(signature + entry))
        return tree.root()

    def _write_high_water(self, chain: Chain, *, durable: bool) -> None:
        if self._state_dir is None or chain.last_id is None:
            return
        mark = highwater.HighWater(
            ledger=chain.state.ledger_id,
            size=chain.size,
            root=chain.tree.root(),
            last_id=chain.last_id,
        )
        try:
            highwater.write(self._state_dir, mark, durable=durable)
        except OSError:  # the records are durable; only what helps later could not be written
            self.warnings.append(("HIGHWATER_LAGS", chain.size - 1))


def _as_usage(error: LedgerError) -> UsageError:
    """What the rules say of a draft is the caller's doing."""
    if isinstance(error, UsageError):
        return error
    return UsageError(
        error.code,
        error.message,
        field=error.field,
        expected=error.expected,
        actual=error.actual,
        hint=error.hint,
    )


def _outcome(waiting: _Waiting) -> Record:
    if waiting.error is not None:
        raise waiting.error
    assert waiting.record is not None  # a done append has one or the other
    return waiting.record
