"""Two records of one kind beside each other: every field that differs, their plans' included.

Runs are also followed update by update to the first step at which they read another batch or come to another state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from ledger.query.live import updates_of
from ledger.record import sound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledger.reading import Reading
    from ledger.record import Record

_NAMED_BY = ("path", "name", "code")


@dataclass(frozen=True)
class Difference:
    """A field by its path, and what each record has there; None where it has no such field."""

    field: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Parting:
    """The first step at which two runs part: by what they read, by where they came to, or by both."""

    step: int
    batch: bool
    state: bool


@dataclass(frozen=True)
class Compared:
    """Two records of one kind.

    Args:
        kind: their kind.
        differences: fields that differ, by path.
        equal: how many fields are the same.
        steps: how many steps both runs took, where they are runs.
        parting: where those part; None where they never do, and for other kinds.
    """

    kind: str
    differences: tuple[Difference, ...]
    equal: int
    steps: int = 0
    parting: Parting | None = None


def compare(ledger: Reading, left: Record, right: Record) -> Compared:
    """Everything that differs between two records of one kind.

    Raises:
        UsageError: `REF_KIND`, they are of two kinds.
        EvidenceError: `BODY_INVALID`, `REF_NOT_FOUND`, what they rest on is not as it must be.
    """
    if left.kind != right.kind:
        raise UsageError(
            "REF_KIND",
            f"a {left.kind} and a {right.kind} have no fields in common to compare",
            record=right.id,
            expected=left.kind,
            actual=right.kind,
            hint="name two runs, two plans or two checkpoints",
        )
    ours, theirs = _fields(ledger, left), _fields(ledger, right)
    names = [*ours, *(name for name in theirs if name not in ours)]
    found = [
        Difference(name, ours.get(name), theirs.get(name))
        for name in names
        if ours.get(name) != theirs.get(name)
    ]
    steps, parting = 0, None
    if left.kind == "run.launched":
        steps, parting = _parting(ledger, left, right)
    return Compared(left.kind, tuple(found), len(names) - len(found), steps, parting)


def _fields(ledger: Reading, record: Record) -> dict[str, Any]:
    """Every leaf of a record by its path; of a run its plan and its end too, of a checkpoint its run's plan."""
    found = dict(_flat(sound(record).body, ""))
    found.update((f"refs.{role}", record.refs[role]) for role in sorted(record.refs))
    for name, other in _beside(ledger, record):
        found.update(_flat(sound(other).body, name))
        found.update((f"{name}.refs.{role}", other.refs[role]) for role in sorted(other.refs))
    return found


def _beside(ledger: Reading, record: Record) -> Iterator[tuple[str, Record]]:
    run = record
    if record.kind == "checkpoint.published":
        run = _named(ledger, record, "run")
    if run.kind == "run.launched":
        yield "plan", _named(ledger, run, "plan")
    if record.kind == "run.launched":
        ends = ledger.referrers(record.id, "run", "run.ended")
        if ends:
            yield "end", ends[-1]


def _named(ledger: Reading, record: Record, role: str) -> Record:
    other = ledger.find(str(record.ref(role)))
    if other is None:
        raise EvidenceError(
            "REF_NOT_FOUND", f"ref {role} names a record that is not there", record=record.id
        )
    return other


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Leaves with their paths; items of a list by what names them, where something does."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, item in enumerate(value):
            yield from _flat(item, f"{name}[{_name_of(item, place)}]")
    else:
        yield name, value


def _name_of(item: Any, place: int) -> str:
    names = (item.get(key) for key in _NAMED_BY) if isinstance(item, dict) else ()
    return next((str(name) for name in names if name is not None), str(place))


def _parting(ledger: Reading, left: Record, right: Record) -> tuple[int, Parting | None]:
    ours, theirs = (
        {int(update.body["step"]): update for update in updates_of(ledger, run).live}
        for run in (left, right)
    )
    both = sorted(ours.keys() & theirs.keys())
    for step in both:
        mine, other = ours[step], theirs[step]
        batch = _batches(ledger, mine) != _batches(ledger, other)
        state = mine.body["after"] != other.body["after"]
        if batch or state:
            return len(both), Parting(step, batch, state)
    return len(both), None


def _batches(ledger: Reading, update: Record) -> list[str]:
    found = (ledger.find(name) for name in update.ref_list("batch"))
    return [str(sound(batch).body["digest"]) for batch in found if batch is not None]
