"""A copy of a live ledger: the database at one moment, then every blob that its records name.

A blob is there before the record that names it, so a copy of the database taken first finds all of them, whoever appends
meanwhile. The high-water file does not travel: it says what this machine saw. Put back in the ledger's place the
copy is therefore noticed as older, and `Ledger.restore` goes on from it by root's word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ledger import record as records
from ledger.blobs import BlobStore, blobs_of
from ledger.errors import EvidenceError
from ledger.reading import BLOBS, DATABASE
from ledger.store.choose import open_reader
from ledger.store.durable import Store
from ledger.store.sqlite import SqliteStore


@dataclass
class Copied:
    """What a copy holds.

    Attributes:
        blobs: how many were copied.
        blob_bytes: their bytes.
        absent: digests that records name and that the ledger has not, or has with other bytes; withheld ones too.
    """

    blobs: int = 0
    blob_bytes: int = 0
    absent: list[str] = field(default_factory=list)


def _from_server(store: Store, database: Path) -> None:
    """The records and seals of a shared store, as they are at one moment, in a file of the same form as any other."""
    target = SqliteStore.create(database)
    try:
        with store.snapshot(), target.transaction():
            rows = (records.parse(entry, signature) for _, _, signature, entry in store.rows())
            target.append(record.as_row() for record in rows)
            for size, note in store.seals():
                target.put_seal(size, note)
    finally:
        target.close()


def copy_ledger(folder: Path, place: Path) -> Copied:
    """Copy a ledger, which others may be writing, into an empty folder.

    Args:
        folder: the ledger's.
        place: empty.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `LEDGER_BUSY`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: the store's own; what reading a record says of one.
    """
    opened = open_reader(folder)
    try:
        if isinstance(opened, SqliteStore):
            opened.copy_to(place / DATABASE)
        else:
            _from_server(opened, place / DATABASE)
    finally:
        opened.close()
    copied, seen = Copied(), set[str]()
    source, target = BlobStore(folder / BLOBS), BlobStore(place / BLOBS)
    store = SqliteStore.open_reader(place / DATABASE)
    try:
        for _, _, signature, entry in store.rows():
            record = records.sound(records.parse(entry, signature))
            for digest, size in blobs_of(record.kind, record.body):
                if digest not in seen:
                    seen.add(digest)
                    _copy(source, target, digest, size, copied)
    finally:
        store.close()
    return copied


def _copy(source: BlobStore, target: BlobStore, digest: str, size: int, copied: Copied) -> None:
    try:
        with source.open(digest) as stream:
            target.receive(stream, digest)
    except EvidenceError as error:
        if error.code not in {"BLOB_MISSING", "BLOB_WRONG"}:
            raise
        copied.absent.append(digest)
    else:
        copied.blobs += 1
        copied.blob_bytes += size
