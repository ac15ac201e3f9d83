"""`LedgerCallback`: a trainer of the user's own script, with every step on record (loads torch).

    from runners.train.callback import LedgerCallback

    LedgerCallback.adopt(trainer, ledger="evidence", held_out="held-out.jsonl")
    trainer.train()

The process that trains holds the ledger itself. A step whose record cannot be written stops the training with an
exception; what happened until then stands on record, and `run.ended` says how it ended. Trusted for: what the script's
process says of itself. It holds the key that signs, so it could sign something else; the threat model says so.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from datasets import Dataset
from transformers import TrainerCallback

from ledger.canonical import real
from ledger.errors import EvidenceError, LedgerError, UsageError
from runners.prepare.data import UNKNOWN_LICENCE, SourceNote
from runners.prepare.shelf import default_shelf
from runners.train import adopted_plan, trainer_hooks
from runners.train.adopted_rows import AdoptedRows, adopted_rows
from runners.train.adopted_split import (
    HeldOut,
    adopted_split,
    audited,
    check_trained_on,
    declared_held_out,
    held_out_of,
    training_digests,
)
from runners.train.adopted_weights import LiveWeights
from runners.train.processes import this_process
from runners.train.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledger.book import Ledger
    from ledger.record import Record

COMPARED = ("method", "settings", "seeds", "libraries", "code", "budget_updates", "settings_digest")
"""What of a plan's body a trainer must still be when it begins."""

_PLACE = "_ledger_callback"


