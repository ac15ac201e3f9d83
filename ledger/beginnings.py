"""A beginning that was cut short: what a killed `Ledger.create` leaves, told from a ledger, and begun again.

A ledger that was begun has two records, the second of which enrols its writer. A folder with files of ours only and no record
but perhaps record 0 holds nothing that anybody could have written: there was no key to write with. It is taken over. Everything
else is left as it is, also a ledger of which somebody cut all but record 0, where the high-water file still knows better.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger import disk, highwater
from ledger import record as records
from ledger.errors import LedgerError, UsageError
from ledger.reading import DATABASE, INDEX
from ledger.store.connection import (
    APPLICATION_ID,
    check_file,
    connect_patiently,
    is_plain,
    objects,
    translated,
)
from ledger.store.sqlite import SqliteStore

_BESIDE = ("-wal", "-shm", "-journal")
_INDEX_FILES = [INDEX, *(INDEX + suffix for suffix in _BESIDE)]
_STORE_FILES = [*(DATABASE + suffix for suffix in _BESIDE), DATABASE]
_REMOVED_IN_ORDER = [*_INDEX_FILES, *_STORE_FILES]
"""The database last: whoever is killed while they remove it leaves again a beginning that was cut short."""


@contextmanager
def taken(folder: Path, state_dir: Path | None) -> Iterator[None]:
    """Hold a free folder while a ledger is begun in it; the system lets go of it when the process dies.

    Raises:
        UsageError: `LEDGER_BUSY`, another process begins a ledger there; `LEDGER_EXISTS`, the folder is not free;
            `OS_REFUSED`.
    """
    with disk.translated(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with disk.translated(folder):
            _lock(handle, folder)
            if not is_free(folder, state_dir):
                raise UsageError("LEDGER_EXISTS", f"{folder} is not an empty folder")
            for name in _REMOVED_IN_ORDER:
                (folder / name).unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def is_free(folder: Path, state_dir: Path | None) -> bool:
    """Whether a folder is empty, or holds no more than a beginning that was cut short.

    Args:
        folder: one that exists.
        state_dir: where high-water files are kept; None for nowhere.
    """
    found = {item.name for item in folder.iterdir()}
    if not found <= set(_REMOVED_IN_ORDER) or not all(is_plain(folder / name) for name in found):
        return False
    if DATABASE not in found:
        return found <= set(_INDEX_FILES)  # a log without its database could hold anything
    try:
        return _holds_nothing(folder / DATABASE, state_dir)
    except LedgerError:
        return False  # whatever it is, it is none of ours that was cut short


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError("LEDGER_BUSY", f"another process begins a ledger in {folder}") from None


def _holds_nothing(database: Path, state_dir: Path | None) -> bool:
    check_file(database)
    with translated(database):
        db = connect_patiently(database, "rw")  # what a kill left in a journal is rolled back
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA query_only = ON")
            whose = db.execute("PRAGMA application_id").fetchone()[0]
            if not objects(db):
                return whose in (0, APPLICATION_ID)
        finally:
            db.close()
    store = SqliteStore.open_reader(database)
    try:
        return store.newest_seal() is None and _no_more_than_record_0(store, state_dir)
    finally:
        store.close()


def _no_more_than_record_0(store: SqliteStore, state_dir: Path | None) -> bool:
    size = store.tail()[0]
    row = store.row(0)
    if size == 0 or row is None:
        return size == 0
    first = records.parse(row[3], row[2])
    mark = None if state_dir is None else highwater.read(state_dir, first.id)
    return size == 1 and first.kind == "ledger.created" and (mark is None or mark.size <= 1)
