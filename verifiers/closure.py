"""What a closure's bundle shows: its records were in a sealed ledger, signed by whoever could sign them there.

A closure lacks the history between its records, so the chain cannot be replayed. In its place:

    every record is proven to be in the tree that the seal signs
    the snapshot right under the seal holds all keys as they stood; it is proven like the others, so whoever sealed
    vouches for it, and no revocation can be left out
    each of these keys got its office by root's statement, in a record of the bundle
    each record is signed, stated and shaped as its kind demands, and everything it names is there

What that cannot show is said in the report: the rules that take the whole history, and what was recorded of these since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger import multiproof, seals
from ledger.admission import Chain
from ledger.blobs import BlobStore
from ledger.bundles.choice import OFFICES, SPEAKING, speaks_of
from ledger.bundles.layout import Manifest
from ledger.checks import CHECKS, advance
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.snapshots import SNAPSHOT, STATE_MAX_BYTES
from ledger.state import State
from ledger.store.carried import CarriedStore

FAITH_HISTORY = (
    "that rules which take the whole history held when a record was admitted (whoever sealed the "
    "ledger stands for it; the whole ledger would show it)"
)
FAITH_SINCE = "that nothing was recorded of these since that changes what they are worth"


@dataclass(frozen=True)
class Closure:
    """A closure that holds.

    Attributes:
        target: whose it is.
        state: the reducer's state under the seal.
        size: records under the seal.
        records: how many came.
    """

    target: Record
    state: State
    size: int
    records: int


@dataclass
class Carried:
    """What came in a bundle.

    Args:
        manifest: what it says of itself.
        store: its records.
        blobs: its blobs.
        proof: the hashes of its proof.
        note: its seal.
    """

    manifest: Manifest
    store: CarriedStore
    blobs: BlobStore
    proof: list[bytes]
    note: bytes


def check_closure(carried: Carried) -> Closure:
    """Check everything that a closure can show at level records.

    Raises:
        EvidenceError: the first thing that is wrong, with its code.
    """
    manifest, store = carried.manifest, carried.store
    seal = seals.read_unverified(carried.note)
    claimed = (manifest.ledger, manifest.size, manifest.root)
    if (seal.origin, seal.size, seal.root.hex()) != claimed:
        raise EvidenceError(
            "BUNDLE_WRONG",
            "the seal is not the one that the bundle names",
            expected=" ".join(map(str, claimed)),
            actual=f"{seal.origin} {seal.size} {seal.root.hex()}"[:300],
        )
    leaves = [(record.seq, bytes.fromhex(record.id[7:])) for record in store.records()]
    multiproof.verify(leaves, seal.size, carried.proof, seal.root)
    state = _state_under(carried, seal)
    _check_keys(carried, state)
    _check_seal_key(carried.note, state, seal)
    _check_each(carried, state)
    target = _check_choice(carried, seal.size)
    return Closure(target, state, seal.size, len(leaves))


def closure_of(store: CarriedStore, target: Record) -> Iterator[Record]:
    """A record and all that it rests on, oldest first; ids only are held.

    Raises:
        EvidenceError: `REF_NOT_FOUND`.
    """
    found, queue = {target.id: target.seq}, [target.id]
    while queue:
        for _, ref in _there(store, queue.pop()).all_refs():
            if ref not in found:
                found[ref] = _there(store, ref).seq
                queue.append(ref)
    for name in sorted(found, key=found.__getitem__):
        yield _there(store, name)


def _there(store: CarriedStore, record_id: str) -> Record:
    record = store.find(record_id)
    if record is None:
        raise EvidenceError("REF_NOT_FOUND", f"record {record_id[7:19]} is not in the bundle")
    return record


def _state_under(carried: Carried, seal: seals.Seal) -> State:
    """The state that the snapshot right under the seal holds."""
    last = None
    for record in carried.store.records():
        last = record
    if last is None or last.kind != SNAPSHOT or last.seq != seal.size - 1:
        raise EvidenceError(
            "BUNDLE_WRONG", "the snapshot right under the seal is not in the bundle"
        )
    data = carried.blobs.read(last.body["state"]["digest"], STATE_MAX_BYTES)
    state = State.from_bytes(data)
    tree = CompactRange.from_hashes(last.seq, [bytes.fromhex(item) for item in last.body["tree"]])
    tree.append(bytes.fromhex(last.id[7:]))
    ours = (carried.manifest.ledger, carried.manifest.ledger_id)
    if tree.root() != seal.root or (state.origin, state.ledger_id) != ours:
        raise EvidenceError(
            "SNAPSHOT_WRONG",
            "the snapshot is of another tree or another ledger than the seal's",
            seq=last.seq,
            record=last.id,
        )
    return state


def _check_keys(carried: Carried, state: State) -> None:
    """The keys of the snapshot are those that the records about keys give, each by root's statement."""
    offices = Chain(State(), CompactRange(), None, carried.store.find)
    for record in carried.store.records():
        if record.kind not in OFFICES:
            continue
        if (record.kind == OFFICES[0]) != (record.seq == 0):
            raise EvidenceError("GENESIS_MISPLACED", "ledger.created is record 0", seq=record.seq)
        context = offices.check_apart(record)
        for check in CHECKS.get(record.kind, ()):
            check(context)
        advance(offices.state, record, offices.tree, carried.store.find)
    if (offices.state.keys, offices.state.root_key) != (state.keys, state.root_key):
        raise EvidenceError(
            "BUNDLE_WRONG",
            "the keys that the records give are not those that the snapshot holds",
            expected=f"{len(state.keys)} keys, root {state.root_key}",
            actual=f"{len(offices.state.keys)} keys, root {offices.state.root_key}",
        )


def _check_seal_key(note: bytes, state: State, seal: seals.Seal) -> None:
    publics = [
        bytes.fromhex(key.public)
        for key in state.keys.values()
        if "seal" in key.roles
        and key.from_seq <= seal.size
        and (key.until_seq is None or seal.size <= key.until_seq)
    ]
    seals.open_seal(note, state.origin, publics)


def _check_each(carried: Carried, state: State) -> None:
    """Each record by itself: origin, place beside its neighbours, key, signature, statement, refs."""
    chain = Chain(state, CompactRange(), None, carried.store.find)
    before: Record | None = None
    for record in carried.store.records():
        if record.ledger != state.origin:
            raise EvidenceError(
                "ORIGIN_FOREIGN", "the record belongs to another ledger", seq=record.seq
            )
        if before is not None and record.seq == before.seq + 1 and record.prev != before.id:
            raise EvidenceError("CHAIN_BROKEN", "prev is not the record before", seq=record.seq)
        if record.seq:  # record 0 was checked among the keys
            chain.check_apart(record)
        before = record


def _check_choice(carried: Carried, size: int) -> Record:
    """The bundle holds the record's closure and what belongs beside it, and nothing else."""
    target = _there(carried.store, str(carried.manifest.record))
    inside = {record.seq for record in closure_of(carried.store, target)}
    for record in carried.store.records():
        belongs = record.seq in inside or record.kind in OFFICES or record.seq == size - 1
        if not belongs and record.kind in SPEAKING:
            about = (_there(carried.store, ref) for _, ref in record.all_refs())
            belongs = speaks_of(record, (item for item in about if item.seq in inside))
        if not belongs:
            raise EvidenceError(
                "BUNDLE_WRONG",
                f"a {record.kind} is in the bundle that the record does not rest on",
                seq=record.seq,
                record=record.id,
            )
    return target


__all__ = ["FAITH_HISTORY", "FAITH_SINCE", "Carried", "Closure", "check_closure", "closure_of"]
