"""Which store a ledger's folder has: a file of its own, or a schema on the server that it names."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError, UsageError
from ledger.store.address import (
    POINTER,
    Address,
    Pointer,
    expect_named,
    read_pointer,
    write_pointer,
)
from ledger.store.durable import BUSY_TIMEOUT_MS, Store
from ledger.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from ledger.store.postgres import PostgresStore

DATABASE = "ledger.sqlite"
INDEX = "index.sqlite"


@contextmanager
def creating(folder: Path, address: Address | None, nonce: str) -> Iterator[Store]:
    """A new, empty store for a folder: on the server of an address, else in the folder.

    The folder says where its store lies only once the block has ended well: a beginning that is cut short leaves nothing
    that anybody could take for a ledger.

    Args:
        folder: the ledger's.
        address: of the server, None for a file in the folder.
        nonce: hex digits, of which a schema is named: two ledgers in one database must not meet.

    Raises:
        UsageError: see `SqliteStore.create` and `PostgresStore.create`.
    """
    if address is None:
        yield SqliteStore.create(folder / DATABASE)
        return
    kind = _postgres()
    pointer = Pointer(address.server, f"evidence_{nonce[:16]}")
    store = kind.create(address, pointer)
    try:
        yield store
        write_pointer(folder, pointer)
    except BaseException:
        kind.drop(address, pointer)
        raise


def open_writer(folder: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Store:
    """Open a folder's store to append.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`, `STORE_NOT_NAMED` and the store's own.
        EvidenceError: the store's own.
    """
    found = _pointer(folder)
    if found is None:
        return SqliteStore.open_writer(folder / DATABASE, busy_timeout_ms)
    return _postgres().open_writer(expect_named(found), found, busy_timeout_ms)


def open_reader(folder: Path) -> Store:
    """Open a folder's store, maybe a stranger's, only to read; see `open_writer`."""
    found = _pointer(folder)
    if found is None:
        return SqliteStore.open_reader(folder / DATABASE)
    return _postgres().open_reader(expect_named(found), found)


def index_name(folder: Path) -> str:
    """The derived index's file in a folder; where several machines share it, each has one: their locks may not meet."""
    if not (folder / POINTER).exists():
        return INDEX
    host = "".join(char if char.isalnum() else "-" for char in socket.gethostname())
    return f"index-{host[:60]}.sqlite"


def is_there(folder: Path) -> bool:
    """Whether a folder has a store, or says where it lies."""
    return (folder / DATABASE).exists() or _pointer(folder) is not None


def _postgres() -> type[PostgresStore]:
    """The shared store, whose library only those have who share one.

    Raises:
        UsageError: `STORE_UNREACHABLE`, the library is not installed.
    """
    try:
        from ledger.store.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise UsageError(
            "STORE_UNREACHABLE",
            f"{error.name} is not installed, which a shared store needs",
            hint="install the extra: pip install 'evidence-ledger[postgres]'",
        ) from None
    return PostgresStore


def _pointer(folder: Path) -> Pointer | None:
    pointer = read_pointer(folder)
    if pointer is not None and (folder / DATABASE).exists():
        raise EvidenceError("LEDGER_SCHEMA", f"{folder} has a store of its own and names another")
    return pointer
