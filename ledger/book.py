"""`Ledger`: the one way in. Open, append, read (spec: ledger.md, sections 7 to 10).

Appending is one transaction a group: the write lock is taken, records of other processes are caught up
with, each draft is admitted by the rules, signed and inserted, and the group is durable before any of its
appends returns. Threads of one process share a transaction; processes take turns.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ledger import highwater, seals, statements
from ledger import record as records
from ledger.admission import Chain, key_at
from ledger.blobs import JSON, BlobStore, blobs_of
from ledger.clock import Clock, system_clock
from ledger.dsse import pae
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.merkle import CompactRange
from ledger.record import Record, Refs
from ledger.records import KINDS
from ledger.records.base import Body, Seen, Statement, is_record_id
from ledger.state import State
from ledger.store.index import Index
from ledger.store.sqlite import SqliteStore

DATABASE = "ledger.sqlite"
INDEX = "index.sqlite"
BLOBS = "blobs"
GROUP_RECORDS = 1000
SNAPSHOT_RECORDS = 16_384
CACHE_RECORDS = 4096


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


class Ledger:
    """A ledger folder, opened by `create`, `open` or `read`.

    Attributes:
        path: the folder.
        blobs: its content-addressed files.
        store: the durable store under it.
        index_was_stale: the derived index did not fit and was made anew.
        warnings: (code, seq) of what appending noticed and did not refuse, e.g. `CLOCK_BACKWARDS`.
    """

    def __init__(
        self,
        path: Path,
        store: SqliteStore,
        index: Index,
        *,
        key: PrivateKey | None,
        clock: Clock,
        state_dir: Path | None,
    ) -> None:
        self.path = path
        self.blobs = BlobStore(path / BLOBS)
        self.warnings: list[tuple[str, int]] = []
        self.store = store
        self._index = index
        self._key = key
        self._clock = clock
        self._state_dir = state_dir
        self._chain: Chain | None = None
        self._cache: OrderedDict[str, Record] = OrderedDict()
        self._queue: list[_Waiting] = []
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.RLock()
        self._last_snapshot = 0
        self.index_was_stale = False

    # --- opening -----------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        origin: str,
        root_key: PrivateKey,
        writer_key: PrivateKey,
        writer_roles: list[str],
        nonce: str,
        owner: str = "writer",
        clock: Clock = system_clock,
        state_dir: Path | None = None,
    ) -> Ledger:
        """Make a ledger: record 0 by root, then the writer's key with root's statement.

        Args:
            path: an empty or missing folder.
            origin: the ledger's name, e.g. `example.com/support-bot`.
            root_key: signs record 0 and the writer's enrolment; not kept.
            writer_key: signs from then on.
            writer_roles: the writer's roles.
            nonce: 32 hex digits for root's statement.
            owner: whose key the writer's is.
            clock: gives the time of each record.
            state_dir: where the high-water file lies; None for none.

        Raises:
            UsageError: `LEDGER_EXISTS`, or what admission says of origin and roles.
        """
        if path.exists() and any(path.iterdir()):
            raise UsageError("LEDGER_EXISTS", f"{path} is not empty")
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = SqliteStore.create(path / DATABASE)
        ledger = cls(
            path, store, Index(path / INDEX), key=root_key, clock=clock, state_dir=state_dir
        )
        ledger._origin = origin
        ledger.append(
            "ledger.created",
            {"format": 1, "root_key": root_key.id, "root_public": root_key.public.hex()},
        )
        body = {
            "key": writer_key.id,
            "public_key": writer_key.public.hex(),
            "roles": writer_roles,
            "from_seq": 1,
            "owner": owner,
        }
        ledger.append_stated("key.enrolled", body, {}, signer=root_key, nonce=nonce)
        ledger._key = writer_key
        return ledger

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        key: PrivateKey,
        clock: Clock = system_clock,
        state_dir: Path | None = None,
    ) -> Ledger:
        """Open a ledger to append with a key; the high-water file is checked first.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`.
            EvidenceError: `LEDGER_ROLLED_BACK`, `LEDGER_FORKED`, or the store's own.
        """
        store = SqliteStore.open_writer(path / DATABASE)
        ledger = cls(path, store, Index(path / INDEX), key=key, clock=clock, state_dir=state_dir)
        ledger._catch_up_index()
        ledger._check_high_water()
        return ledger

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Open a ledger, maybe a stranger's, only to read.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`.
            EvidenceError: the store's own.
        """
        store = SqliteStore.open_reader(path / DATABASE)
        ledger = cls(path, store, Index(None), key=None, clock=system_clock, state_dir=None)
        own_index = path / INDEX
        if own_index.is_file() and not own_index.is_symlink() and own_index.stat().st_size:
            ledger._index = Index(own_index)
        ledger._catch_up_index()
        return ledger

    def close(self) -> None:
        """Write the derived index, make the high-water file durable, close the files."""
        with self._commit_lock:
            if self._key is not None and self._chain is not None and self._chain.size:
                self._write_high_water(self._chain, durable=True)
            self._index.close()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- appending ---------------------------------------------------------------------------

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

    def seal(self) -> bytes:
        """Record a snapshot and sign the tree head over it; the seal as a signed note.

        Raises:
            UsageError: `ROLE_MISSING`, the key may not seal.
        """
        key = self._writer()
        with self._commit_lock:
            self._snapshot()
            chain = self._current_chain()
            if "seal" not in key_at(chain.state, key.id, chain.size).roles:
                raise UsageError("ROLE_MISSING", "sealing needs a key with role seal", field="key")
            note = seals.sign_seal(seals.Seal(self.origin, chain.size, chain.tree.root()), key)
            with self.store.transaction():
                self.store.put_seal(chain.size, note)
            self._write_high_water(chain, durable=True)
            return note

    # --- reading -----------------------------------------------------------------------------

    @property
    def origin(self) -> str:
        """The ledger's name.

        Raises:
            EvidenceError: `LEDGER_EMPTY`.
        """
        if not hasattr(self, "_origin"):
            first = self.at(0)
            if first is None:
                raise EvidenceError("LEDGER_EMPTY", f"{self.path} holds no record")
            self._origin = first.ledger
        return self._origin

    @property
    def key(self) -> PrivateKey | None:
        """The writer's key, None for a reader."""
        return self._key

    @property
    def size(self) -> int:
        """How many records there are now."""
        return self.store.tail()[0]

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

    def at(self, seq: int) -> Record | None:
        """The record at a seq, or None."""
        row = self.store.row(seq)
        return None if row is None else records.parse(row[3], row[2])

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Records in order; parsed, not verified."""
        for _, _, signature, entry in self.store.rows(start, stop):
            yield records.parse(entry, signature)

    def get(self, name: str, *kinds: str) -> Record:
        """The record of a whole id, a prefix of six hex digits or more, or a seq written `@12`.

        Args:
            name: which record.
            kinds: the kinds it may have; any where none is given.

        Raises:
            UsageError: `REF_MALFORMED`, `REF_NOT_FOUND`, `REF_AMBIGUOUS`, `REF_KIND`.
        """
        if name.startswith("@") and name[1:].isdecimal() and len(name) < 18:
            record = self.at(int(name[1:]))
        else:
            record = self._by_prefix(name)
        if record is None:
            raise UsageError(
                "REF_NOT_FOUND", f"no record {name[:80]!r} in this ledger", record=name[:80]
            )
        if kinds and record.kind not in kinds:
            raise UsageError(
                "REF_KIND",
                f"record {name[:80]!r} is a {record.kind}",
                record=record.id,
                expected=" or ".join(kinds),
                actual=record.kind,
            )
        return record

    def find(self, record_id: str) -> Record | None:
        """The record of a whole id, certified by its hash, or None."""
        cached = self._cache.get(record_id)
        if cached is not None:
            return cached
        seq = self._index.seq_of(record_id)
        record = self.at(seq) if seq is not None else None
        if record is None or record.id != record_id:
            return None
        self._remember(record)
        return record

    def of_kind(self, kind: str) -> list[Record]:
        """Every record of a kind, in order."""
        found = (self.at(seq) for seq in self._index.of_kind(kind))
        return [record for record in found if record is not None and record.kind == kind]

    def referrers(
        self, record_id: str, role: str | None = None, kind: str | None = None
    ) -> list[Record]:
        """Records that name this one, in order, perhaps only under a role or of a kind."""
        seq = self._index.seq_of(record_id)
        if seq is None:
            return []
        found: list[Record] = []
        for edge_role, source in self._index.referrers(seq):
            record = self.at(source)
            if record is None or record_id not in record.ref_list(edge_role):
                continue
            if role in (None, edge_role) and kind in (None, record.kind):
                found.append(record)
        return found

    def seals(self) -> list[tuple[int, bytes]]:
        """(size, note) of every seal kept."""
        return self.store.seals()

    @property
    def deviations(self) -> list[str]:
        """Guard triggers that are gone from the database."""
        return self.store.deviations

    # --- inside ------------------------------------------------------------------------------

    def _writer(self) -> PrivateKey:
        if self._key is None:
            raise UsageError("LEDGER_READ_ONLY", "the ledger was opened without a key")
        return self._key

    def _by_prefix(self, name: str) -> Record | None:
        prefix = name.removeprefix("sha256:").lower()
        if not 6 <= len(prefix) <= 64 or any(char not in "0123456789abcdef" for char in prefix):
            raise UsageError("REF_MALFORMED", f"{name[:80]!r} is no record id", record=name[:80])
        full = f"sha256:{prefix}"
        if is_record_id(full):
            return self.find(full)
        found = [record for seq in self._index.with_prefix(prefix) if (record := self.at(seq))]
        found = [record for record in found if record.id[7:].startswith(prefix)]
        if len(found) > 1:
            raise UsageError("REF_AMBIGUOUS", f"{name!r} fits several records", record=name)
        return found[0] if found else None

    def _remember(self, record: Record) -> None:
        self._cache[record.id] = record
        if len(self._cache) > CACHE_RECORDS:
            self._cache.popitem(last=False)

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
                self.store.append([_row(record) for record in admitted])
        except LedgerError as error:
            self._chain = None
            self._cache.clear()  # what was admitted here was rolled back and must not be found
            for waiting in group:
                waiting.record, waiting.error = None, waiting.error or error
            admitted = []
        except BaseException:
            self._chain = None
            raise
        finally:
            for waiting in group:
                waiting.done = True
        if admitted:
            self._after_commit(chain, admitted)

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
            self._remember(record)
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
        return records.parse(entry, signature)

    def _check_blobs(self, record: Record) -> None:
        if record.kind == "checkpoint.published":
            records.check_body(record.kind, record.schema, record.body)  # its files are read below
        for digest, _ in blobs_of(record.kind, record.body):
            if not self.blobs.has(digest):
                raise UsageError(
                    "BLOB_MISSING", f"{record.kind} names blob {digest}, which is not there"
                )

    def _after_commit(self, chain: Chain, admitted: list[Record]) -> None:
        for record in admitted:
            self._index.add(record)
            if record.kind == "snapshot.recorded":
                self._last_snapshot = record.seq
        self._write_high_water(chain, durable=False)
        if chain.size - self._last_snapshot >= SNAPSHOT_RECORDS and self._may_seal(chain):
            self._snapshot()

    def _may_seal(self, chain: Chain) -> bool:
        key = chain.state.keys.get(self._writer().id)
        return key is not None and "seal" in key.roles

    def _snapshot(self) -> None:
        """Record a snapshot over whatever head the transaction finds."""
        for _ in range(16):
            chain = self._current_chain()
            state = self.blobs.put(chain.state.to_bytes(), JSON)
            tree = [item.hex() for item in chain.tree.to_hashes()]
            try:
                self.append("snapshot.recorded", {"state": state.model_dump(), "tree": tree})
            except UsageError as error:
                if error.code != "SNAPSHOT_WRONG":  # another process appended in between: try again
                    raise
            else:
                return
        raise UsageError("LEDGER_BUSY", "other processes append too fast for a snapshot")

    def _current_chain(self) -> Chain:
        """The chain at the newest record; rows that other processes appended are taken in."""
        size, last_id = self.store.tail()
        if self._chain is None:
            self._chain = self._load_chain(size)
        chain = self._chain
        if size < chain.size:
            raise EvidenceError(
                "LEDGER_ROLLED_BACK",
                f"the ledger has {size} records, this process saw {chain.size}",
                expected=str(chain.size),
                actual=str(size),
            )
        for record in self.records(chain.size, size):
            self._admit_known(chain, record)
        if last_id is not None and chain.last_id != "sha256:" + last_id.hex():
            raise EvidenceError(
                "ROW_ID_WRONG", f"the id stored at seq {size - 1} is not its record's"
            )
        return chain

    def _admit_known(self, chain: Chain, record: Record) -> None:
        chain.admit(record, signature_known_good=True)
        if record.seq >= self._index.size:
            self._index.add(record)
        if record.kind == "snapshot.recorded":
            self._last_snapshot = record.seq

    def _load_chain(self, size: int) -> Chain:
        """Start from the newest snapshot whose blob is whole, else from the beginning."""
        for seq in reversed(self._index.of_kind("snapshot.recorded")):
            chain = self._chain_at(seq) if seq < size else None
            if chain is not None:
                return chain
        return Chain(State(), CompactRange(), None, self.find)

    def _chain_at(self, seq: int) -> Chain | None:
        record = self.at(seq)
        if record is None or record.kind != "snapshot.recorded":
            return None
        try:
            records.check_body(record.kind, record.schema, record.body)
            state = State.from_bytes(self.blobs.read(record.body["state"]["digest"]))
            tree = CompactRange.from_hashes(
                seq, [bytes.fromhex(item) for item in record.body["tree"]]
            )
        except EvidenceError:
            return None  # the snapshot is only a short cut; without it the records are replayed
        return Chain(state, tree, record.prev, self.find)

    def _catch_up_index(self) -> None:
        """Bring the derived index up to the store; one that does not fit is made anew."""
        size, _ = self.store.tail()
        last = self.at(self._index.size - 1) if 0 < self._index.size <= size else None
        fits = self._index.size == 0 or (
            last is not None and bytes.fromhex(last.id[7:]) == self._index.last_id
        )
        if not fits:
            self.index_was_stale = True
            self._index.reset()
        for record in self.records(self._index.size, size):
            self._index.add(record)

    def _check_high_water(self) -> None:
        first = self.at(0)
        if self._state_dir is None or first is None:
            return
        highwater.check(self._state_dir, first.id, self.size, self._root_at)

    def _root_at(self, size: int) -> bytes:
        tree = CompactRange()
        for seq in reversed(self._index.of_kind("snapshot.recorded")):
            chain = self._chain_at(seq) if seq <= size else None
            if chain is not None:
                tree = chain.tree
                break
        for record in self.records(tree.size, size):
            tree.append(bytes.fromhex(record.id[7:]))
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
        highwater.write(self._state_dir, mark, durable=durable)


def _row(record: Record) -> tuple[int, bytes, bytes | None, bytes, bytes]:
    prev = None if record.prev is None else bytes.fromhex(record.prev[7:])
    return record.seq, bytes.fromhex(record.id[7:]), prev, record.signature, record.entry


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
