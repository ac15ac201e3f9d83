"""Pairs of replies whose order is known, and what a reward makes of them: the audit before a reward may train anything.

Each pair says which reply is right, which is wrong, and which weakness the wrong one tries. A reward *inverts* a pair
where the wrong reply earns as much or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Reward = Callable[["Mapping[str, Any]", str], float]
"""What a reply earns in a scenario."""

_FIELDS = {"id", "trap", "scenario", "right", "wrong"}


@dataclass(frozen=True)
class Pair:
    """A scenario and two replies to it, one of them wrong by a named trap."""

    id: str
    trap: str
    scenario: Mapping[str, Any]
    right: str
    wrong: str


@dataclass(frozen=True)
class Inversion:
    """A pair that a reward orders wrongly, with what it gave."""

    pair: Pair
    right: float
    wrong: float


def read_pairs(rows: Iterable[Mapping[str, Any]]) -> list[Pair]:
    """Pairs from their JSON objects.

    Raises:
        EvidenceError: `CASE_BROKEN`, a field is missing, unknown or of another type; an id stands twice.
    """
    pairs: dict[str, Pair] = {}
    for number, row in enumerate(rows, 1):
        if row.keys() != _FIELDS:
            name = min(row.keys() ^ _FIELDS)
            raise EvidenceError(
                "CASE_BROKEN",
                f"pair {number} has {name} where it should not, or lacks it",
                field=name,
            )
        texts = [row[name] for name in ("id", "trap", "right", "wrong")]
        if not all(isinstance(text, str) for text in texts) or not isinstance(
            row["scenario"], dict
        ):
            raise EvidenceError("CASE_BROKEN", f"pair {number} has a field of another type")
        if row["id"] in pairs:
            raise EvidenceError(
                "CASE_BROKEN", f"two pairs are called {row['id'][:40]!r}", field="id"
            )
        pairs[row["id"]] = Pair(**row)
    return list(pairs.values())


def inversions(reward: Reward, pairs: Iterable[Pair]) -> list[Inversion]:
    """The pairs in which the wrong reply earns at least as much as the right one.

    Raises:
        EvidenceError: `NOT_A_REAL`, the reward gives something that is no finite number.
    """
    found = []
    for pair in pairs:
        right, wrong = (
            _finite(reward(pair.scenario, reply), pair) for reply in (pair.right, pair.wrong)
        )
        if wrong >= right:
            found.append(Inversion(pair, right, wrong))
    return found


def _finite(value: float, pair: Pair) -> float:
    # `float` would take a truth value or a text for a number
    if type(value) not in (int, float) or value - value != 0:
        raise EvidenceError("NOT_A_REAL", f"the reward gives {value!r} in pair {pair.id!r}")
    return float(value)
