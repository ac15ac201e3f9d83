"""Reading a ledger folder: records by place, id, kind and edge; parsed, certified by hash, not verified.

Whoever asks by name, kind or edge is about to read the body: `get`, `of_kind` and `referrers` give only records whose
bodies are as their kinds must be. What shows records of any kind, a stranger's too, asks with `raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ledger import record as records
from ledger.blobs import BlobStore
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.recent import Recent
from ledger.record import Record
from ledger.records.base import is_record_id
from ledger.rules import makers
from ledger.store.choose import DATABASE, INDEX
from ledger.store.durable import Store
from ledger.store.index import Index

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ledger.query.segments import History

BLOBS = "blobs"
CACHE_RECORDS = 2048
INDEX_TROUBLE = frozenset({"INDEX_STALE", "LEDGER_BUSY"})
"""What a derived file may answer that is damaged or held; the ledger itself answers instead."""

__all__ = ["BLOBS", "DATABASE", "INDEX", "Reading"]

Answer = TypeVar("Answer")


class Reading:
    """What a ledger answers without a key.

    Attributes:
        path: the folder.
        blobs: its content-addressed files.
        store: the durable store under it.
        index_was_stale: the derived index did not fit and was made anew.
    """

    def __init__(self, path: Path, store: Store, index: Index) -> None:
        self.path = path
        self.blobs = BlobStore(path / BLOBS)
        self.store = store
        self.index_was_stale = False
        self._index = index
        self._origin: str | None = None
        self._cache = Recent(CACHE_RECORDS)

    @property
    def origin(self) -> str:
        """The ledger's name.

        Raises:
            EvidenceError: `LEDGER_EMPTY`.
        """
        if self._origin is None:
            first = self.at(0)
            if first is None:
                raise EvidenceError("LEDGER_EMPTY", f"{self.path} holds no record")
            self._origin = first.ledger
        return self._origin

    @property
    def size(self) -> int:
        """How many records there are now."""
        return self.store.tail()[0]

    def at(self, seq: int) -> Record | None:
        """The record at a seq, or None.

        Raises:
            EvidenceError: `SEQ_GAP`, what lies there says that its place is another.
        """
        row = self.store.row(seq)
        if row is None:
            return None
        record = records.parse(row[3], row[2])
        if record.seq != seq:
            raise EvidenceError(
                "SEQ_GAP",
                f"the record at seq {seq} says that it is at {record.seq}",
                record=record.id,
                seq=seq,
                expected=str(seq),
                actual=str(record.seq),
            )
        return record

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Records in order; parsed, not verified."""
        for _, _, signature, entry in self.store.rows(start, stop):
            yield records.parse(entry, signature)

    def get(self, name: str, *kinds: str, raw: bool = False) -> Record:
        """The record of a whole id, a prefix of six hex digits or more, or a seq written `@12`.

        Args:
            name: which record.
            kinds: the kinds it may have; any where none is given.
            raw: whatever its body is.

        Raises:
            UsageError: `REF_MALFORMED`, `REF_NOT_FOUND`, `REF_AMBIGUOUS`, `REF_KIND`.
            EvidenceError: `BODY_INVALID` and what else `record.sound` says.
        """
        if name.startswith("@") and name[1:].isdecimal() and name.isascii() and len(name) < 18:
            record = self.at(int(name[1:]))
        else:
            record = self._by_prefix(name)
        if record is None:
            raise UsageError(
                "REF_NOT_FOUND",
                f"no record {name[:80]!r} in this ledger",
                record=name[:80],
                expected=" or ".join(kinds) or None,
                hint=_how_to_get(kinds),
            )
        if kinds and record.kind not in kinds:
            raise UsageError(
                "REF_KIND",
                f"record {name[:80]!r} is a {record.kind}",
                record=record.id,
                expected=" or ".join(kinds),
                actual=record.kind,
                hint=_how_to_get(kinds),
            )
        return record if raw else records.sound(record)

    def find(self, record_id: str) -> Record | None:
        """The record of a whole id, certified by its hash, or None."""
        cached = self._cache.get(record_id)
        if cached is not None:
            return cached
        seq = self._seq_of(record_id)
        record = self.at(seq) if seq is not None else None
        if record is None or record.id != record_id:
            return None
        self._cache.add(record)
        return record

    def of_kind(self, kind: str, *, raw: bool = False) -> list[Record]:
        """Every record of a kind, in order; with `raw` whatever their bodies are.

        Raises:
            EvidenceError: `BODY_INVALID` and what else `record.sound` says.
        """
        found = (self.at(seq) for seq in self._look_up(lambda index: index.of_kind(kind)))
        return [
            record if raw else records.sound(record)
            for record in found
            if record is not None and record.kind == kind
        ]

    def referrers(
        self,
        record_id: str,
        role: str | None = None,
        kind: str | None = None,
        *,
        raw: bool = False,
    ) -> list[Record]:
        """Records that name this one, in order, perhaps only under a role or of a kind; with `raw` of any body.

        Raises:
            EvidenceError: `BODY_INVALID` and what else `record.sound` says.
        """
        seq = self._seq_of(record_id)
        if seq is None:
            return []
        found: list[Record] = []
        for edge_role, source in self._look_up(lambda index: index.referrers(seq)):
            if role not in (None, edge_role):
                continue
            record = self.at(source)
            if record is None or record_id not in record.ref_list(edge_role):
                continue
            if kind in (None, record.kind):
                found.append(record if raw else records.sound(record))
        return found

    def seals(self) -> list[tuple[int, bytes]]:
        """(size, note) of every seal kept."""
        return list(self.store.seals())

    def duckdb(self, *tables: str, history: History | None = None) -> DuckDBPyConnection:
        """The ledger's tables in a DuckDB of one's own, as they are now; see docs/reference/queries.md.

        Its answers come as pandas (`.df()`), Arrow (`.to_arrow_table()`) or Polars (`.pl()`); the table `as_of`
        says at which size and root the ledger was read.

        Args:
            tables: which tables, to read less; all where none is named.
            history: where segments of long ledgers lie; None to read every record.

        Raises:
            UsageError: `QUERY_FAILED`, there is no such table.
            EvidenceError: a row is no record.
        """
        from ledger.query.notebook import duckdb_of  # noqa: PLC0415 - loads DuckDB and Arrow

        return duckdb_of(self.path, tables, history)

    def is_promoted(self, folder: Path, root: str) -> bool:
        """Whether a folder's bytes are promoted by this ledger: no model is loaded that is not.

        Every record is admitted again and every signature checked, so a large ledger takes its time. One byte more, less or
        other in the folder and it is False; so it is where the promotion was withdrawn, or rests on what root took back.

        Args:
            folder: the model's folder, every file of it.
            root: id of the root key that you trust, as `evidence key list` showed it to you elsewhere.
        """
        from ledger.promotions import is_promoted  # noqa: PLC0415 - promotions reads ledgers

        return is_promoted(self, folder, root)

    @property
    def deviations(self) -> list[str]:
        """Guard triggers that are gone from the database."""
        return self.store.deviations

    def _seq_of(self, record_id: str) -> int | None:
        """Where a record should stand; what others appended since the opening is taken in where it may be that."""
        seq = self._look_up(lambda index: index.seq_of(record_id))
        if seq is None and self._index.size < self.size:
            self._catch_up_index()
            seq = self._look_up(lambda index: index.seq_of(record_id))
        return seq

    def _look_up(self, ask: Callable[[Index], Answer]) -> Answer:
        """What the derived index says; a file that is damaged or held is done without, and all of it derived again."""
        try:
            return ask(self._index)
        except LedgerError as error:
            if error.code not in INDEX_TROUBLE:
                raise
            damaged = error.code == "INDEX_STALE"
        self.index_was_stale = self.index_was_stale or damaged
        self._index.do_without(damaged=damaged)
        self._catch_up_index()
        return ask(self._index)

    def _by_prefix(self, name: str) -> Record | None:
        prefix = name.removeprefix("sha256:").lower()
        if not 6 <= len(prefix) <= 64 or any(char not in "0123456789abcdef" for char in prefix):
            raise UsageError("REF_MALFORMED", f"{name[:80]!r} is no record id", record=name[:80])
        full = f"sha256:{prefix}"
        if is_record_id(full):
            return self.find(full)
        places = self._look_up(lambda index: index.with_prefix(prefix))
        found = [record for seq in places if (record := self.at(seq))]
        found = [record for record in found if record.id[7:].startswith(prefix)]
        if len(found) > 1:
            raise UsageError("REF_AMBIGUOUS", f"{name!r} fits several records", record=name)
        return found[0] if found else None

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
            self._cache.add(record)
            self._add_to_index(record)

    def _add_to_index(self, record: Record) -> None:
        """Index the next record; what it names was mostly fetched a moment ago and need not be looked up."""
        edges: list[tuple[str, int]] = []
        for role, ref in record.all_refs():
            named = self._cache.get(ref)
            seq = self._place(ref) if named is None else named.seq
            if seq is not None:
                edges.append((role, seq))
        if (
            record.seq >= self._index.size
        ):  # a file that was done without just now was derived again with this record
            self._index.add(record, edges)

    def _place(self, record_id: str) -> int | None:
        return self._look_up(lambda index: index.seq_of(record_id))


def _how_to_get(kinds: tuple[str, ...]) -> str | None:
    """The commands that make records of these kinds, None to leave it to the code's own hint."""
    commands = " or ".join(makers(kinds))
    return f"make it: {commands}; or find its id: evidence log" if commands else None
