"""What a ledger had already read of a test's cases: rows they repeat, and how many looks they were given.

A *look* is what one nomination's arms read. Looks count per case identity: the normalised input with ids masked, so a case
does not become another one by another order number; and a checkpoint that was tested before, on whatever cases, has been
looked at too: who may take another test after a bad one takes tests until one is kind. A case is *seen* where a run trained on its question or a validation
put it to a model, in the same words up to case, width and white space, whatever the answer was. What is only alike
(masked, near duplicate, edited, a shared entity) is a finding that a reviewer signs, and fails no gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verifiers.data import leakage
from verifiers.data.identity import MIN_MASKED_WORDS, Row, masked, normalised, row_digest, row_text

SEEN_LEVELS: Final = ("exact", "normalised", "annotation")
SEEN_ROLES: Final = ("past train", "past validation")


@dataclass(frozen=True)
class Look:
    """One model's answers to some cases: by which nomination, of which model, in which place of the ledger."""

    nomination: str
    subject: str
    seq: int
    identities: frozenset[str]


@dataclass(frozen=True)
class Exposure:
    """How fresh a test is.

    Args:
        findings: every row of the past that touches a case, with its level.
        seen: ids of the cases that were trained on or validated on.
        look: which look at any of the cases this is, 1 for the first.
    """

    findings: tuple[leakage.Finding, ...]
    seen: tuple[str, ...]
    look: int

    @property
    def levels(self) -> dict[str, int]:
        """How many cases are touched, by the role that the row had and the level."""
        found = Counter(
            f"{item.other_role.removeprefix('past ')}/{item.level}" for item in self.findings
        )
        return dict(sorted(found.items()))


def case_identity(case: Row) -> str:
    """By what a case is known again: its normalised input without words that hold digits, or whole where little is left."""
    normal = normalised(row_text(case).input)
    hidden = masked(normal)
    return hidden if hidden.count(" ") + 1 >= MIN_MASKED_WORDS else normal


def identities(cases: Iterable[Row]) -> frozenset[str]:
    """The identities of a protocol's cases."""
    return frozenset(map(case_identity, cases))


def expose(
    cases: Sequence[Mapping[str, Any]],
    past: Iterable[leakage.PastRow],
    nomination: str,
    checkpoints: Collection[str],
    looks: Sequence[Look],
) -> Exposure:
    """Hold a test's cases against what was read before.

    Args:
        cases: the protocol's cases.
        past: rows that runs and other protocols read.
        nomination: whose look this is or will be.
        checkpoints: what it nominates.
        looks: every look at a test in the ledger, this nomination's own among them.
    """
    names = {row_digest(case): str(case.get("id", row_digest(case)[7:19])) for case in cases}
    role_of = dict.fromkeys(names, "test")
    found = leakage.audit(cases, role_of, leakage.entity_fields(cases), past=past).findings
    seen = {
        names[item.held_out]
        for item in found
        if item.level in SEEN_LEVELS and item.other_role in SEEN_ROLES
    }
    return Exposure(tuple(found), tuple(sorted(seen)), _look(cases, nomination, checkpoints, looks))


def _look(
    cases: Iterable[Row], nomination: str, checkpoints: Collection[str], looks: Sequence[Look]
) -> int:
    """This nomination's place among the looks at its cases and its checkpoints; a model that answered twice looked twice."""
    mine = identities(cases)
    own = [look for look in looks if look.nomination == nomination]
    last = max((look.seq for look in own), default=None)
    earlier = {
        look.nomination
        for look in looks
        if look.nomination != nomination
        and (look.identities & mine or look.subject in checkpoints)
        and (last is None or look.seq < last)
    }
    answered = Counter(look.subject for look in own)
    return max([1, *answered.values()]) + len(earlier)
