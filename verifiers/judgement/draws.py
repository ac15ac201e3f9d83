"""Which updates and cases are run again: drawn by a tree root that nobody could know when they were recorded.

Target `index` of a draw is SHA-256(root || index as 8 bytes, big endian) as a number, modulo how many members of its
stratum are not drawn yet; members stand in the order of the ledger. Indices count on over all strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import ceil, comb
from typing import Final

INDEX_BYTES = 8
FORGED_SHARES: Final = ("0.01", "0.05", "0.1", "0.25", "0.5", "1.0")
"""The shares of a stratum for which the chance of an escape is printed."""


@dataclass(frozen=True)
class Stratum:
    """What is drawn from apart: the updates behind one checkpoint, or the cases of one arm or pass.

    Attributes:
        role: `update`, `arm` or `pass`.
        record: id of the checkpoint, arm or pass.
        members: ids of updates, or names of cases.
        take: how many are drawn.
    """

    role: str
    record: str
    members: tuple[str, ...]
    take: int


@dataclass(frozen=True)
class Target:
    """One thing to run again: an update, or one case of an arm or of a pass."""

    index: int
    role: str
    record: str
    case: str | None
    stratum: Stratum


def draw(root: bytes, strata: Sequence[Stratum]) -> list[Target]:
    """The targets of a root, stratum by stratum, without putting back.

    Args:
        root: tree root of 32 bytes over all records up to the draw.
        strata: what is drawn from; `take` beyond the members takes them all.
    """
    found: list[Target] = []
    for stratum in strata:
        left = list(stratum.members)
        for _ in range(min(stratum.take, len(left))):
            index = len(found)
            number = int.from_bytes(sha256(root + index.to_bytes(INDEX_BYTES, "big")).digest())
            member = left.pop(number % len(left))
            if stratum.role == "update":
                found.append(Target(index, stratum.role, member, None, stratum))
            else:
                found.append(Target(index, stratum.role, stratum.record, member, stratum))
    return found


def taken(share: str, members: int) -> int:
    """How many members a share in text takes, rounded up."""
    return ceil(Fraction(share) * members)


def escape(members: int, forged: int, take: int) -> Fraction:
    """The chance that a draw without putting back meets none of the forged members (hypergeometric).

    Args:
        members: how many there are to draw from.
        forged: how many of them are forged, at most `members`.
        take: how many are drawn, at most `members`.
    """
    return Fraction(comb(members - forged, take), comb(members, take))


@dataclass(frozen=True)
class Escape:
    """The chance, a fraction of 1, that a forged share of members is not met by a draw.

    Attributes:
        forged: the share of each stratum that is forged, rounded up to whole members.
        one: where one stratum is forged, the one in which it escapes most easily.
        every: where every stratum is forged to that share.
    """

    forged: str
    one: Fraction
    every: Fraction


def escapes(strata: Sequence[Stratum], shares: Sequence[str]) -> list[Escape]:
    """What each forged share risks under a draw over these strata; those without members are left out."""
    found = []
    for share in shares:
        chances = [
            escape(
                len(item.members),
                taken(share, len(item.members)),
                min(item.take, len(item.members)),
            )
            for item in strata
            if item.members
        ]
        every = Fraction(1)
        for chance in chances:
            every *= chance
        found.append(Escape(share, max(chances, default=Fraction(1)), every))
    return found
