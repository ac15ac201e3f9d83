"""Making a bundle: everything is read in one read transaction, whoever appends meanwhile (spec: bundles.md).

The same ledger gives the same bytes. Nothing is verified but what is copied: places, ids, and the bytes of blobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ledger import multiproof
from ledger import record as records
from ledger.blobs import BlobStore, blobs_of
from ledger.bundles import layout
from ledger.bundles.choice import Chosen, choose
from ledger.bundles.container import Writer
from ledger.bundles.layout import BlobState, ListedBlob, Manifest, Tally
from ledger.digests import CHUNK_BYTES, PREFIX
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import CompactRange
from ledger.reading import BLOBS, Reading
from ledger.record import Record
from ledger.store.choose import open_reader
from ledger.store.durable import Store


@dataclass(frozen=True)
class LeftOut:
    """Which blobs whoever makes a bundle leaves out; withheld ones never travel.

    Args:
        every: all of them.
        checkpoints: the files of checkpoints.
        digests: these.
    """

    every: bool = False
    checkpoints: bool = False
    digests: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Exported:
    """A bundle that was made: what it says of itself, its blobs, its digest and its size in bytes."""

    manifest: Manifest
    blobs: Tally
    digest: str
    size_bytes: int


@dataclass
class Survey:
    """What the first pass over the records finds: the blobs that they name, and how long their lines are."""

    count: int = 0
    line_bytes: int = 0
    named: dict[str, int] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)
    of_checkpoints: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def take(self, record: Record) -> None:
        """Take in a record, whose body must be as its kind has it.

        Raises:
            EvidenceError: `BODY_INVALID` and what else `record.sound` says; `BUNDLE_WRONG`, two records give a blob
                different sizes; `TOO_LARGE`.
        """
        records.sound(record)
        self.count += 1
        self.line_bytes += layout.line_bytes(record.entry)
        if record.kind == "blob.withheld":
            self.withheld.add(record.body["digest"])
        for digest, size in blobs_of(record.kind, record.body):
            if self.named.setdefault(digest, size) != size:
                raise EvidenceError(
                    "BUNDLE_WRONG",
                    f"blob {digest} has two sizes",
                    seq=record.seq,
                    record=record.id,
                    expected=str(self.named[digest]),
                    actual=str(size),
                )
            if record.kind == "checkpoint.published":
                self.of_checkpoints.add(digest)
        if len(self.named) > layout.MAX_BLOBS:
            raise EvidenceError("TOO_LARGE", f"the records name over {layout.MAX_BLOBS:,} blobs")

    def listed(self, left_out: LeftOut) -> list[ListedBlob]:
        """The list of blobs, by digest."""
        return [
            ListedBlob(digest=digest, size=size, state=self._state(digest, left_out))
            for digest, size in sorted(self.named.items())
        ]

    def _state(self, digest: str, left_out: LeftOut) -> BlobState:
        if digest in self.withheld:
            return "withheld"
        if digest in self.kept:
            return "here"
        out = left_out.every or digest in left_out.digests
        out = out or (left_out.checkpoints and digest in self.of_checkpoints)
        return "left_out" if out else "here"


def export_ledger(folder: Path, stream: BinaryIO, left_out: LeftOut | None = None) -> Exported:
    """Write the whole ledger as a bundle.

    Args:
        folder: the ledger's.
        stream: where the bundle goes.
        left_out: blobs to leave out.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`.
        EvidenceError: `LEDGER_EMPTY`, `LEDGER_UNREADABLE`; `CHAIN_BROKEN`, a row is not where it belongs;
            `BLOB_MISSING` or `BLOB_WRONG`, a blob that is neither withheld nor left out.
    """
    store = open_reader(folder)
    try:
        with store.snapshot():
            survey, tree, first = Survey(), CompactRange(), None
            for record in _chained(store):
                survey.take(record)
                tree.append(bytes.fromhex(record.id[7:]))
                first = first or record
            if first is None:
                raise EvidenceError("LEDGER_EMPTY", f"{folder} holds no record")
            seals = list(store.seals())
            listed = survey.listed(left_out or LeftOut())
            manifest = Manifest(
                bundle=1,
                scope="ledger",
                ledger=first.ledger,
                ledger_id=first.id,
                record=None,
                records=survey.count,
                size=survey.count,
                root=tree.root().hex(),
                seals=len(seals),
                blobs=len(listed),
            )
            parts = _Parts(manifest, survey.line_bytes, seals, listed, BlobStore(folder / BLOBS))
            return parts.write(stream, _chained(store))
    finally:
        store.close()


def export_closure(
    ledger: Reading, target: Record, stream: BinaryIO, left_out: LeftOut | None = None
) -> Exported:
    """Write what one record rests on as a bundle, with a proof under the newest seal over it.

    Args:
        ledger: the ledger.
        target: the record.
        stream: where the bundle goes.
        left_out: blobs to leave out; the seal's snapshot always travels.

    Raises:
        UsageError: `NOT_SEALED`, no seal over a snapshot covers the record.
        EvidenceError: as `export_ledger`; `REF_NOT_FOUND`.
    """
    with ledger.store.snapshot():
        chosen = choose(ledger, target)
        survey = Survey()
        for seq in chosen.seqs:
            survey.take(_at(ledger, seq))
        survey.kept.add(chosen.snapshot.body["state"]["digest"])
        listed = survey.listed(left_out or LeftOut())
        manifest = Manifest(
            bundle=1,
            scope="closure",
            ledger=target.ledger,
            ledger_id=_at(ledger, 0).id,
            record=target.id,
            records=survey.count,
            size=chosen.size,
            root=chosen.root.hex(),
            seals=1,
            blobs=len(listed),
        )
        seals = [(chosen.size, chosen.note)]
        parts = _Parts(manifest, survey.line_bytes, seals, listed, ledger.blobs)
        parts.proof = _proof(ledger, chosen)
        return parts.write(stream, (_at(ledger, seq) for seq in chosen.seqs))


@dataclass
class _Parts:
    """The parts of a bundle in their order."""

    manifest: Manifest
    line_bytes: int
    seals: list[tuple[int, bytes]]
    listed: list[ListedBlob]
    blobs: BlobStore
    proof: bytes | None = None

    def write(self, stream: BinaryIO, rows: Iterable[Record]) -> Exported:
        """Write them."""
        writer = Writer(stream)
        writer.add(layout.MANIFEST, self.manifest.encode())
        with writer.member(layout.RECORDS, self.line_bytes):
            for record in rows:
                writer.write(layout.record_line(record.signature, record.entry))
        if self.proof is not None:
            writer.add(layout.PROOF, self.proof)
        for size, note in self.seals:
            writer.add(layout.seal_name(size), note)
        writer.add(layout.BLOB_LIST, b"".join(blob.encode() for blob in self.listed))
        for blob in self.listed:
            if blob.state == "here":
                _copy(writer, self.blobs, blob)
        digest = writer.finish()
        tally = Tally.of(blob.state for blob in self.listed)
        return Exported(self.manifest, tally, digest, writer.size_bytes)


def _copy(writer: Writer, blobs: BlobStore, blob: ListedBlob) -> None:
    """One blob; a store that has other bytes under its name gives no bundle."""
    with _opened(blobs, blob) as source, writer.member(layout.blob_name(blob.digest), blob.size):
        state, left = hashlib.sha256(), blob.size
        while left and (chunk := source.read(min(CHUNK_BYTES, left))):
            state.update(chunk)
            writer.write(chunk)
            left -= len(chunk)
        if left or source.read(1) or PREFIX + state.hexdigest() != blob.digest:
            raise EvidenceError("BLOB_WRONG", f"blob {blob.digest} has other bytes or another size")


def _opened(blobs: BlobStore, blob: ListedBlob) -> BinaryIO:
    try:
        return blobs.open(blob.digest)
    except EvidenceError as error:
        if error.code == "BLOB_MISSING":
            error.hint = f"put it back, or leave it out: --without-blobs {blob.digest}"
        raise


def _chained(store: Store) -> Iterator[Record]:
    """Every record, each in its place."""
    before: Record | None = None
    for place, (seq, _, signature, entry) in enumerate(store.rows()):
        record = records.parse(entry, signature)
        if (seq, record.seq, record.prev) != (place, place, before.id if before else None):
            raise EvidenceError(
                "CHAIN_BROKEN",
                f"the record at row {seq} does not follow the one before",
                seq=seq,
                record=record.id,
                hint="see what is wrong: evidence verify",
            )
        yield record
        before = record


def _at(ledger: Reading, seq: int) -> Record:
    record = ledger.at(seq)
    if record is None or record.seq != seq:
        raise EvidenceError("SEQ_GAP", f"there is no record {seq}", seq=seq)
    return record


def _proof(ledger: Reading, chosen: Chosen) -> bytes:
    rows = ledger.store.rows(0, chosen.size)
    leaves = (bytes.fromhex(records.record_id(row[2], row[3])[7:]) for row in rows)
    made = b"".join(multiproof.prove(leaves, chosen.seqs, chosen.size))
    if len(made) > layout.MAX_PROOF_BYTES:
        raise UsageError("TOO_LARGE", "the closure's proof is too large: export the whole ledger")
    return made
