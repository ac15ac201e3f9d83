"""Where a shared store lies: a PostgreSQL server's address, as a user writes it and as a ledger's folder keeps it.

    postgresql://alice@db.example:5432/evidence?folder=/mnt/shared/support-bot

The folder holds the blobs and a file that says server, database and schema. That file may be a stranger's, and must
not make anybody's program dial a host: it is followed only where the user named the same server, by `--ledger` or in
`EVIDENCE_STORE`. No password stands in either; it comes from where PostgreSQL's own programs take it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from ledger import disk
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

POINTER = "ledger.postgres"
VARIABLE = "EVIDENCE_STORE"
SCHEMES = ("postgresql", "postgres")
DEFAULT_PORT = 5432
MAX_POINTER_BYTES = 4096
_SCHEMA = re.compile(r"evidence_[0-9a-f]{16}")


@dataclass(frozen=True)
class Server:
    """A database on a server; the user's name there is not part of what it is."""

    host: str
    port: int
    database: str

    def __str__(self) -> str:
        """As an address, for messages."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True)
class Address:
    """What a user wrote: the server, who they are there, and the folder of the blobs."""

    server: Server
    user: str | None
    folder: Path | None


@dataclass(frozen=True)
class Pointer:
    """What a ledger's folder says: the server and the schema of this ledger in its database."""

    server: Server
    schema: str


def is_address(text: str) -> bool:
    """Whether a text is meant as a server's address."""
    return text.partition("://")[0] in SCHEMES


def parse(text: str) -> Address:
    """The address that a text is.

    Raises:
        UsageError: `STORE_ADDRESS`; the text itself is not repeated, it may hold a password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise _no_address("it cannot be read as one") from None
    if parts.password is not None:
        raise _no_address("it holds a password; put that into a password file (~/.pgpass)")
    query = parse_qs(parts.query, keep_blank_values=True)
    database = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in SCHEMES or not parts.hostname or not database or "/" in database:
        raise _no_address("it names no host or no database")
    if parts.fragment or query.keys() - {"folder"} or len(query.get("folder", [""])) != 1:
        raise _no_address("it may only have ?folder=")
    folder = query.get("folder", [""])[0]
    user = unquote(parts.username) if parts.username else None
    server = Server(unquote(parts.hostname), port, database)
    return Address(server, user, Path(folder) if folder else None)


def named(environment: Mapping[str, str]) -> Address | None:
    """The server that the user named, if any."""
    text = environment.get(VARIABLE)
    return parse(text) if text else None


def read_pointer(folder: Path) -> Pointer | None:
    """What a folder says of its store; None where it says nothing.

    Raises:
        EvidenceError: `LEDGER_UNREADABLE`, the file is none of ours.
    """
    path = folder / POINTER
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_POINTER_BYTES))
        server = Server(str(value["host"]), int(value["port"]), str(value["database"]))
        schema = str(value["schema"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise EvidenceError(
            "LEDGER_UNREADABLE", f"{path} does not say where a store lies"
        ) from None
    if not _SCHEMA.fullmatch(schema):
        raise EvidenceError("LEDGER_UNREADABLE", f"{path} names a schema that is none of ours")
    return Pointer(server, schema)


def write_pointer(folder: Path, pointer: Pointer) -> None:
    """Keep in a folder where its store lies."""
    server = pointer.server
    value = {
        "host": server.host,
        "port": server.port,
        "database": server.database,
        "schema": pointer.schema,
    }
    aside = folder / f"{POINTER}.new"
    with disk.translated(aside):
        with aside.open("wb") as file:
            file.write(json.dumps(value, indent=1).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        aside.replace(folder / POINTER)
        disk.sync_folder(folder)


def expect_named(pointer: Pointer) -> Address:
    """The address as the user named it, which must be the one that the folder says.

    Raises:
        UsageError: `STORE_NOT_NAMED`.
    """
    address = named(os.environ)
    if address is None or address.server != pointer.server:
        raise UsageError(
            "STORE_NOT_NAMED",
            f"the records of this ledger lie in {pointer.server}, which nobody named",
            expected=str(pointer.server),
            actual=None if address is None else str(address.server),
        )
    return address


def _no_address(why: str) -> UsageError:
    return UsageError(
        "STORE_ADDRESS",
        f"the store's address is none: {why}",
        expected="postgresql://USER@HOST:PORT/DATABASE?folder=DIR",
    )
