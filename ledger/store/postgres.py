"""The durable store of several machines: a schema of a PostgreSQL database (spec: ledger.md, section 9).

Trusted for: nothing, as little as the file. The same protocol: one writer at a time under an advisory lock, one
transaction a group, the commit synced before it is acknowledged. A connection that broke is made anew where nothing
was under way; while the server starts again it is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import errors, sql

from ledger.errors import EvidenceError, UsageError
from ledger.store.address import Address, Pointer
from ledger.store.connection import sql as sql_text
from ledger.store.durable import (
    BUSY_TIMEOUT_MS,
    FORMAT_VERSION,
    Row,
    checked_seal,
    checked_tail,
    walk,
)
from ledger.store.postgres_schema import check_schema

CONNECT_S = 10
AGAIN_S = 0.2
SETTINGS = "-c search_path=pg_catalog -c synchronous_commit=on -c client_encoding=UTF8 -c default_transaction_isolation=read\\ committed"

_ROWS = """SELECT seq, CASE WHEN octet_length(id) = 32 THEN id END,
    CASE WHEN octet_length(signature) = 64 THEN signature END,
    CASE WHEN octet_length(entry) <= 65535 THEN entry END, octet_length(entry)
FROM ONLY {schema}.records WHERE seq >= %s AND seq <= %s ORDER BY seq"""
_TAIL = "SELECT seq, id FROM ONLY {schema}.records ORDER BY seq DESC LIMIT 1"
_NEXT = "SELECT min(seq) FROM ONLY {schema}.records WHERE seq >= %s"
_APPEND = (
    "INSERT INTO {schema}.records (seq, id, prev, signature, entry) VALUES (%s, %s, %s, %s, %s)"
)
_PUT_SEAL = "INSERT INTO {schema}.seals (size, note) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_SEALS = "SELECT size, CASE WHEN octet_length(note) <= 1000000 THEN note END FROM ONLY {schema}.seals ORDER BY size"
# one message, one answer: begin, how long to wait, the lock
_BEGIN = """BEGIN; SET LOCAL lock_timeout = {wait_ms};
SELECT pg_advisory_xact_lock(hashtextextended('{schema}', 0))"""
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """Records and seals of one ledger; open it with `create`, `open_writer` or `open_reader`."""

    def __init__(
        self, address: Address, pointer: Pointer, *, writable: bool, busy_timeout_ms: int
    ) -> None:
        self.path = Path(f"{pointer.server.database}.{pointer.schema}")
        self.writable = writable
        self.deviations: list[str] = []
        self._address = address
        self._pointer = pointer
        self._busy_s = busy_timeout_ms / 1000
        self._db = self._connected()

    @classmethod
    def create(cls, address: Address, pointer: Pointer) -> PostgresStore:
        """Make a new, empty store in a schema of its own, and two roles: one may only append, one only read.

        Where the user may not make roles there are none, and `deviations` stays empty all the same.

        Raises:
            UsageError: `LEDGER_EXISTS`, `STORE_UNSAFE`, `STORE_UNREACHABLE`, `LEDGER_READ_ONLY`.
        """
        store = cls(address, pointer, writable=True, busy_timeout_ms=BUSY_TIMEOUT_MS)
        try:
            with store._translated(), store._db.transaction():
                store._script("postgres.sql", schema=pointer.schema)
                with suppress(errors.InsufficientPrivilege), store._db.transaction():
                    roles = {name: f"{pointer.schema}_{name}" for name in ("append", "read")}
                    store._script("postgres_roles.sql", schema=pointer.schema, **roles)
            store._check()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_writer(
        cls, address: Address, pointer: Pointer, busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> PostgresStore:
        """Open an existing store to append.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`, `STORE_UNSAFE`, `STORE_UNREACHABLE`.
            EvidenceError: `LEDGER_UNREADABLE`, `LEDGER_SCHEMA`, `FORMAT_UNKNOWN`.
        """
        store = cls(address, pointer, writable=True, busy_timeout_ms=busy_timeout_ms)
        try:
            store._check()
            store._check_may_append()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_reader(cls, address: Address, pointer: Pointer) -> PostgresStore:
        """Open a store, maybe from a stranger, only to read.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `STORE_UNREACHABLE`.
            EvidenceError: `LEDGER_UNREADABLE`, `LEDGER_SCHEMA`, `FORMAT_UNKNOWN`.
        """
        store = cls(address, pointer, writable=False, busy_timeout_ms=BUSY_TIMEOUT_MS)
        try:
            store._check()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @classmethod
    def drop(cls, address: Address, pointer: Pointer) -> None:
        """Take away a store whose ledger could not be begun; the first error is what is told."""
        with suppress(UsageError, EvidenceError):
            store = cls(address, pointer, writable=True, busy_timeout_ms=BUSY_TIMEOUT_MS)
            with store._db, store._translated(), store._db.transaction():
                for name in ("append", "read"):
                    store._drop_role(f"{pointer.schema}_{name}")
                store._db.execute(store._query("DROP SCHEMA {schema} CASCADE"))

    def _drop_role(self, name: str) -> None:
        found = self._db.execute("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s", [name])
        if found.fetchone():
            role = sql.Identifier(name)
            self._db.execute(sql.SQL("DROP OWNED BY {role}; DROP ROLE {role}").format(role=role))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One write transaction, the write lock taken first; durable when it returns.

        Raises:
            UsageError: `LEDGER_BUSY`, `LEDGER_READ_ONLY`, `STORE_UNREACHABLE`, `DISK_FULL`.
            EvidenceError: `LEDGER_UNREADABLE`, the server failed: nothing of the group is kept, or whether it is shows
                when the ledger is opened again; the message says which.
        """
        try:
            with self._translated():
                self._begin(
                    _BEGIN.format(wait_ms=int(self._busy_s * 1000), schema=self._pointer.schema)
                )
            yield
            with self._translated():
                self._commit()
        except BaseException:
            self._rollback()
            raise

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except psycopg.OperationalError as error:
            if self._db.broken or self._db.closed:
                raise EvidenceError(
                    "LEDGER_UNREADABLE",
                    f"{self.path.name}: the connection broke at the commit;"
                    " whether the group was kept shows when the ledger is opened again",
                ) from error
            raise

    def _rollback(self) -> None:
        with suppress(psycopg.Error):  # a connection that broke has rolled back
            self._db.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One read transaction: everything read in it is the ledger at one moment, whoever appends meanwhile.

        Raises:
            UsageError: `STORE_UNREACHABLE`.
            EvidenceError: `LEDGER_UNREADABLE`.
        """
        with self._translated():
            self._begin(_BEGIN_READING)
        try:
            yield
        finally:
            self._rollback()

    def tail(self) -> tuple[int, bytes | None]:
        """Number of records and the id stored beside the last one."""
        return checked_tail(self._one(_TAIL))

    def append(self, rows: Iterable[tuple[int, bytes, bytes | None, bytes, bytes]]) -> None:
        """Insert (seq, id, prev, signature, entry) rows inside a transaction."""
        with self._translated(), self._db.cursor() as cursor:
            cursor.executemany(self._query(_APPEND), rows)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """(seq, stored id, signature, entry) in seq order, a few at a time.

        Args:
            start: the first seq; `FIRST_SEQ` for whatever hostile rows there are, below zero too.
            stop: the seq to stop before; None for all there are.

        Raises:
            EvidenceError: `LEDGER_UNREADABLE`, a column has another type than it must; `ENTRY_TOO_LARGE`.
        """
        return walk(start, stop, self._batch, self._next_seq)

    def _batch(self, start: int, last: int) -> tuple[list[tuple[Any, ...]], int]:
        return self._all(_ROWS, start, last), last

    def _next_seq(self, start: int) -> int | None:
        row = self._one(_NEXT, start)
        return None if row is None else row[0]

    def row(self, seq: int) -> Row | None:
        """The row at a seq, or None."""
        return next(self.rows(seq, seq + 1), None)

    def put_seal(self, size: int, note: bytes) -> None:
        """Keep a seal; one that is there already stays."""
        with self._translated():
            self._revived()
            self._db.execute(self._query(_PUT_SEAL), (size, note))

    def seals(self) -> Iterator[tuple[int, bytes]]:
        """(size, note) of every seal, by size."""
        return map(checked_seal, self._all(_SEALS))

    def newest_seal(self) -> tuple[int, bytes] | None:
        """(size, note) of the largest seal."""
        row = self._one(_SEALS + " DESC LIMIT 1")
        return None if row is None else checked_seal(row)

    # --- the connection ------------------------------------------------------------------------

    def _connected(self) -> Connection:
        """A new connection; a server that starts is waited for."""
        server = self._pointer.server
        until = time.monotonic() + self._busy_s
        while True:
            try:
                return psycopg.connect(
                    host=server.host,
                    port=server.port,
                    dbname=server.database,
                    user=self._address.user,
                    options=SETTINGS,
                    connect_timeout=CONNECT_S,
                    application_name="evidence",
                    autocommit=True,
                )
            except psycopg.OperationalError as error:
                told = " ".join(str(error).split())
                if (
                    "starting up" not in told and "in recovery" not in told
                ) or time.monotonic() > until:
                    raise UsageError("STORE_UNREACHABLE", f"{server}: {told[:300]}") from None
            time.sleep(AGAIN_S)

    def _begin(self, statements: str) -> None:
        """Begin a transaction, on a new connection where the old one turns out to be broken."""
        self._revived()
        try:
            self._db.execute(statements.encode())
        except psycopg.OperationalError:
            if not self._db.broken:
                raise
            self._revived()
            self._db.execute(statements.encode())

    def _revived(self) -> None:
        """Make a connection that is known to be broken anew; try as long as a busy store would be waited for."""
        until = time.monotonic() + self._busy_s
        while self._db.closed or self._db.broken:
            try:
                self._db = self._connected()
            except UsageError:
                if time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)

    def _one(self, query: LiteralString, *values: int) -> tuple[Any, ...] | None:
        found = self._all(query, *values)
        return found[0] if found else None

    def _all(self, query: LiteralString, *values: int) -> list[tuple[Any, ...]]:
        with self._translated():
            idle = self._db.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS
            self._revived()
            try:
                return self._db.execute(self._query(query), values, binary=True).fetchall()
            except psycopg.OperationalError:
                if not self._db.broken or not idle:
                    raise
            self._revived()  # nothing was under way: the question is asked again
            return self._db.execute(self._query(query), values, binary=True).fetchall()

    def _query(self, text: LiteralString) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self._pointer.schema))

    def _script(self, name: str, **names: str) -> None:
        identifiers = {role: sql.Identifier(value) for role, value in names.items()}
        self._db.execute(sql.SQL(sql_text(name)).format(**identifiers))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the database library raises into one error of ours; the one boundary for it."""
        name = self.path.name
        try:
            yield
        except (errors.LockNotAvailable, errors.QueryCanceled) as error:
            raise UsageError("LEDGER_BUSY", f"{name} is held by another process") from error
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
            raise UsageError("LEDGER_READ_ONLY", f"{name}: {_told(error)}") from error
        except errors.DiskFull as error:
            raise UsageError("DISK_FULL", f"no space is left for {name}") from error
        except (errors.DuplicateSchema, errors.DuplicateObject) as error:
            raise UsageError("LEDGER_EXISTS", f"{name} exists already") from error
        except (errors.InvalidSchemaName, errors.UndefinedTable) as error:
            raise UsageError("LEDGER_NOT_FOUND", f"there is no ledger {name} there") from error
        except psycopg.Error as error:
            raise EvidenceError("LEDGER_UNREADABLE", f"{name}: {_told(error)}") from error

    def _check(self) -> None:
        """The schema as it was made, of our format; the server must sync what it acknowledges."""
        with self._translated():
            self.deviations = check_schema(self._db, self._pointer.schema)
            row = self._db.execute(
                self._query("SELECT application, format FROM ONLY {schema}.about")
            ).fetchone()
            durable = self._db.execute(
                "SELECT current_setting('fsync'), current_setting('full_page_writes')"
            ).fetchone()
        if row is None or row[0] != "evidence-ledger":
            raise EvidenceError("LEDGER_UNREADABLE", f"{self.path.name} is not a ledger's schema")
        if row[1] != FORMAT_VERSION:
            raise EvidenceError(
                "FORMAT_UNKNOWN",
                f"the ledger has format version {row[1]}",
                expected=str(FORMAT_VERSION),
                actual=str(row[1]),
            )
        if self.writable and durable != ("on", "on"):
            raise UsageError(
                "STORE_UNSAFE",
                "the server can lose what it acknowledged: fsync or full_page_writes is off",
                expected="on, on",
                actual=", ".join(durable or ()),
            )

    def _check_may_append(self) -> None:
        if self.deviations:
            raise EvidenceError("LEDGER_SCHEMA", f"not as made: {', '.join(self.deviations)}")
        table = f"{self._pointer.schema}.records"
        with self._translated():
            row = self._db.execute("SELECT has_table_privilege(%s, 'INSERT')", [table]).fetchone()
        if row is None or not row[0]:
            raise UsageError("LEDGER_READ_ONLY", f"{self.path.name} cannot be written by this user")


def _told(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300]
