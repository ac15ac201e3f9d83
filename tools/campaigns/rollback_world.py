"""The ledgers of the campaign `rollback`, and the model that says what must come of each.

A history is the ids of its records. What lies in a folder is read by SQLite alone, out of a copy, and each id is
hashed here again; so the model never asks the product what there is. A mark is the history up to the head that a
machine's high-water file holds.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from world import ORIGIN, WRITER_ROLES, clock_at, key

from ledger import merkle, statements
from ledger.book import DATABASE, Ledger
from ledger.errors import LedgerError
from ledger.highwater import HighWater, path_of
from ledger.records.base import Seen, Statement
from ledger.restores import KIND, Restored
from verifiers.report import Report
from verifiers.verify import Options, verify

History = tuple[str, ...]
WHY = "put back from a backup"


class WrongError(Exception):
    """The product did another thing than the model says."""


def expect(actual: object, expected: object, what: str) -> None:
    """Note a difference.

    Raises:
        WrongError: they differ.
    """
    if actual != expected:
        raise WrongError(f"{what}: {actual!r} where {expected!r} is due")


@dataclass
class Case:
    """What the steps of one case share: a folder, a clock and fresh nonces."""

    folder: Path
    ticks: int = 0
    nonces: int = 1000

    def clock(self) -> str:
        """The next time, a second later each."""
        self.ticks += 1
        return clock_at(self.ticks)

    def nonce(self) -> str:
        """A nonce that no statement of this case has."""
        self.nonces += 1
        return f"{self.nonces:032x}"

    def create(self, place: Path, state: Path | None, root: str = "root") -> None:
        """A new ledger: record 0, the writer's enrolment, a seal."""
        with Ledger.create(
            place,
            origin=ORIGIN,
            root_key=key(root),
            writer_key=key("writer"),
            writer_roles=WRITER_ROLES,
            nonce=self.nonce(),
            clock=self.clock,
            state_dir=state,
        ) as ledger:
            ledger.seal()

    def open(self, place: Path, state: Path | None) -> Ledger:
        """A writer's ledger on the machine whose high-water files lie in `state`."""
        return Ledger.open(place, key=key("writer"), clock=self.clock, state_dir=state)

    def note(self, place: Path, state: Path | None, count: int = 1) -> str | None:
        """Open, append notes, close; the code of a refusal to open, or None."""
        try:
            ledger = self.open(place, state)
        except LedgerError as error:
            return error.code
        with ledger:
            for _ in range(count):
                ledger.append("note.added", {"text": f"tick {self.ticks}"})
        return None

    def seal(self, place: Path, state: Path | None) -> bytes:
        """Open, seal, close; the seal."""
        with self.open(place, state) as ledger:
            return ledger.seal()

    def restore(
        self, place: Path, state: Path, signer: str = "root", **changes: Any
    ) -> Restored | str:
        """Restore by a key's statement with parts of it changed; the code of a refusal."""

        def stating(body: dict[str, Any], seen: Seen) -> Statement:
            parts = {"body": body, "seal": seen, "nonce": self.nonce(), **changes}
            ready = parts.pop("ready", None)
            plain = {"ledger": ORIGIN, "kind": KIND, "refs": {}, **parts}
            return ready or statements.make(key(signer), **plain)

        try:
            return Ledger.restore(
                place,
                key=key("writer"),
                state_dir=state,
                why=WHY,
                state=stating,
                clock=self.clock,
            )
        except LedgerError as error:
            return error.code


@dataclass(frozen=True)
class Content:
    """What a database holds: the ids of its records in order, and the largest seal."""

    ids: History
    sealed: int = 0


def content(place: Path, scratch: Path) -> Content | None:
    """What SQLite alone reads out of a copy of a ledger's database; None where it reads nothing."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for suffix in ("", "-wal"):
        file = place / (DATABASE + suffix)
        if file.exists():
            shutil.copy(file, scratch / file.name)
    if not (scratch / DATABASE).exists():
        return None
    db = sqlite3.connect(scratch / DATABASE)
    try:
        rows = db.execute("SELECT signature, entry FROM records ORDER BY seq").fetchall()
        (sealed,) = db.execute("SELECT max(size) FROM seals").fetchone()
    except sqlite3.DatabaseError:
        return None
    finally:
        db.close()
    return Content(tuple(record_id(*row) for row in rows), sealed or 0)


def record_id(signature: bytes, entry: bytes) -> str:
    """A record's id: SHA-256 over a zero byte, the signature and the entry."""
    return "sha256:" + hashlib.sha256(b"\0" + signature + entry).hexdigest()


def history(place: Path, scratch: Path) -> History:
    """The ids in a ledger that must be readable.

    Raises:
        WrongError: it is not.
    """
    found = content(place, scratch)
    if found is None:
        raise WrongError("the database that was just written cannot be read")
    return found.ids


def root_of(ids: History) -> bytes:
    """The RFC 6962 root over a history; a record's id is its leaf hash."""
    return merkle.root([bytes.fromhex(item[7:]) for item in ids])


@dataclass
class Named:
    """Which head each restore record gave up: the model of what settles an alarm."""

    heads: dict[str, History] = field(default_factory=dict)

    def settling(self, now: History, mark: History) -> int | None:
        """The seq of the newest restore record in a history that names a mark."""
        found = [seq for seq, item in enumerate(now) if self.heads.get(item) == mark]
        return found[-1] if found else None


def alarm(now: History, mark: History | None, named: Named) -> str:
    """The code that a high-water file at a mark gives for a ledger; empty where it gives none."""
    if mark is None or now[: len(mark)] == mark or named.settling(now, mark) is not None:
        return ""
    return "LEDGER_ROLLED_BACK" if len(now) < len(mark) else "LEDGER_FORKED"


def mark_of(state: Path, ledger_id: str) -> HighWater | None:
    """What the file of a machine holds, None where there is none."""
    path = path_of(state, ledger_id)
    return HighWater.decode(path.read_bytes()) if path.exists() else None


def expect_mark(state: Path, head: History) -> None:
    """The file holds exactly the head of a history.

    Raises:
        WrongError: it holds another.
    """
    found = mark_of(state, head[0])
    due = HighWater(head[0], len(head), root_of(head), head[-1])
    expect(found, due, "the high-water file")


def report(place: Path, state: Path | None, seal: bytes | None = None, **more: Any) -> Report:
    """The verifier's report."""
    return verify(place, Options(workers=1, state_dir=state, expect_seal=seal, **more))


def codes(found: Report) -> list[str]:
    """The codes of what is wrong, each once, in order of the alphabet."""
    return sorted({item.code for item in found.wrong})
