"""Handing out rows of one role: the one place that decides which rows a loader may give away (rule D1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError
from verifiers.data.identity import Row, row_digest
from verifiers.data.row_rules import declares_held_out
from verifiers.data.splits import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


KINDS_OF_METHOD = {
    "sft": ("chat", "text"),
    "dpo": ("preference",),
    "reward": ("preference",),
    "kto": ("feedback",),
    "rl": ("desk", "scenario"),
}
"""What kinds of rows the batches of a run may read, by the method of its plan."""
SUPERVISED_KIND = "chat"
"""What a plan that we run ourselves reads of its split; an own script may read texts too."""


@dataclass(frozen=True)
class HandedOut:
    """One row given to a loader, with the digest that records name it by."""

    digest: str
    row: Row


def hand_out(
    rows: Iterable[Row], role_of: Mapping[str, str], role: str, kind: str
) -> list[HandedOut]:
    """The rows of one role and kind, in the order of the data set.

    Args:
        rows: the data set's rows.
        role_of: role by row digest, as the split assigns it.
        role: train, validation or test.
        kind: one of those that `verifiers.data.row_rules` knows.

    Raises:
        EvidenceError: `HELD_OUT_ROW`, a training row declares itself held out; `SPLIT_WRONG`, a row has no role, or
            the role is none.
    """
    if role not in ROLES:
        raise EvidenceError("SPLIT_WRONG", f"{role[:40]!r} is no role of a split", field="role")
    found: list[HandedOut] = []
    for row in rows:
        if row.get("kind", "chat") != kind:
            continue
        digest = row_digest(row)
        if digest not in role_of:
            raise EvidenceError("SPLIT_WRONG", f"row {digest[7:19]} has no role in the split")
        if role_of[digest] == role:
            found.append(HandedOut(digest, row))
    if role == "train":
        check_training_rows(found)
    return found


def check_counts(role_of: Mapping[str, str], stated: Mapping[str, int]) -> None:
    """Refuse an assignment that has other counts than its record states.

    Raises:
        EvidenceError: `SPLIT_WRONG`.
    """
    counts = Counter(role_of.values())
    if counts != Counter(stated):
        raise EvidenceError(
            "SPLIT_WRONG",
            "the assignment has not the rows in each role that its record states",
            field="roles",
            expected=str(dict(stated)),
            actual=str(dict(counts)),
        )


def check_training_rows(rows: Iterable[HandedOut]) -> None:
    """Refuse rows that say of themselves that they are held out, whatever the split says.

    Raises:
        EvidenceError: `HELD_OUT_ROW`.
    """
    for item in rows:
        if declares_held_out(dict(item.row)):
            raise EvidenceError(
                "HELD_OUT_ROW",
                f"row {item.row.get('id', item.digest)!r} declares itself held out and cannot be trained on",
                field=str(item.row.get("id", item.digest)),
            )
