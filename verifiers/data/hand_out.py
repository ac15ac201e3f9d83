"""Handing out rows of one role: the one place that decides which rows a loader may give away (rule D1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError
from verifiers.data.identity import Row, row_digest
from verifiers.data.rows import declares_held_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
        kind: chat, desk or dialogue.

    Raises:
        EvidenceError: `HELD_OUT_ROW`, a training row declares itself held out.
    """
    found: list[HandedOut] = []
    for row in rows:
        if row.get("kind", "chat") != kind:
            continue
        digest = row_digest(row)
        if role_of.get(digest) == role:
            found.append(HandedOut(digest, row))
    if role == "train":
        check_training_rows(found)
    return found


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
