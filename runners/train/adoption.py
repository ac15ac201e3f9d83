"""What is read off a user's trainer before it trains: its rows, its split, its budget, its plan (loads torch)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset

from ledger.canonical import loads
from ledger.errors import UsageError
from runners.prepare.data import UNKNOWN_LICENCE, SourceNote
from runners.prepare.shelf import default_shelf
from runners.train import adopted_plan
from runners.train.adopted_rows import AdoptedRows, adopted_rows
from runners.train.adopted_split import (
    HeldOut,
    adopted_split,
    audited,
    declared_held_out,
    held_out_of,
    training_digests,
)
from runners.train.adopted_weights import LiveWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledger.book import Ledger
    from ledger.record import Record

COMPARED = ("method", "settings", "seeds", "libraries", "code", "budget_updates")
"""What of a plan's body a trainer must still be when it begins."""

_NAMED = ("split", "model", "parent")


@dataclass(frozen=True)
class Wishes:
    """What the user says beside the trainer.

    Attributes:
        held_out: a file, or several, of rows that are never trained on; or the id of a split. Without it: the trainer's
            evaluation rows, all validation and test rows of the ledger, and the cases of its protocols.
        init_from: the checkpoint whose weights the trainer's model has.
        name: the data set's name.
        licence: of the rows.
        shelf: where model folders lie; the user's own where none is given.
    """

    held_out: str | Path | Sequence[str | Path] | None = None
    init_from: str | None = None
    name: str = "adopted"
    licence: str = UNKNOWN_LICENCE
    shelf: Path | None = None


def rows_of(trainer: Any) -> AdoptedRows:
    """The rows that a trainer will read.

    Raises:
        UsageError: `ADOPTION_REFUSED`, they are not there before training; see `adopted_rows`.
    """
    data = trainer.train_dataset
    if not isinstance(data, Dataset):
        raise refused(
            "train_dataset",
            f"a {type(data).__name__} has no rows that can be read before training",
            "give the trainer a datasets.Dataset",
        )
    if data.format["type"] == "custom" or {"image", "images"} & set(data.column_names):
        raise refused(
            "train_dataset", "its rows are made while they are read, so they are not known before"
        )
    joined = adopted_plan.method_of(trainer) == "reward"
    return adopted_rows(data, trainer.processing_class, joined=joined)


def record_plan(ledger: Ledger, trainer: Any, rows: AdoptedRows, wishes: Wishes) -> Record:
    """Ingest the rows, audit them, register the base model, and record the plan.

    Raises:
        UsageError: `ADOPTION_REFUSED`, `HELD_OUT_ROW`, `LEAKAGE_NOT_ACCEPTED`, `STATE_DIFFERS`, or what the rules refuse.
        EvidenceError: a held-out file or the base model's folder is broken.
    """
    method = adopted_plan.method_of(trainer)
    weights = LiveWeights(trainer.model)
    refs = audited(ledger, _split(ledger, trainer, method, rows, wishes))
    shelf = wishes.shelf or default_shelf()
    base = adopted_plan.registered_base(ledger, weights, trainer.processing_class, shelf)
    refs["model"] = base.id
    if wishes.init_from is not None:
        refs["parent"] = _parent(ledger, wishes.init_from, weights).id
    body = adopted_plan.plan_body(trainer, method, weights, refs, rows, _budget(trainer))
    body["settings_digest"] = adopted_plan.settings_digest(body, refs, base)
    return ledger.append("plan.prepared", body, refs)


def check_plan(plan: Record, trainer: Any, rows: AdoptedRows, weights: LiveWeights) -> None:
    """Refuse a trainer that is not what a plan says.

    Raises:
        UsageError: `PLAN_STALE`, naming what changed.
    """
    method = adopted_plan.method_of(trainer)
    refs: dict[str, str | list[str]] = {n: str(plan.ref(n)) for n in _NAMED if plan.ref(n)}
    here = adopted_plan.plan_body(trainer, method, weights, refs, rows, _budget(trainer))
    for name in COMPARED:
        if plan.body[name] != here[name]:
            raise _stale(plan, name, plan.body[name], here[name])


def refused(field: str, why: str, hint: str | None = None) -> UsageError:
    """Something of a trainer that cannot be put on record."""
    return UsageError("ADOPTION_REFUSED", why, field=field, hint=hint)


def _split(ledger: Ledger, trainer: Any, method: str, rows: AdoptedRows, wishes: Wishes) -> Record:
    """The split that a run reads: the one named, where all rows are its training rows, else one made for them."""
    wish = wishes.held_out
    named = [wish] if isinstance(wish, str | Path) else list(wish or ())
    files = tuple(Path(item) for item in named if Path(item).exists() or "." in str(item))
    splits = [ledger.get(str(item), "split.declared") for item in named if Path(item) not in files]
    for split in splits:
        if training_digests(ledger, split, method) >= set(rows.digests):
            return split
    found: dict[str, dict[str, Any]] = {}
    for split in splits:
        found |= held_out_of(ledger, split)
    if wish is None:
        found = declared_held_out(ledger) | _evaluated(trainer, method)
    note = SourceNote(licence=wishes.licence, origin="the data set of a trainer")
    return adopted_split(ledger, rows, HeldOut(files, found), wishes.name, note)


def _evaluated(trainer: Any, method: str) -> dict[str, dict[str, Any]]:
    """The rows that the trainer evaluates on, by digest."""
    data = trainer.eval_dataset
    parts = data.values() if isinstance(data, dict) else [] if data is None else [data]
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        rows = adopted_rows(
            part, trainer.processing_class, keep_held_out=True, joined=method == "reward"
        )
        pairs = zip(rows.digests, rows.lines, strict=True)
        found |= {digest: loads(line, 64) for digest, line in pairs}
    return found


def _budget(trainer: Any) -> int:
    """How many updates a trainer means to take.

    Counted here and not asked of the library, which would make a loader for the answer.
    """
    args, rows = trainer.args, len(trainer.train_dataset)
    if args.max_steps > 0:
        return int(args.max_steps)
    size, accumulation = int(args.train_batch_size), int(args.gradient_accumulation_steps)
    batches = rows // size if args.dataloader_drop_last else -(-rows // size)
    steps = max(-(-batches // accumulation), 1)
    return math.ceil(float(args.num_train_epochs) * steps)


def _parent(ledger: Ledger, checkpoint: str, weights: LiveWeights) -> Record:
    found = ledger.get(checkpoint, "checkpoint.published")
    state = weights.digest()
    if found.body["state"]["value"] != state:
        raise UsageError(
            "STATE_DIFFERS",
            "the trainer's model has not the weights of that checkpoint",
            field="init_from",
            record=found.id,
            expected=found.body["state"]["value"],
            actual=state,
        )
    return found


def _stale(plan: Record, name: str, planned: Any, actual: Any) -> UsageError:
    """What changed since the plan was prepared, by its own name."""
    field = name
    if isinstance(planned, dict) and isinstance(actual, dict):
        names = planned.keys() | actual.keys()
        first = min(key for key in names if planned.get(key) != actual.get(key))
        field, planned, actual = f"{name}.{first}", planned.get(first), actual.get(first)
    return UsageError(
        "PLAN_STALE",
        f"since the plan was prepared {field} changed",
        field=field,
        record=plan.id,
        expected=str(planned)[:200],
        actual=str(actual)[:200],
        hint="adopt the trainer again, as it is now",
    )
