"""What a replay may look at: earlier records by id, blobs by digest, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ledger import canonical
from ledger.blobs import BlobStore
from ledger.errors import EvidenceError, UsageError
from ledger.record import Record

MAX_LINE_DEPTH = 64
_OF_BYTES = frozenset({"BUNDLE_PARTIAL", "BLOB_MISSING", "BLOB_WRONG", "TOO_LARGE", "UNSAFE_PATH"})


class Source(Protocol):
    """Where a view gets records from."""

    def find(self, record_id: str) -> Record | None:
        """The record of an id, certified by its hash."""


class View:
    """Records and blobs of one ledger, read-only.

    Args:
        source: finds records.
        blobs: the ledger's blobs; every read re-hashes.
    """

    def __init__(self, source: Source, blobs: BlobStore) -> None:
        self._source = source
        self.blobs = blobs

    def get(self, record_id: str) -> Record:
        """A record that another one names.

        Raises:
            EvidenceError: `REF_NOT_FOUND`.
        """
        record = self._source.find(record_id)
        if record is None:
            raise EvidenceError("REF_NOT_FOUND", f"record {record_id[:19]} is not in this ledger")
        return record

    def ref(self, record: Record, role: str) -> Record:
        """The record under a required role."""
        return self.get(str(record.ref(role)))

    def refs(self, record: Record, role: str) -> list[Record]:
        """Every record under a role, in order."""
        return [self.get(item) for item in record.ref_list(role)]

    def bytes(self, blob: dict[str, Any]) -> bytes:
        """A blob's bytes by the object that names it.

        Raises:
            EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`.
        """
        return self.blobs.read(blob["digest"])

    def json(self, blob: dict[str, Any]) -> Any:
        """A JSON blob's value."""
        return canonical.loads(self.bytes(blob), MAX_LINE_DEPTH)

    def lines(self, blob: dict[str, Any]) -> Iterator[Any]:
        """A JSON-lines blob, value by value."""
        for line in self.bytes(blob).splitlines():
            yield canonical.loads(line, MAX_LINE_DEPTH)


Replay = Callable[[Record, View], str | None]
"""Raises EvidenceError where the record's claim is not what its evidence gives; may answer with a sentence
that says what of the claim is still taken on faith."""


def expect(code: str, what: str, claimed: object, derived: object) -> None:
    """Refuse a claim that differs from what was derived.

    Raises:
        EvidenceError: with the code given.
    """
    if claimed != derived:
        raise EvidenceError(
            code,
            f"{what} is not what the evidence gives",
            field=what,
            expected=str(derived)[:200],
            actual=str(claimed)[:200],
        )


@contextmanager
def deriving(code: str) -> Iterator[None]:
    """What keeps a claim from being derived again counts against the claim, under its own code.

    Bytes that are absent or not those named keep their codes: they say nothing about the claim.

    Raises:
        EvidenceError: with the code given.
    """
    try:
        yield
    except (EvidenceError, UsageError) as error:
        if error.code == code or error.code in _OF_BYTES:
            raise
        message = f"{error.code}: {error.message}"
        raise EvidenceError(code, message, field=error.field) from error
