"""Which records a closure's bundle holds: what the record rests on, and what shows that it may be believed.

    the record, and what it rests on through any number of refs
    record 0 and every record about keys below the seal: who could sign what
    the snapshot right under the seal: all keys as they stood, so that no revocation can be left out unnoticed
    what withholds a blob of these, or withdraws a promotion among them

The list of kinds is here once; whoever reads a bundle holds it to the same list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ledger import record as records
from ledger import seals
from ledger.blobs import blobs_of
from ledger.errors import EvidenceError, UsageError
from ledger.reading import Reading
from ledger.record import Record
from ledger.snapshots import SNAPSHOT

OFFICES = ("ledger.created", "key.enrolled", "key.revoked", "root.rotated")
"""Kinds that say who may sign: all of them travel."""

SPEAKING = ("blob.withheld", "promotion.withdrawn")
"""Kinds that travel where they speak of a record that travels."""


@dataclass(frozen=True)
class Chosen:
    """The records of a closure's bundle, by seq, and the seal that they are proven under."""

    seqs: list[int]
    snapshot: Record
    size: int
    root: bytes
    note: bytes


def choose(ledger: Reading, target: Record) -> Chosen:
    """What to carry for a record, under the newest seal that covers it.

    Raises:
        UsageError: `NOT_SEALED`, there is no such seal right over a snapshot whose state is there.
        EvidenceError: `REF_NOT_FOUND`, what it rests on is not in the ledger.
    """
    size, note, snapshot = _seal_over(ledger, target)
    found = closure_seqs(ledger, target)
    seqs = set(found) | {snapshot.seq}
    for kind in OFFICES:
        seqs.update(item.seq for item in ledger.of_kind(kind, raw=True) if item.seq < size)
    for kind in SPEAKING:
        about = (item for item in ledger.of_kind(kind) if item.seq < size)
        seqs.update(item.seq for item in about if _speaks_of(ledger, item, found))
    return Chosen(sorted(seqs), snapshot, size, seals.read_unverified(note).root, note)


def closure_seqs(ledger: Reading, target: Record) -> dict[int, str]:
    """Seq and id of a record and all that it rests on; ids only are held, a closure may be large."""
    found = {target.id: target.seq}
    queue = [target.id]
    while queue:
        name = queue.pop()
        record = target if name == target.id else ledger.find(name)
        if record is None:
            raise EvidenceError("REF_NOT_FOUND", f"record {name[7:19]} is not in the ledger")
        for _, ref in record.all_refs():
            if ref in found:
                continue
            earlier = ledger.find(ref)
            if earlier is None or earlier.seq >= record.seq:
                raise EvidenceError(
                    "REF_NOT_FOUND", f"record {ref[7:19]} is not in the ledger", record=record.id
                )
            found[ref] = earlier.seq
            queue.append(ref)
    return {seq: name for name, seq in found.items()}


def speaks_of(record: Record, about: Iterable[Record]) -> bool:
    """Whether a record of a kind of `SPEAKING` belongs beside the records that it names.

    Args:
        record: the record.
        about: those that it names and that travel.
    """
    named = list(about)
    if record.kind == "blob.withheld":
        digest = record.body["digest"]
        return any(digest == name for item in named for name, _ in blobs_of(item.kind, item.body))
    return bool(named)


def _speaks_of(ledger: Reading, record: Record, found: dict[int, str]) -> bool:
    refs = (ledger.find(ref) for _, ref in record.all_refs())
    there = (item for item in refs if item is not None and found.get(item.seq) == item.id)
    return speaks_of(record, map(records.sound, there))


def _seal_over(ledger: Reading, target: Record) -> tuple[int, bytes, Record]:
    for size, note in reversed(ledger.seals()):
        if size <= target.seq:
            break
        below = ledger.at(size - 1)
        if below is None or below.kind != SNAPSHOT:
            continue
        records.sound(below)
        if ledger.blobs.has(below.body["state"]["digest"]):
            return size, note, below
    raise UsageError(
        "NOT_SEALED",
        f"no seal over a snapshot covers seq {target.seq} yet",
        record=target.id,
        hint="seal the ledger first: evidence seal",
    )
