"""What the training child may say: each event's fields and their shapes, checked before anything is made of them.

The child runs model code, so what it says is evidence to check. Values are left to the record models and the rules;
here it is made sure that a value can be read at all, and that files are taken from the child's own folder only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from runners.child import Event

ROW_COUNTS = ("input", "effective", "truncated", "dropped")
FIELDS: dict[str, dict[str, type]] = {
    "start": {"rows": dict},
    "restored": {"step": int, "state": str, "mode": str, "digests": dict},
    "batch": {"step": int, "micro_batches": list, "trainable_tokens": int},
    "update": {
        "step": int,
        "learning_rate": str,
        "loss": str,
        "gradient_norm": str,
        "before": str,
        "after": str,
        "figures": dict,
    },
    "checkpoint": {"step": int, "path": str, "state": str},
}


def check_event(event: Event, fields: Mapping[str, Mapping[str, type]] = FIELDS) -> None:
    """Refuse an event that is unknown, or lacks a field, or has one of another type.

    Args:
        event: what the child said.
        fields: of each event that it may say, by name.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`.
    """
    name = str(event["event"])
    if name not in fields:
        raise nonsense(f"the child said {name[:80]!r}, which is unknown")
    for field, kind in fields[name].items():
        if type(event.get(field)) is not kind:
            raise nonsense(f"event {name} has no {field} of type {kind.__name__}")


def row_counts(event: Event) -> dict[str, int]:
    """Where the run's rows went, from `start`.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`.
    """
    counts = {name: event["rows"].get(name) for name in ROW_COUNTS}
    if not all(type(count) is int and count >= 0 for count in counts.values()):
        raise nonsense(f"event start does not count the rows {', '.join(ROW_COUNTS)}")
    return counts


def rows_read(event: Event, given: Collection[str]) -> list[str]:
    """The rows of a `batch` in the order they are read, each one that the child was given.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`.
    """
    batches: list[Any] = event["micro_batches"]
    if not all(isinstance(batch, list) for batch in batches):
        raise nonsense("event batch does not list the rows of each micro-batch")
    rows = [row for batch in batches for row in batch]
    for row in rows:
        if not isinstance(row, str) or row not in given:
            raise nonsense(f"the child read a row that it was not given: {str(row)[:80]}")
    return rows


def checkpoint_folder(event: Event, output: Path) -> Path:
    """The folder of a `checkpoint`, which lies in the child's own.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`.
    """
    return folder_within(event, output)


def folder_within(event: Event, place: Path) -> Path:
    """The folder that an event names under `path`, which lies in a place of the child's.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`.
    """
    folder = Path(event["path"]).resolve()
    if not folder.is_relative_to(place.resolve()) or not folder.is_dir():
        raise nonsense(f"the {event['event']} at {str(folder)[:200]} is no folder in {place.name}")
    return folder


def nonsense(message: str) -> EvidenceError:
    """The refusal of what a child said."""
    return EvidenceError("CHILD_PROTOCOL", message)