class LedgerCallback(TrainerCallback):
    """Puts a trainer's run on record: batches, updates, checkpoints, its end.

    Args:
        ledger: open for writing with a key that has the role train.
        plan: a plan that `prepare` made for this trainer and that was never launched.
        closes: close the ledger when the training is over.

    Attributes:
        run: the launch, once training has begun.
        ended: the end, once it is over.
        checkpoint: the newest checkpoint on record.
    """

    def __init__(self, ledger: Ledger, *, plan: Record, closes: bool = False) -> None:
        self.ledger, self.plan = ledger, plan
        self.run: Record | None = None
        self.ended: Record | None = None
        self._trainer: Any = None
        self._rows: AdoptedRows | None = None
        self._data: Any = None
        self._weights: LiveWeights | None = None
        self._work: Supervised | None = None
        self._state = ""
        self._frozen: str | None = None
        self._loss, self._norm, self._parts = 0.0, 0.0, 0
        self._closes = closes

    @property
    def checkpoint(self) -> Record | None:
        """The newest checkpoint on record."""
        return None if self._work is None else self._work.checkpoint

    # --- making one --------------------------------------------------------------------------------

    @classmethod
    def adopt(cls, trainer: Any, *, ledger: Ledger | str | Path, **options: Any) -> Self:
        """Plan what a trainer will do, and record it while it does it.

        Args:
            trainer: an `SFTTrainer`, `DPOTrainer`, `KTOTrainer` or `RewardTrainer`, or a class that descends from one.
            ledger: open for writing with the roles ingest and train; or its folder, opened with your own key.
            options: see `prepare`.

        Raises:
            UsageError: see `prepare` and `attach`.
            EvidenceError: see `prepare`.
        """
        adopted_plan.method_of(trainer)
        rows = _rows(trainer)
        owned = isinstance(ledger, str | Path)
        book: Any = _opened(Path(str(ledger))) if owned else ledger
        try:
            plan = cls.prepare(trainer, ledger=book, rows=rows, **options)
            return cls(book, plan=plan, closes=owned).attach(trainer, rows)
        except BaseException:
            if owned:
                book.close()
            raise

    @classmethod
    def prepare(
        cls,
        trainer: Any,
        *,
        ledger: Ledger,
        held_out: str | Path | Sequence[str | Path] | None = None,
        init_from: str | None = None,
        name: str | None = None,
        licence: str = UNKNOWN_LICENCE,
        shelf: Path | None = None,
        rows: AdoptedRows | None = None,
    ) -> Record:
        """Ingest a trainer's rows, audit them against what is held out, register its base model, record the plan.

        Args:
            trainer: see `adopt`; its arguments and data are final.
            ledger: open for writing with the roles ingest and train.
            held_out: a file, or several, of rows that are never trained on; or the id of a split. Without it: the
                trainer's evaluation rows, all validation and test rows of the ledger, and the cases of its protocols.
            init_from: the checkpoint whose weights the trainer's model has.
            name: the data set's name, `adopted` where none is given.
            licence: of the rows.
            shelf: where model folders lie; the user's own where none is given.
            rows: the trainer's rows, where they were read already.

        Raises:
            UsageError: `ADOPTION_REFUSED`, something cannot be put on record; `HELD_OUT_ROW`; `LEAKAGE_NOT_ACCEPTED`;
                `STATE_DIFFERS`, the model has not the weights of `init_from`; or what the rules refuse.
            EvidenceError: a held-out file or the base model's folder is broken.
        """
        method = adopted_plan.method_of(trainer)
        rows = rows or _rows(trainer)
        weights = LiveWeights(trainer.model)
        refs = audited(
            ledger, _split(ledger, trainer, method, rows, held_out, name or "adopted", licence)
        )
        model = adopted_plan.registered_base(
            ledger, weights, trainer.processing_class, shelf or default_shelf()
        )
        refs["model"] = model.id
        if init_from is not None:
            refs["parent"] = _parent(ledger, init_from, weights).id
        body = adopted_plan.plan_body(trainer, method, weights, refs, rows, _budget(trainer))
        return ledger.append("plan.prepared", body, refs)

    def attach(self, trainer: Any, rows: AdoptedRows | None = None) -> Self:
        """Put the hooks on a trainer; its next `train()` launches the plan.

        Args:
            trainer: the one that the plan was made for, or one that is equal in all the plan says.
            rows: its rows, where they were read already.

        Raises:
            UsageError: `PLAN_STALE`, it is not what the plan says; `HELD_OUT_ROW` or `ADOPTION_REFUSED`, its rows are not
                training rows of the plan's split, or it has a callback that is not done.
        """
        before: LedgerCallback | None = getattr(trainer, _PLACE, None)
        if before is not None:
            if before.ended is None:
                raise _refused("trainer", "the trainer has a LedgerCallback that is not done")
            before.detach()
        self._trainer, self._weights = trainer, LiveWeights(trainer.model)
        self._rows = rows or _rows(trainer)
        self._data = trainer.train_dataset
        split = self.ledger.get(str(self.plan.ref("split")))
        check_trained_on(self.ledger, split, str(self.plan.body["method"]), self._rows)
        self._check_plan()
        trainer_hooks.install(trainer, self)
        trainer.add_callback(self)
        setattr(trainer, _PLACE, self)
        return self

    def detach(self) -> None:
        """The trainer as it was before `attach`."""
        trainer_hooks.remove(self._trainer)
        if self in self._trainer.callback_handler.callbacks:
            self._trainer.remove_callback(self)
        delattr(self._trainer, _PLACE)

    # --- what the hooks tell (`trainer_hooks.Watcher`) ---------------------------------------------------

    def runs(self, arguments: dict[str, Any], train: Callable[[], Any]) -> Any:
        """Launch the plan, train, and record how that ended.

        Raises:
            UsageError: `ADOPTION_REFUSED`, it would resume; `PLAN_LAUNCHED`, the plan was used; `PLAN_STALE`; `STATE_BROKEN`.
        """
        if arguments["resume_from_checkpoint"] or arguments["trial"] is not None:
            raise _refused(
                "resume_from_checkpoint",
                "the library's own resumption loads what is not on record",
                "load the weights of a published checkpoint and adopt with init_from=CHECKPOINT",
            )
        try:
            self._begin()
            try:
                result = train()
                self._check_over()
            except BaseException as error:
                self._broke(error)
                raise
            self._end(*self._outcome())
            return result
        finally:
            if self._closes:
                self._closes = False
                self.ledger.close()

    def check_data(self) -> None:
        """Refuse another data set than the one that was read.

        Raises:
            UsageError: `ADOPTION_REFUSED`.
        """
        if self._trainer.train_dataset is not self._data:
            raise _refused("train_dataset", "the trainer was given other data after its adoption")

    def chosen(self, positions: list[list[int]], tokens: int) -> None:
        """Record the batch of the next step.

        Raises:
            UsageError: `ADOPTION_REFUSED`, the callback was taken off the trainer; or what the rules refuse.
        """
        assert self._rows is not None
        if self not in self._trainer.callback_handler.callbacks:
            raise _refused("callbacks", "the LedgerCallback was taken off the trainer")
        digests = self._rows.digests
        rows = [[digests[position] for position in batch] for batch in positions]
        self._loss, self._norm, self._parts = 0.0, 0.0, len(rows)
        self._tell(
            "batch",
            step=self._trainer.state.global_step + 1,
            micro_batches=rows,
            trainable_tokens=tokens,
        )

    def computed(self, loss: float) -> None:
        """Add a micro-batch's share to the step's loss."""
        self._loss += loss

    def normed(self, norm: float) -> None:
        """Keep the norm, and refuse a step without a signal.

        Raises:
            UsageError: `BAD_GRADIENT`.
        """
        self._norm = norm
        trainer_hooks.check_signal(self._trainer.state.global_step + 1, self._loss, norm)

    # --- what the library tells --------------------------------------------------------------------

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """See that somebody is recording.

        Raises:
            UsageError: `ADOPTION_REFUSED`, the callback was added without `attach`.
        """
        if self._work is None:
            raise _refused("callbacks", "a LedgerCallback records nothing until attach(trainer)")

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """See that the weights are still those of the last update.

        Raises:
            UsageError: `STATE_BROKEN`.
        """
        self._check_state(f"before step {self._trainer.state.global_step + 1}")

    def on_optimizer_step(self, _args: Any, state: Any, _control: Any, **kwargs: Any) -> None:
        """Acknowledge the update: the weights have changed and nothing else has."""
        assert self._weights is not None
        before, self._state = self._state, self._weights.digest()
        self._tell(
            "update",
            step=state.global_step + 1,
            loss=real(self._loss),
            gradient_norm=real(self._norm),
            learning_rate=real(float(kwargs["optimizer"].param_groups[0]["lr"])),
            before=before,
            after=self._state,
            figures={"micro_batches": self._parts},
        )

    def on_save(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Publish what is trained as a checkpoint: weights, and nothing that would have to be unpickled.

        Raises:
            UsageError: `STATE_BROKEN`.
            EvidenceError: `CHECKPOINT_CHANGED`.
        """
        assert self._work is not None
        assert self._weights is not None
        self._check_state(f"at the checkpoint of step {state.global_step}")
        base = self.ledger.get(str(self.plan.ref("model")))
        self._work.output.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=self._work.output) as folder:
            self._weights.save(Path(folder), self._state, str(base.body["name"]))
            self._tell("checkpoint", step=state.global_step, path=folder, state=self._state)

    # --- beginning and end ---------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.run is not None:
            raise UsageError(
                "PLAN_LAUNCHED",
                "this callback has recorded a run",
                record=self.run.id,
                hint="adopt the trainer again: each training is a run of its own",
            )
        assert self._weights is not None
        assert self._rows is not None
        self._check_plan()
        self._state, self._frozen = self._weights.digest(), self._weights.frozen_digest()
        parent = self.plan.ref("parent")
        origin = None if parent is None else self.ledger.get(parent)
        body = {**this_process(), "seen": self.ledger.seen().model_dump()}
        self.run = self.ledger.append("run.launched", body, {"plan": self.plan.id})
        self._work = Supervised(
            self.ledger,
            self.plan,
            self.run,
            origin,
            frozenset(self._rows.digests),
            self.ledger.path / "work" / self.run.id[7:23] / "attempt-1" / "output",
            _unheard,
            not_established=self._not_established(),
        )
        if origin is not None:
            self._tell("restored", step=0, state=self._state, mode="weights", digests={})

    def _check_plan(self) -> None:
        """Refuse a trainer that is not what the plan says."""
        assert self._weights is not None
        assert self._rows is not None
        named = ("split", "model", "parent")
        refs: dict[str, str | list[str]] = {
            name: str(self.plan.ref(name)) for name in named if self.plan.ref(name)
        }
        here = adopted_plan.plan_body(
            self._trainer,
            adopted_plan.method_of(self._trainer),
            self._weights,
            refs,
            self._rows,
            _budget(self._trainer),
        )
        for name in COMPARED:
            planned, actual = self.plan.body[name], here[name]
            if planned != actual:
                raise _stale(self.plan, name, planned, actual)

    def _check_state(self, when: str) -> None:
        assert self._weights is not None
        found = self._weights.digest()
        if found != self._state:
            raise UsageError(
                "STATE_BROKEN",
                f"{when}, the weights are not those of the last update: something else changed them",
                field="model",
                expected=self._state,
                actual=found,
            )

    def _check_over(self) -> None:
        """What a training that came to its end must look like."""
        assert self._weights is not None
        taken, live = self._trainer.state.global_step, self._live()
        if taken != live:
            raise _refused("callbacks", f"{taken} steps were taken and {live} are on record")
        self._check_state("at the end")
        if self._weights.frozen_digest() != self._frozen:
            raise UsageError("STATE_BROKEN", "weights changed that are not trained", field="model")

    def _outcome(self) -> tuple[str, str | None, str]:
        live, budget = self._live(), int(self.plan.body["budget_updates"])
        if live >= budget:
            return "completed", None, "completed"
        detail = f"{live} of {budget} updates"
        if self._trainer.control.should_training_stop:
            return "stopped", None, f"the script stopped it: {detail}"
        return "failed", "short_run", detail

    def _broke(self, error: BaseException) -> None:
        """Record that the run broke off, where that can still be recorded; the error itself goes on."""
        detail = f"{getattr(error, 'code', type(error).__name__)}: {error}"
        try:
            if isinstance(error, KeyboardInterrupt):
                self._end("stopped", None, "interrupted")
            else:
                self._end("failed", _failure(error), detail[:4000])
        except LedgerError as second:
            error.add_note(f"and the end of the run could not be recorded: {second}")

    def _end(self, outcome: str, failure: str | None, detail: str) -> None:
        assert self._work is not None
        self.ended = self._work.end(outcome, failure, detail)

    def _not_established(self) -> tuple[str, ...]:
        assert self._rows is not None
        decoded = [adopted_plan.NOT_DECODED] if self._rows.decoded else []
        return (*adopted_plan.NOT_ESTABLISHED, *decoded)

    def _live(self) -> int:
        assert self.run is not None
        state = self.ledger.state().runs.get(self.run.id)
        return 0 if state is None else state.live

    def _tell(self, event: str, **fields: Any) -> None:
        assert self._work is not None
        self._work.answer({"event": event, **fields})


# --- looking at a trainer ------------------------------------------------------------------------------


def _rows(trainer: Any) -> AdoptedRows:
    data = trainer.train_dataset
    if not isinstance(data, Dataset):
        raise _refused(
            "train_dataset",
            f"a {type(data).__name__} has no rows that can be read before training",
            "give the trainer a datasets.Dataset",
        )
    if data.format["type"] == "custom" or {"image", "images"} & set(data.column_names):
        raise _refused(
            "train_dataset", "its rows are made while they are read, so they are not known before"
        )
    return adopted_rows(data, trainer.processing_class)


def _split(
    ledger: Ledger,
    trainer: Any,
    method: str,
    rows: AdoptedRows,
    held_out: str | Path | Sequence[str | Path] | None,
    name: str,
    licence: str,
) -> Record:
    """The split that a run reads: the one named, where all rows are its training rows, else one made for them."""
    named = [held_out] if isinstance(held_out, str | Path) else list(held_out or ())
    files = tuple(Path(item) for item in named if Path(item).exists() or "." in str(item))
    splits = [ledger.get(str(item), "split.declared") for item in named if Path(item) not in files]
    for split in splits:
        if training_digests(ledger, split, method) >= set(rows.digests):
            return split
    found: dict[str, dict[str, Any]] = {}
    for split in splits:
        found |= held_out_of(ledger, split)
    if held_out is None:
        found = declared_held_out(ledger) | _evaluated(trainer)
    note = SourceNote(licence=licence, origin="the data set of a trainer")
    return adopted_split(ledger, rows, HeldOut(files, found), name, note)


def _evaluated(trainer: Any) -> dict[str, dict[str, Any]]:
    """The rows that the trainer evaluates on, by digest."""
    from ledger.canonical import loads

    data = trainer.eval_dataset
    parts = data.values() if isinstance(data, dict) else [] if data is None else [data]
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        rows = adopted_rows(part, trainer.processing_class, keep_held_out=True)
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
    size = args.train_batch_size
    batches = rows // size if args.dataloader_drop_last else -(-rows // size)
    steps = max(-(-batches // args.gradient_accumulation_steps), 1)
    return math.ceil(args.num_train_epochs * steps)


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


def _opened(path: Path) -> Ledger:
    """A ledger folder, opened to append with the user's own key, as the commands do."""
    from runners.cli.context import App

    return App(ledger=str(path)).open_ledger()


def _failure(error: BaseException) -> str:
    if isinstance(error, UsageError | EvidenceError):
        return "bad_gradient" if error.code == "BAD_GRADIENT" else "refused"
    return (
        "out_of_memory" if isinstance(error, torch.OutOfMemoryError | MemoryError) else "internal"
    )


def _stale(plan: Record, name: str, planned: Any, actual: Any) -> UsageError:
    """What changed since the plan was prepared, by its own name."""
    field = name
    if isinstance(planned, dict) and isinstance(actual, dict):
        changed = [
            key for key in planned.keys() | actual.keys() if planned.get(key) != actual.get(key)
        ]
        field = f"{name}.{min(changed)}"
        planned, actual = planned.get(min(changed)), actual.get(min(changed))
    return UsageError(
        "PLAN_STALE",
        f"since the plan was prepared {field} changed",
        field=field,
        record=plan.id,
        expected=str(planned)[:200],
        actual=str(actual)[:200],
        hint="adopt the trainer again, as it is now",
    )


def _refused(field: str, why: str, hint: str | None = None) -> UsageError:
    return UsageError("ADOPTION_REFUSED", why, field=field, hint=hint)


def _unheard(_event: str, _fields: dict[str, Any]) -> None:
    """The library shows its own progress."""


__all__ = ["LedgerCallback"]
