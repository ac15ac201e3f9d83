"""Connections to the one SQLite library: how files are opened, which settings they get, what its errors become.

Trusted for: nothing. A setting is read back after it was set, a stranger's schema is compared text by text, and
whatever the library raises over a damaged file is one error of ours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pysqlite3 import dbapi2 as sqlite

from ledger.errors import EvidenceError, UsageError
from ledger.store.durable import BUSY_TIMEOUT_MS, FORMAT_VERSION

APPLICATION_ID = 0x45564C47  # "EVLG"
PAGE_BYTES = 8192

Connection = Any
DAMAGE = (sqlite.Error, UnicodeDecodeError)
"""What the library raises over a damaged file: its own errors, or one about their text, which quotes the file."""

PRAGMAS: dict[str, int | str] = {
    "journal_mode": "wal",
    "synchronous": 2,
    "recursive_triggers": 1,
    "foreign_keys": 0,
    "trusted_schema": 0,
    "mmap_size": 0,
    "application_id": APPLICATION_ID,
    "user_version": FORMAT_VERSION,
}


@cache
def sql(name: str) -> str:
    """The text of one of this package's SQL files."""
    return resources.files(__package__).joinpath("sql", name).read_text(encoding="utf-8")


def _queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for part in sql("queries.sql").split("-- name: ")[1:]:
        name, text = part.split("\n", 1)
        found[name.strip()] = text.strip()
    return found


QUERIES = _queries()


def check_library() -> None:
    """Refuse a SQLite library with the WAL-reset bug (3.7.0 to 3.51.2, fixed in 3.44.6 and 3.50.7).

    Raises:
        UsageError: `SQLITE_UNSAFE`.
    """
    version = sqlite.sqlite_version_info
    fixed = (
        version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    )
    if not fixed:
        raise UsageError(
            "SQLITE_UNSAFE",
            "this SQLite can lose committed records in WAL mode",
            expected="3.51.3 or newer",
            actual=sqlite.sqlite_version,
        )


def read_only(path: Path) -> UsageError:
    """Why a ledger cannot be written, and what to do: its file system is read-only, or its files are another's."""
    with suppress(OSError):
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return UsageError(
                "LEDGER_READ_ONLY",
                f"{path} lies on a file system that is read-only",
                hint="mount it to be written, or copy the ledger's folder; to read and to verify it needs no writing",
            )
    return UsageError(
        "LEDGER_READ_ONLY",
        f"{path} or its folder cannot be written",
        hint="see to whom its folder and files belong: this user may not write there",
    )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what the database library raises into one error of ours; the one boundary for it."""
    try:
        yield
    except sqlite.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise UsageError("LEDGER_BUSY", f"{path.name} is held by another process") from error
        if "readonly" in str(error):
            raise read_only(path) from error
        if "unable to open" in str(error):
            raise UsageError("LEDGER_UNREADABLE", f"{path} cannot be opened") from error
        if "disk is full" in str(error):
            raise UsageError("DISK_FULL", f"no space is left for {path.name}") from error
        raise EvidenceError("LEDGER_UNREADABLE", f"{path.name}: {error}") from error
    except DAMAGE as error:
        raise EvidenceError("LEDGER_UNREADABLE", f"{path.name}: {error}") from error


def objects(db: Connection) -> dict[tuple[str, str], str]:
    """The text of every table, index, view and trigger of a database, by kind and name.

    All of them, SQLite's own too: an index under such a name would answer in place of the table, a trigger would act, and
    statistics steer what is asked.

    Raises:
        EvidenceError: `LEDGER_SCHEMA`, there are two of one kind and name.
    """
    # in a hostile file each of the three may be of any type
    rows = db.execute(QUERIES["objects"]).fetchall()
    found = {(str(kind), str(name)): str(text) for kind, name, text in rows}
    if len(found) != len(rows):
        raise EvidenceError("LEDGER_SCHEMA", "something stands twice in the database's schema")
    return found


def expected_objects(script: str) -> dict[tuple[str, str], str]:
    """What `objects` gives for a database that one of this package's scripts has just made."""
    db = sqlite.connect(":memory:")
    try:
        db.executescript(sql(script))
        return objects(db)
    finally:
        db.close()


def quoted(path: Path) -> str:
    """A path as part of a `file:` URI, whatever bytes its name has."""
    return quote(os.fsencode(path.absolute()))


def connect(path: Path, mode: str) -> Connection:
    """A connection in autocommit mode; text that is no UTF-8 is read as other text than ours, never as an error."""
    db = sqlite.connect(
        f"file:{quoted(path)}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    return db


def connect_patiently(path: Path, mode: str, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Connection:
    """A connection that waits so long for a lock that another process holds."""
    db = connect(path, mode)
    db.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
    return db


def set_pragmas(db: Connection) -> None:
    """Set each pragma and read it back: SQLite ignores one it does not know.

    One that is as it must be is left alone: to set what the file keeps is a commit of its own.
    """
    for name, value in PRAGMAS.items():
        if _pragma(db, name) == value:
            continue
        db.execute(f"PRAGMA {name} = {value}")
        actual = _pragma(db, name)
        if actual != value:
            raise UsageError(
                "SQLITE_UNSAFE",
                f"pragma {name} did not take",
                expected=str(value),
                actual=str(actual),
            )


def _pragma(db: Connection, name: str) -> int | str:
    row = db.execute(f"PRAGMA {name}").fetchone()
    return row[0] if row else 0


def reading_mode(path: Path) -> str:
    """How to open a file so that reading leaves its folder as it is.

    SQLite makes files beside a database in WAL mode even to read it, and only a connection that may write takes them
    away when it closes. So where there are none yet we open as such a connection, which changes nothing: `query_only` is
    set, and there is no log to take in. Where files lie beside it already, they are used and left. Where none can be
    made, nobody writes either, and the file is read as it stands.
    """
    there = {
        suffix
        for suffix in ("-journal", "-wal", "-shm")
        if os.path.lexists(path.with_name(path.name + suffix))
    }
    if "-wal" not in there and not os.access(path.parent, os.W_OK):
        return "ro&immutable=1"
    return "ro" if there else "rw"


def check_file(path: Path) -> None:
    """Refuse what is no regular file, or has something else than one beside it under its name.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `LEDGER_UNREADABLE`.
        EvidenceError: `UNSAFE_PATH`.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise UsageError("LEDGER_NOT_FOUND", f"there is no ledger at {path.parent}") from None
    except OSError as error:
        raise UsageError("LEDGER_UNREADABLE", f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise EvidenceError("UNSAFE_PATH", f"{path} is not a regular file")
    for suffix in ("-journal", "-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if not is_plain(beside):  # a pipe here would hold the library for ever
            raise EvidenceError("UNSAFE_PATH", f"{beside.name} is not a regular file")


def is_plain(path: Path) -> bool:
    """Whether there is a regular file or nothing: another process may remove it at any time."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise UsageError("LEDGER_UNREADABLE", f"{path}: {error.strerror}") from error


def check_identity(db: Connection, path: Path) -> None:
    """Refuse a database that is no ledger's, or one of another format.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`, `FORMAT_UNKNOWN`.
    """
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise EvidenceError("LEDGER_UNREADABLE", f"{path.name} is not a ledger's database")
    if version != FORMAT_VERSION:
        raise EvidenceError(
            "FORMAT_UNKNOWN",
            f"the ledger has format version {version}",
            expected=str(FORMAT_VERSION),
            actual=str(version),
        )
