"""An untampered ledger with the chain saved before every record, so that a case starts where it differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import orjson

from campaigns.tamper.growing import OTHER_ORIGIN, Grower, Steps, grow, key
from ledger import canonical, ed25519
from ledger import record as records
from ledger.admission import Chain
from ledger.dsse import pae
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.state import State
from verifiers import signature_worker
from verifiers.chain import ChainResult, Passed, Row, verify_chain

MEMO_ENTRIES = 100_000


class ForkedPassed(Passed):
    """The records before a point of the base, and those that a case added; no scratch file of its own."""

    def __init__(self, base: Base, size: int) -> None:
        self._base = base
        self._size = size
        self._own: dict[str, Record] = {}

    def remember(self, record: Record) -> None:
        """Take in a record that passed."""
        self._own[record.id] = record

    def find(self, record_id: str) -> Record | None:
        """The record of an id among those that passed, or None."""
        found = self._own.get(record_id)
        if found is not None:
            return found
        seq = self._base.seqs.get(record_id)
        return self._base.records[seq] if seq is not None and seq < self._size else None

    def close(self) -> None:
        """Nothing is open: the base is other cases' too."""


@dataclass(frozen=True)
class _Saved:
    """What a pass carries at one point."""

    state: State
    tree: list[bytes]
    last_id: str | None
    seals_checked: int


class Base:
    """One ledger and everything that attacks on it need.

    Args:
        name: what it is called in failures.
        steps: how it is made.

    Attributes:
        rows, notes: the untampered ledger.
        records: the same records, parsed.
        writers, staters: by seq, the names of the keys that wrote and stated.
        forks, elsewhere: the ledgers of other histories and of another origin.
    """

    def __init__(self, name: str, steps: Steps) -> None:
        made = grow(steps)
        self.name = name
        self.rows = rows_of(made)
        self.notes = made.notes
        self.records = made.world.records
        self.seqs = {record.id: record.seq for record in self.records}
        self.writers = [draft.writer for draft in made.world.drafts]
        self.staters = [draft.stater for draft in made.world.drafts]
        self.names = {key(writer).id: writer for writer in {*self.writers, "leaver"}}
        self.sealed = self.notes[-1][0]
        self.head_root = made.world.chain.tree.root()
        thirds = [len(steps) * part // 4 for part in (1, 2, 3)]
        self.forks = [grow(steps, fork_after=place) for place in thirds]
        other = grow(steps, origin=OTHER_ORIGIN)
        self.elsewhere = (rows_of(other), other.notes)
        self._saved = self._walk()

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.rows)

    def begun(self, size: int) -> ChainResult:
        """A pass over the first records that found nothing, to go on with."""
        saved = self._saved[size]
        passed = ForkedPassed(self, size)
        tree = CompactRange.from_hashes(size, saved.tree)
        chain = Chain(fork(saved.state), tree, saved.last_id, passed.find, ed25519.verify)
        return ChainResult(
            chain,
            passed,
            seals_checked=saved.seals_checked,
        )

    def state_before(self, seq: int) -> State:
        """The state before a record; not to be changed."""
        return self._saved[seq].state

    def root_at(self, size: int) -> bytes:
        """The tree's root over the first records."""
        return CompactRange.from_hashes(size, self._saved[size].tree).root()

    def value(self, seq: int) -> dict[str, Any]:
        """The fields of a record, a copy of their own."""
        made: dict[str, Any] = orjson.loads(self.rows[seq][3])
        return made

    def may_sign(self, key_id: str, seq: int) -> bool:
        """Whether a key is in its window at a seq."""
        found = self.state_before(seq).keys.get(key_id)
        return found is not None and (
            found.from_seq <= seq and (found.until_seq is None or seq < found.until_seq)
        )

    def sealed_after(self, seq: int) -> int | None:
        """The smallest sealed size that covers a record, None where no seal does."""
        return next((size for size, _ in self.notes if size > seq), None)

    def _walk(self) -> list[_Saved]:
        saved: list[_Saved] = []
        self._saved = saved
        passed = ForkedPassed(self, 0)
        chain = Chain(State(), CompactRange(), None, passed.find)
        result = ChainResult(chain, passed)
        saved.append(_save(result))
        for row in self.rows:
            notes = [note for note in self.notes if note[0] == row[0] + 1]
            result = verify_chain([row], self.rows.__getitem__, notes, begun=result)
            if result.wrong:
                raise RuntimeError(f"{self.name} does not verify untampered: {result.wrong}")
            saved.append(_save(result))
        return saved


def fork(state: State) -> State:
    """A state of its own with the same content."""
    return replace(
        state,
        keys={name: replace(item, roles=list(item.roles)) for name, item in state.keys.items()},
        nonces=dict(state.nonces),
        heads=dict(state.heads),
        plans=dict(state.plans),
        runs={name: replace(run, pending=dict(run.pending)) for name, run in state.runs.items()},
    )


def rows_of(made: Grower) -> list[Row]:
    """A grown ledger's rows, as the store would give them."""
    return [
        (item.seq, bytes.fromhex(item.id[7:]), item.signature, item.entry)
        for item in made.world.records
    ]


def row(seq: int, entry: bytes, signature: bytes) -> Row:
    """A row with the id that fits it."""
    return seq, bytes.fromhex(records.record_id(signature, entry)[7:]), signature, entry


def sign(entry: bytes, name: str) -> bytes:
    """A signature of a name's key over an entry."""
    return key(name).sign(pae(records.PAYLOAD_TYPE, entry))


def signed(seq: int, value: dict[str, Any], name: str) -> Row:
    """The row of a record's fields, signed by the key of a name."""
    entry = canonical.encode(value)
    return row(seq, entry, sign(entry, name))


@contextmanager
def memoised() -> Iterator[None]:
    """Ed25519 answers remembered by (key, message, signature), in the harness only."""
    known: dict[tuple[bytes, bytes, bytes], bool] = {}
    true_verify = ed25519.verify

    def verify(public_raw: bytes, message: bytes, signature: bytes) -> bool:
        asked = (public_raw, message, signature)
        if asked not in known:
            if len(known) >= MEMO_ENTRIES:
                known.clear()
            known[asked] = true_verify(*asked)
        return known[asked]

    with patch.object(ed25519, "verify", verify), patch.object(signature_worker, "verify", verify):
        yield


def _save(result: ChainResult) -> _Saved:
    chain = result.chain
    return _Saved(
        fork(chain.state),
        chain.tree.to_hashes(),
        chain.last_id,
        result.seals_checked,
    )
