"""What a restore means to a high-water file: which alarm it settles, and to which head (spec: ledger.md, section 8).

A `ledger.restored` record settles an alarm only where it names exactly the head in the file, size and
root. The file is then lowered to the head just after that record. Before that, everything up to the record
is admitted again with every signature checked: the file is keyed by record 0, which names the root key, so
nobody without root's statement takes an alarm down, whatever they wrote into the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger import disk, highwater, seals
from ledger.admission import Chain
from ledger.errors import EvidenceError, UsageError
from ledger.highwater import HighWater
from ledger.merkle import CompactRange
from ledger.reading import Reading
from ledger.record import Record, check_body
from ledger.records.base import Seen, Statement
from ledger.state import State

KIND = "ledger.restored"
ALARMS = frozenset({"LEDGER_ROLLED_BACK", "LEDGER_FORKED"})
NO_RESTORE_OF_A_FORK = (
    "a fork is not restored: keep both copies, find out who wrote the other one, and go on in one "
    "of them; see docs/spec/ledger.md, section 8"
)


Stating = Callable[[dict[str, Any], Seen], Statement]
"""Gives root's statement over a restore record's body and the head before it."""


@dataclass(frozen=True)
class Restored:
    """A restore that is done.

    Args:
        record: the `ledger.restored` record.
        finished_earlier: it was there already; only the high-water file had still to be lowered.
        unconfirmed: ids of the runs that nobody can speak for until they are reconciled.
    """

    record: Record
    finished_earlier: bool
    unconfirmed: list[str]


def names(record: Record, mark: HighWater) -> bool:
    """Whether a restore record names exactly this head."""
    lost = record.body["high_water"]
    return bool(lost["size"] == mark.size and lost["root"] == mark.root.hex())


def naming(ledger: Reading, mark: HighWater) -> Record | None:
    """The newest restore record that names exactly this head, or None.

    Found through the derived index, which can hide a record and so leave an alarm up, never invent one.

    Raises:
        EvidenceError: `BODY_INVALID` or a schema's code, somebody wrote a restore record that is none.
    """
    found = None
    for record in ledger.of_kind(KIND):
        check_body(record.kind, record.schema, record.body)
        if names(record, mark):
            found = record
    return found


def settle(ledger: Reading, directory: Path, mark: HighWater) -> Record | None:
    """Lower the file from a head that a restore record names; the record, None where none names it.

    The file may have been changed meanwhile by another process: look at it again afterwards.

    Raises:
        EvidenceError: something up to the record does not hold; the file stays as it is.
        OSError: the directory cannot be written.
    """
    record = naming(ledger, mark)
    if record is None:
        return None
    proven = replay(ledger, record.seq + 1)
    highwater.lower(directory, mark, head_of(proven))
    return record


def mark_of(ledger: Reading, directory: Path | None) -> HighWater | None:
    """The head in the ledger's high-water file; read it before the ledger's size, as `highwater.standing` says.

    Args:
        ledger: without a record it has no such file.
        directory: where high-water files are kept; None for nowhere.

    Raises:
        UsageError: `OS_REFUSED`, the file cannot be read.
        EvidenceError: `HIGHWATER_INVALID`, `UNSAFE_PATH`.
    """
    first = ledger.at(0)
    if directory is None or first is None:
        return None
    with disk.translated(directory):
        return highwater.read(directory, first.id)


def replay(ledger: Reading, size: int) -> Chain:
    """The chain over the first records, each admitted by every rule, its signature checked.

    Raises:
        EvidenceError: the first thing that does not hold.
    """
    chain = Chain(State(), CompactRange(), None, ledger.find)
    for record in ledger.records(0, size):
        chain.admit(record)
    return chain


def head_of(chain: Chain) -> HighWater:
    """The head of a chain that is not empty."""
    assert chain.last_id is not None
    return HighWater(chain.state.ledger_id, chain.size, chain.tree.root(), chain.last_id)


def unconfirmed_runs(chain: Chain) -> list[str]:
    """Ids of the runs that were open at a restore and are not reconciled yet."""
    return [name for name, run in chain.state.runs.items() if run.status == "unconfirmed"]


def ask(ledger: Reading, directory: Path, why: str) -> tuple[dict[str, Any], Seen]:
    """What root would have to state to restore this ledger now: the body, and the head it follows.

    Raises:
        LedgerError: see `what_is_lost`; `NOT_ROLLED_BACK` too where root's record is there already.
    """
    mark = mark_of(ledger, directory)
    chain = replay(ledger, ledger.size)
    record = None if mark is None else naming(ledger, mark)
    if record is not None:
        raise UsageError(
            "NOT_ROLLED_BACK",
            f"root's record is there, at seq {record.seq}; only the high-water file is still to be lowered",
            record=record.id,
            hint="evidence restore, which needs no statement for that",
        )
    body = what_is_lost(ledger, mark, chain, why)
    return body, Seen(size=chain.size, root=chain.tree.root().hex())


def what_is_lost(ledger: Reading, mark: HighWater | None, chain: Chain, why: str) -> dict[str, Any]:
    """The body of the restore record that this ledger needs now.

    Args:
        ledger: what is left.
        mark: the head in the high-water file, None where there is no file.
        chain: everything that is left, as `replay` gave it.
        why: the reason, in the owner's words.

    Raises:
        UsageError: `NOT_ROLLED_BACK`, there is no high-water file, or the ledger reaches it.
        EvidenceError: `LEDGER_EMPTY`; `LEDGER_FORKED`, the ledger is another history; `TAIL_CUT`, it holds a seal
            beyond its end, so it is no backup.
    """
    if not chain.size:
        raise EvidenceError("LEDGER_EMPTY", f"{ledger.path} holds no record")
    if mark is None:
        raise UsageError("NOT_ROLLED_BACK", "there is no high-water file of this ledger here")
    if mark.size <= chain.size:
        _refuse_standing(ledger, mark, chain.size)
    newest = ledger.store.newest_seal()
    if newest is not None and newest[0] > chain.size:
        error = seals.tail_cut(newest[0], chain.size)
        error.hint = "this is no backup, its tail was cut off: put a copy back that is whole"
        raise error
    lost = {"size": mark.size, "root": mark.root.hex()}
    return {"lost_from": chain.size, "high_water": lost, "why": why}


def _refuse_standing(ledger: Reading, mark: HighWater, size: int) -> None:
    """A ledger that reaches its high water is whole or forked; neither is restored."""
    root = replay(ledger, mark.size).tree.root()
    if root != mark.root:
        raise EvidenceError(
            "LEDGER_FORKED",
            f"the ledger's first {mark.size} records are not those last written here",
            seq=mark.size - 1,
            record=mark.last_id,
            expected=mark.root.hex(),
            actual=root.hex(),
            hint=NO_RESTORE_OF_A_FORK,
        )
    raise UsageError(
        "NOT_ROLLED_BACK",
        f"the ledger has {size} records and reaches its high water of {mark.size}",
        expected=f"fewer than {mark.size}",
        actual=str(size),
    )
