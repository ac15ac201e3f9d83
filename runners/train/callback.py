"""`LedgerCallback`: a trainer of the user's own script, with every step on record (loads torch).

    from runners.train.callback import LedgerCallback

    LedgerCallback.adopt(trainer, ledger="evidence", held_out="held-out.jsonl")
    trainer.train()

The process that trains holds the ledger itself. A step whose record cannot be written stops the training with an
exception; what happened until then stands on record, and `run.ended` says how it ended. Trusted for: what the script's
process says of itself. It holds the key that signs, so it could sign something else; the threat model says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from transformers import TrainerCallback

from ledger.errors import UsageError
from runners.train import adopted_plan, trainer_hooks
from runners.train.adopted_run import AdoptedRun
from runners.train.adopted_split import check_trained_on
from runners.train.adopted_weights import LiveWeights
from runners.train.adoption import Wishes, check_plan, record_plan, refused, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import TrainerControl, TrainerState, TrainingArguments

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.adopted_rows import AdoptedRows

_PLACE = "_ledger_callback"


class LedgerCallback(TrainerCallback):
    """Puts a trainer's run on record: batches, updates, checkpoints, its end.

    Args:
        ledger: open for writing with a key that has the role train.
        plan: a plan that `prepare` made for this trainer and that was never launched.
        closes: close the ledger when the training is over.

    Attributes:
        ended: the run's end, once it is over.
    """

    def __init__(self, ledger: Ledger, *, plan: Record, closes: bool = False) -> None:
        self.ledger, self.plan = ledger, plan
        self.ended: Record | None = None
        self._closes = closes
        self._work: AdoptedRun | None = None
        self._trainer: Any = None
        self._rows: AdoptedRows | None = None
        self._data: Any = None

    @property
    def run(self) -> Record | None:
        """The launch, once training has begun."""
        return None if self._work is None else self._work.launch

    @property
    def checkpoint(self) -> Record | None:
        """The newest checkpoint on record."""
        return None if self._work is None else self._work.checkpoint

    # --- making one --------------------------------------------------------------------------------

    @classmethod
    def adopt(cls, trainer: Any, *, ledger: Ledger | str | Path, **wishes: Any) -> Self:
        """Plan what a trainer will do, and record it while it does it.

        Args:
            trainer: an `SFTTrainer`, `DPOTrainer`, `KTOTrainer` or `RewardTrainer`, or one of a class that descends from
                these; its arguments and data are final.
            ledger: open for writing with the roles ingest and train; or its folder, opened with your own key.
            wishes: see `runners.train.adoption.Wishes`: `held_out`, `init_from`, `name`, `licence`, `shelf`.

        Raises:
            UsageError: see `prepare` and `attach`.
            EvidenceError: see `prepare`.
        """
        adopted_plan.method_of(trainer)
        rows = rows_of(trainer)
        owned = isinstance(ledger, str | Path)
        book: Any = _opened(Path(str(ledger))) if owned else ledger
        try:
            plan = record_plan(book, trainer, rows, Wishes(**wishes))
            return cls(book, plan=plan, closes=owned).attach(trainer, rows)
        except BaseException:
            if owned:
                book.close()
            raise

    @classmethod
    def prepare(cls, trainer: Any, *, ledger: Ledger, **wishes: Any) -> Record:
        """Ingest a trainer's rows, audit them against what is held out, register its base model, record the plan.

        Args:
            trainer: see `adopt`.
            ledger: open for writing with the roles ingest and train.
            wishes: see `adopt`.

        Raises:
            UsageError: `ADOPTION_REFUSED`, something cannot be put on record; `HELD_OUT_ROW`; `LEAKAGE_NOT_ACCEPTED`;
                `STATE_DIFFERS`, the model has not the weights of `init_from`; or what the rules refuse.
            EvidenceError: a held-out file or the base model's folder is broken.
        """
        adopted_plan.method_of(trainer)
        return record_plan(ledger, trainer, rows_of(trainer), Wishes(**wishes))

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
                raise refused("trainer", "the trainer has a LedgerCallback that is not done")
            before.detach()
        rows = rows or rows_of(trainer)
        split = self.ledger.get(str(self.plan.ref("split")))
        check_trained_on(self.ledger, split, str(self.plan.body["method"]), rows)
        check_plan(self.plan, trainer, rows, LiveWeights(trainer.model))
        self._trainer, self._rows, self._data = trainer, rows, trainer.train_dataset
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
        self._check_begins(arguments)
        try:
            assert self._rows is not None  # attach read them
            weights = LiveWeights(self._trainer.model)
            work = AdoptedRun(self.ledger, self.plan, self._trainer, self._rows, weights)
            self._work = work
            try:
                work.begin()
                result = train()
                work.over()
            except BaseException as error:
                self.ended = work.broke(error)
                raise
            self.ended = work.done()
            return result
        finally:
            if self._closes:
                self._closes = False
                self.ledger.close()

    def _check_begins(self, arguments: dict[str, Any]) -> None:
        if arguments["resume_from_checkpoint"] or arguments["trial"] is not None:
            raise refused(
                "resume_from_checkpoint",
                "the library's own resumption loads what is not on record",
                "load the weights of a published checkpoint and adopt with init_from=CHECKPOINT",
            )
        if self.run is not None:
            raise UsageError(
                "PLAN_LAUNCHED",
                "this callback has recorded a run",
                record=self.run.id,
                hint="adopt the trainer again: each training is a run of its own",
            )

    def check_data(self) -> None:
        """Refuse another data set than the one that was read.

        Raises:
            UsageError: `ADOPTION_REFUSED`.
        """
        if self._trainer.train_dataset is not self._data:
            raise refused("train_dataset", "the trainer was given other data after its adoption")

    def chosen(self, positions: list[list[int]], tokens: int) -> None:
        """Record the batch of the next step.

        Raises:
            UsageError: `ADOPTION_REFUSED`, the callback was taken off the trainer; or what the rules refuse.
        """
        if self not in self._trainer.callback_handler.callbacks:
            raise refused("callbacks", "the LedgerCallback was taken off the trainer")
        self._recording().chosen(positions, tokens)

    def computed(self, loss: float) -> None:
        """Add a micro-batch's share to the step's loss."""
        self._recording().computed(loss)

    def normed(self, norm: float) -> None:
        """Keep the norm, and refuse a step without a signal.

        Raises:
            UsageError: `BAD_GRADIENT`.
        """
        self._recording().normed(norm)

    def _recording(self) -> AdoptedRun:
        if self._work is None:
            raise refused("callbacks", "a LedgerCallback records nothing until attach(trainer)")
        return self._work

    # --- what the library tells --------------------------------------------------------------------

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """See that somebody is recording.

        Raises:
            UsageError: `ADOPTION_REFUSED`, the callback was added without `attach`.
        """
        del args, state, control, kwargs
        self._recording()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """See that the weights are still those of the last update.

        Raises:
            UsageError: `STATE_BROKEN`.
        """
        del args, control, kwargs
        self._recording().check_state(f"before step {state.global_step + 1}")

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Record the update."""
        del args, state, control
        self._recording().acknowledge(float(kwargs["optimizer"].param_groups[0]["lr"]))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Where somebody asked the run to stop, have the library save here and end."""
        del args, state, kwargs
        if self._recording().asked_to_stop():
            control.should_save = control.should_training_stop = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Record a checkpoint."""
        del args, state, control, kwargs
        self._recording().publish()


def _opened(path: Path) -> Ledger:
    """A ledger folder, opened to append with the user's own key, as the commands do."""
    from runners.cli.context import App

    return App(ledger=str(path)).open_ledger()


__all__ = ["LedgerCallback"]
