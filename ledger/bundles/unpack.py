"""Reading somebody's bundle into an empty folder: every byte is looked at once, in order (spec: bundles.md, section 4).

What is found wrong here is what can be told without the rules: form, digests, and that the blobs listed are those that
the records name. Whether the records may be believed is the verifier's business.

    whole ledger    becomes ledger.sqlite and blobs/, a ledger's folder
    closure         becomes a database of its records and blobs/, for the verifier alone
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ledger import disk
from ledger import record as records
from ledger.blobs import BlobStore
from ledger.bundles import layout
from ledger.bundles.container import Member, Reader
from ledger.bundles.export import Survey
from ledger.bundles.layout import ListedBlob, Manifest, Tally
from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import HASH_BYTES
from ledger.reading import BLOBS, DATABASE
from ledger.record import Record
from ledger.store.carried import CarriedStore
from ledger.store.sqlite import SqliteStore

ROWS_A_COMMIT = 4096


@dataclass
class Unpacked:
    """What a bundle held.

    Attributes:
        manifest: what it says of itself; only what `unpack` says was compared.
        folder: where its records and blobs now lie.
        blobs: how many are here, withheld, left out.
        proof: hashes of a closure's proof.
        notes: (size, signed note) of every seal of a closure; a whole ledger's lie in its database.
    """

    manifest: Manifest
    folder: Path
    blobs: Tally = field(default_factory=lambda: Tally(0, 0, 0))
    proof: list[bytes] = field(default_factory=list)
    notes: list[tuple[int, bytes]] = field(default_factory=list)


def unpack(bundle: Path, folder: Path, *, whole: bool = False) -> Unpacked:
    """Read a bundle into an empty folder; where it raises, what lies there is worth nothing.

    Args:
        bundle: a file from somebody else.
        folder: empty.
        whole: only a whole ledger will do.

    Raises:
        UsageError: `BUNDLE_PARTIAL`, a whole ledger is wanted and this is a closure; `INPUT_MISSING`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: `BUNDLE_MALFORMED`, `BUNDLE_DAMAGED`, `BUNDLE_WRONG`; `BLOB_WRONG`; `UNSAFE_PATH`, it is a
            link or no regular file; what reading a record says of one.
    """
    try:
        stream = open_regular(bundle)
    except FileNotFoundError:
        raise UsageError("INPUT_MISSING", f"there is no file {bundle}") from None
    except OSError as error:
        raise UsageError("OS_REFUSED", f"{bundle}: {error.strerror}") from error
    with stream, disk.translated(bundle):
        reader = Reader(stream, os.fstat(stream.fileno()).st_size)
        return _Unpacking(reader, folder).run(whole=whole)


class _Unpacking:
    """One pass over a bundle, member after member."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader = reader
        self._folder = folder
        self._survey = Survey()

    def run(self, *, whole: bool) -> Unpacked:
        """Read all of it."""
        manifest = layout.read_manifest(self._due(layout.MANIFEST).whole(layout.MAX_MANIFEST_BYTES))
        if whole and manifest.scope != "ledger":
            raise UsageError(
                "BUNDLE_PARTIAL",
                "the bundle holds what one record rests on, not a whole ledger",
                record=manifest.record,
                hint="check it where it is: evidence verify --bundle FILE",
            )
        unpacked = Unpacked(manifest, self._folder)
        if manifest.scope == "ledger":
            self._whole(manifest)
        else:
            self._closure(manifest, unpacked)
        listed = self._list(manifest)
        store = BlobStore(self._folder / BLOBS)
        for blob in listed:
            if blob.state == "here":
                member = self._due(layout.blob_name(blob.digest))
                _agree("size of a blob", blob.size, member.size)
                store.receive(member, blob.digest)
        extra = self._reader.next()
        if extra is not None:
            raise EvidenceError("BUNDLE_MALFORMED", f"nothing called {extra.name} is due")
        unpacked.blobs = Tally.of(blob.state for blob in listed)
        return unpacked

    def _due(self, name: str) -> Member:
        """The next member, which must be the one of this name."""
        member = self._reader.next()
        if member is None or member.name != name:
            actual = "the end" if member is None else member.name
            raise EvidenceError("BUNDLE_MALFORMED", f"{name} is due", expected=name, actual=actual)
        return member

    def _whole(self, manifest: Manifest) -> None:
        store = SqliteStore.create(self._folder / DATABASE)
        try:
            batch: list[Record] = []
            last: str | None = None
            for place, record in enumerate(self._records(manifest)):
                if record.seq != place:
                    raise _gap(record, place)
                batch.append(record)
                if len(batch) == ROWS_A_COMMIT:
                    last = _append(store, batch, last)
            _append(store, batch, last)
            with store.transaction():
                for size, note in self._seals(manifest):
                    store.put_seal(size, note)
        finally:
            store.close()

    def _closure(self, manifest: Manifest, unpacked: Unpacked) -> None:
        if manifest.records > layout.MAX_CLOSURE_RECORDS:
            raise EvidenceError("TOO_LARGE", f"a closure of {manifest.records:,} records")
        with CarriedStore.create(self._folder / DATABASE) as store:
            store.add(self._records(manifest))
        data = self._due(layout.PROOF).whole(layout.MAX_PROOF_BYTES)
        if len(data) % HASH_BYTES:
            raise EvidenceError("BUNDLE_MALFORMED", "the proof is not made of whole hashes")
        unpacked.proof = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
        _agree("number of seals", 1, manifest.seals)
        unpacked.notes = list(self._seals(manifest))

    def _records(self, manifest: Manifest) -> Iterator[Record]:
        for line in self._due(layout.RECORDS).lines(layout.MAX_LINE_BYTES):
            signature, entry = layout.read_record_line(line)
            record = records.parse(entry, signature)
            self._survey.take(record)
            if self._survey.count == 1:
                _agree("id of record 0", manifest.ledger_id, record.id)
                _agree("origin", manifest.ledger, record.ledger)
            yield record
        _agree("number of records", manifest.records, self._survey.count)

    def _seals(self, manifest: Manifest) -> Iterator[tuple[int, bytes]]:
        """Seals by size, each under the name of the size that its note says."""
        before = -1
        for _ in range(manifest.seals):
            member = self._reader.next()
            name = "the end" if member is None else member.name
            digits = name.removeprefix("seals/").removesuffix(".seal")
            size = int(digits) if digits.isdecimal() and len(digits) == 20 else -1
            if member is None or name != layout.seal_name(max(size, 0)) or size <= before:
                raise EvidenceError("BUNDLE_MALFORMED", "a seal is due", actual=name)
            if size >= 1 << 63:
                raise EvidenceError(
                    "BUNDLE_MALFORMED", "a seal over more records than there can be"
                )
            before = size
            yield size, member.whole(layout.MAX_SEAL_BYTES)

    def _list(self, manifest: Manifest) -> list[ListedBlob]:
        """The list of blobs: those that the records name, by digest, withheld exactly where a record says so."""
        named, withheld = self._survey.named, self._survey.withheld
        wanted = iter(sorted(named))
        listed: list[ListedBlob] = []
        for line in self._due(layout.BLOB_LIST).lines(layout.MAX_BLOB_LINE_BYTES):
            blob = layout.read_blob_line(line)
            _agree("the list of blobs", next(wanted, None), blob.digest)
            _agree(f"size of blob {blob.digest}", named[blob.digest], blob.size)
            _agree(
                f"whether blob {blob.digest} is withheld",
                blob.digest in withheld,
                blob.state == "withheld",
            )
            listed.append(blob)
        _agree("the list of blobs", next(wanted, None), None)
        _agree("number of blobs", manifest.blobs, len(listed))
        return listed


def _append(store: SqliteStore, batch: list[Record], last: str | None) -> str | None:
    """Put records behind the last one; the id of the last of them."""
    rows = []
    for record in batch:
        prev = None if last is None else bytes.fromhex(last[7:])
        rows.append(
            (record.seq, bytes.fromhex(record.id[7:]), prev, record.signature, record.entry)
        )
        last = record.id
    with store.transaction():
        store.append(rows)
    batch.clear()
    return last


def _gap(record: Record, place: int) -> EvidenceError:
    return EvidenceError(
        "SEQ_GAP",
        f"record {record.seq} stands where {place} is due",
        seq=place,
        record=record.id,
        expected=str(place),
        actual=str(record.seq),
    )


def _agree(what: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise EvidenceError(
            "BUNDLE_WRONG",
            f"{what} is not what the rest of the bundle gives",
            expected=str(expected)[:200],
            actual=str(actual)[:200],
        )
