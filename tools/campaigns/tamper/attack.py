"""What an attack is: the rows and seals that a verifier is handed, and where it must speak up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from campaigns.tamper.base import Base
from campaigns.tamper.growing import Note
from verifiers.chain import Row

CHAIN_BROKEN = frozenset({"CHAIN_BROKEN"})


@dataclass(frozen=True)
class Attack:
    """A tampered ledger.

    Args:
        rows: all of its rows.
        notes: all of its seals, by size.
        latest: the last position at which the first finding may stand. None: where the ledger first differs.
            A later one is allowed only where the record that differs is in itself good, because who holds
            its writer's key made it: then the next thing that somebody else signed tells.
        outside: nothing in the ledger can tell, only a head kept elsewhere (the high-water mark).
        cut_to: the tail was cut to this size.
        later: the codes that a finding after the first difference may have; None for any.
    """

    rows: list[Row]
    notes: list[Note]
    latest: int | None = None
    outside: bool = False
    cut_to: int | None = None
    later: frozenset[str] | None = CHAIN_BROKEN


Make = Callable[[Base, Random], Attack | None]
"""Makes one attack; None where these choices give none, and others are made."""


def at(base: Base, seq: int, *rows: Row, instead_of: int = 1, latest: int | None = None) -> Attack:
    """The base with rows put at a position, instead of so many that stood there."""
    changed = [*base.rows[:seq], *rows, *base.rows[seq + instead_of :]]
    return Attack(changed, base.notes, latest)


def renumbered(rows: list[Row]) -> list[Row]:
    """Rows whose seq column is their position."""
    return [(place, *row[1:]) for place, row in enumerate(rows)]


def held_by_writer(base: Base, seq: int, *rows: Row) -> Attack:
    """A record replaced by one that its own writer's key signed, and that may be as good as the first.

    The record after it names the id of the first under a signature of its own, so the chain breaks there
    at the latest; a seal over the record tells at the record itself. The last record has none after it:
    there the seal tells, and where no seal covers it only a head that was kept elsewhere.
    """
    last = seq == base.size - 1
    outside = last and base.sealed_after(seq) is None
    made = at(base, seq, *rows, latest=seq if last else seq + 1)
    return Attack(made.rows, made.notes, made.latest, outside)
