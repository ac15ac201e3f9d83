"""Who plays which role: train, validation, test, with rows that belong together kept together.

Rows that share a value in any of the grouping fields are one group, transitively: if A shares a customer
with B and B a wording with C, all three have one role. The result does not depend on the rows' order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.errors import EvidenceError, UsageError
from verifiers.data.grouping import group_rows
from verifiers.data.identity import Row, row_digest, values
from verifiers.data.role_lists import roles_in_list
from verifiers.data.row_rules import TRAINING_KINDS, declares_held_out

ROLES = ("train", "validation", "test")
TRIES = 64
CLOSE_ENOUGH = 0.02


@dataclass(frozen=True)
class Split:
    """A split: each row's role by digest, and how many groups there were."""

    role_of: Mapping[str, str]
    groups: int

    @property
    def roles(self) -> dict[str, int]:
        """Rows in each role that has any."""
        counts = Counter(self.role_of.values())
        return {role: counts[role] for role in ROLES if counts[role]}

    def lines(self) -> Iterator[dict[str, str]]:
        """The assignment as the lines of its blob, in the order of the digests."""
        for digest in sorted(self.role_of):
            yield {"row": digest, "role": self.role_of[digest]}


def split_by_fractions(
    rows: Sequence[Row], by: Sequence[str], weights: Sequence[int], seed: int
) -> Split:
    """Deal groups of rows to the three roles in given proportions.

    Groups are dealt in an order drawn from the seed, each to the role that lacks most. Of up to 64 such
    orders the first whose counts are within 2 % of the proportions counts, else the closest.

    Args:
        rows: the accepted rows.
        by: grouping fields; empty means each row is a group of its own.
        weights: proportions of train, validation and test, for example 70, 10, 20.
        seed: which order is drawn first.

    Raises:
        UsageError: `SPLIT_SETTINGS`, the weights or a field make no sense; `SPLIT_ROLE_EMPTY`, a role
            would be empty.
    """
    if len(weights) != len(ROLES) or min(weights, default=0) < 1:
        raise UsageError(
            "SPLIT_SETTINGS", "fractions are three positive whole numbers", field="fractions"
        )
    groups = group_rows(rows, by)
    target = [len(rows) * weight / sum(weights) for weight in weights]
    best: tuple[float, list[int]] | None = None
    for attempt in range(TRIES):
        dealt = _deal(groups, target, f"{seed}/{attempt}")
        distance = _distance(groups, dealt, target)
        if best is None or distance < best[0]:
            best = (distance, dealt)
        if distance <= CLOSE_ENOUGH * len(rows):
            break
    assert best is not None
    role_of = {
        digest: ROLES[role] for group, role in zip(groups, best[1], strict=True) for digest in group
    }
    return _whole(Split(role_of, len(groups)), rows, ROLES)


def split_by_list(
    rows: Sequence[Row],
    by: Sequence[str],
    role_by_id: Mapping[str, str],
    *,
    needed: Sequence[str] = ROLES,
) -> Split:
    """Give each row the role that a list says for its id, or for its digest.

    Args:
        rows: the accepted rows.
        by: grouping fields that the list must not tear.
        role_by_id: the list.
        needed: roles of which none may be empty.

    Raises:
        UsageError: `SPLIT_SETTINGS`, a row has no role in the list or an unknown one; `SPLIT_GROUP_TORN`,
            rows of one group have different roles; `SPLIT_ROLE_EMPTY`, a role would be empty; `HELD_OUT_ROW`.
    """
    role_of: dict[str, str] = {}
    for row in rows:
        digest = row_digest(row)
        role = role_by_id.get(str(row.get("id")), role_by_id.get(digest))
        if role not in ROLES:
            shown = row.get("id", digest[7:19])
            raise UsageError("SPLIT_SETTINGS", f"row {shown!r} has no role in the list", field="id")
        role_of[digest] = role
    groups = group_rows(rows, by)
    torn = next((group for group in groups if len({role_of[digest] for digest in group}) > 1), None)
    if torn is not None:
        raise UsageError(
            "SPLIT_GROUP_TORN", f"{len(torn)} rows that belong together have several roles"
        )
    return _whole(Split(role_of, len(groups)), rows, needed)


def split_as_published(rows: Sequence[Row], by: Sequence[str], data: bytes) -> Split:
    """Take over a published split: only the roles that it names must have rows.

    Raises:
        UsageError: see `split_by_list` and `role_lists.roles_in_list`.
    """
    roles = roles_in_list(data)
    named = [role for role in ROLES if role in roles.values()]
    if "train" not in named or len(named) < len(ROLES) - 1:
        raise UsageError("SPLIT_ROLE_EMPTY", f"the published split names {', '.join(named)} only")
    return split_by_list(rows, by, roles, needed=named)


def read_assignment(lines: Sequence[Mapping[str, Any]], digests: Sequence[str]) -> dict[str, str]:
    """Role by row digest from an assignment's lines.

    Raises:
        EvidenceError: `SPLIT_WRONG`, a line has another shape, or the rows are not exactly the data set's.
    """
    role_of: dict[str, str] = {}
    for number, line in enumerate(lines):
        if set(line) != {"row", "role"} or line["role"] not in ROLES or line["row"] in role_of:
            raise EvidenceError(
                "SPLIT_WRONG", f"line {number} of the assignment is broken or a repetition"
            )
        role_of[line["row"]] = line["role"]
    if set(role_of) != set(digests):
        raise EvidenceError("SPLIT_WRONG", "the assignment's rows are not the data set's rows")
    return role_of


def _deal(groups: list[list[str]], target: list[float], salt: str) -> list[int]:
    """Each group's role as an index, dealt in the order that the salt draws."""
    order = sorted(
        range(len(groups)),
        key=lambda index: hashlib.sha256(f"{salt}/{groups[index][0]}".encode()).digest(),
    )
    missing = list(target)
    dealt = [0] * len(groups)
    for index in order:
        role = max(range(len(missing)), key=missing.__getitem__)
        dealt[index] = role
        missing[role] -= len(groups[index])
    return dealt


def _distance(groups: list[list[str]], dealt: list[int], target: list[float]) -> float:
    sizes = [0] * len(target)
    for group, role in zip(groups, dealt, strict=True):
        sizes[role] += len(group)
    if 0 in sizes:
        return float("inf")
    return sum(abs(size - wanted) for size, wanted in zip(sizes, target, strict=True))


def _whole(split: Split, rows: Sequence[Row], needed: Sequence[str]) -> Split:
    """The split, if no needed role is empty and no row for training that is held out would be trained on."""
    empty = [role for role in needed if role not in split.roles]
    if empty:
        raise UsageError(
            "SPLIT_ROLE_EMPTY",
            f"no row would be {empty[0]}: {split.groups} groups in all",
            field="by",
        )
    for row in rows:
        digest = row_digest(row)
        trains = row.get("kind", "chat") in TRAINING_KINDS
        if trains and split.role_of[digest] == "train" and declares_held_out(dict(row)):
            raise UsageError(
                "HELD_OUT_ROW",
                f"row {row.get('id', digest[7:19])!r} declares itself held out and would be trained on",
                field=str(row.get("id", digest)),
            )
    return split


__all__ = [
    "ROLES",
    "Split",
    "group_rows",
    "read_assignment",
    "split_as_published",
    "split_by_fractions",
    "split_by_list",
    "values",
]
