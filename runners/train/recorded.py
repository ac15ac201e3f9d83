"""What any trainer of the library's has to do to be recorded: go on exactly, acknowledge each update, publish checkpoints.

Order of one optimizer step, each arrow an event that the supervisor must acknowledge before the next line runs:

    next micro-batches chosen       -> `batch`       which rows or completions, how many tokens the loss will count
    forward and backward passes
    gradient checked, optimizer step -> `update`     loss, gradient norm, rate, state before and after
    (at a save point) files written  -> `checkpoint` folder, step, state

A run that goes on from a checkpoint first says `restored`: what it loaded, by digests of the live state. The library's
own way of resuming is not used: it goes on without a word where optimizer, schedule or random state is missing. (Loads
torch.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import Trainer, TrainerCallback

from ledger.canonical import real
from runners.train.checkpoints import write_checkpoint
from runners.train.learner import (
    Learner,
    check_complete,
    check_restored,
    counters_of,
    restore,
    restore_random,
    state_files,
)
from runners.train.shared_channel import ranks_of
from runners.train.trained import live_state, save_trained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import TrainerControl, TrainerState, TrainingArguments

    from runners.protocol import Asked
    from runners.train.learner_settings import LearnerSettings


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a run goes on from: its folder and its step."""

    folder: Path
    step: int


@dataclass(frozen=True)
class Recording:
    """What a recorded trainer is told beside what the library's takes.

    Attributes:
        channel: where events go.
        settings: of the run.
        until: the step after which to stop, the last of the settings' schedule or an earlier one.
        base_folder: the base model's folder.
        origin: the checkpoint to go on from exactly.
    """

    channel: Asked
    settings: LearnerSettings
    until: int
    base_folder: Path
    origin: Origin | None = None


class RecordedTrainer(Trainer):
    """Stands before one of the library's trainers; who inherits calls `begin` once that one is made."""

    def begin(self, recording: Recording) -> None:
        """Take up the recording, before the first step; an origin's files were held against their digests with its weights.

        Raises:
            EvidenceError: `STATE_INCOMPLETE` or `STATE_MALFORMED`, the origin's state is not whole.
        """
        if recording.origin is not None:
            origin = recording.origin
            check_complete(origin.folder, origin.step, recording.settings.processes)
        self.adapted: Any = self.model
        self.recording = recording
        self.channel = recording.channel
        self.ranks = ranks_of(recording.channel)
        self.until = recording.until
        self.origin = recording.origin
        self.step_loss = 0.0
        self.step_norm = math.nan
        self.state_digest = live_state(self.adapted)
        self.add_callback(_Acknowledge(self))

    # --- what a method says for itself --------------------------------------------------------------

    def step_figures(self) -> dict[str, Any]:
        """What an acknowledgement says of its step beside loss, norm and rate, as a record holds it."""
        raise NotImplementedError

    def sampler_position(self) -> dict[str, Any]:
        """Where the reading stands: epoch and position in it in datums, datums of an epoch, and what else is needed."""
        raise NotImplementedError

    def more_state(self) -> dict[str, bytes]:
        """Files of the learner's state that only this method has, by name."""
        return {}

    def restore_more(self, folder: Path) -> None:
        """Put back what only this method has."""

    # --- what all methods do alike ------------------------------------------------------------------

    def _init_training_state(self, *arguments: Any) -> tuple[int, int]:
        """The trainer's own counters, those of the checkpoint where the run goes on from one."""
        started: tuple[int, int] = super()._init_training_state(*arguments)
        if self.origin is not None:
            counters = counters_of(self.origin.folder)
            self.state.global_step = self.origin.step
            self.state.total_flos = counters["floating_point_operations"]
            self._total_train_tokens = counters["tokens"]
        return started

    def _prepare_for_training(self, *arguments: Any) -> Any:
        """The library's optimizer and schedule, filled from the checkpoint where the run goes on from one."""
        prepared = super()._prepare_for_training(*arguments)  # type: ignore[no-untyped-call]  # the same
        if self.origin is not None:
            restore(self._learner(), self.origin.folder)
            self.restore_more(self.origin.folder)
        return prepared

    def restored(self, origin: Origin) -> None:
        """Put the random generators back, the last thing before the first step, and say what was loaded.

        Raises:
            EvidenceError: `STATE_DIFFERS`, the live state is not the checkpoint's.
        """
        restore_random(origin.folder, self.ranks.rank)
        digests = check_restored(origin.folder, self._state_files())
        self.channel.ask(
            "restored", step=origin.step, state=self.state_digest, mode="exact", digests=digests
        )

    def _learner(self) -> Learner:
        scaler = self.accelerator.scaler
        return Learner(self.adapted, self.optimizer, self.lr_scheduler, scaler)

    def _state_files(self) -> dict[str, bytes]:
        counters = {
            "updates": self.state.global_step,
            "tokens": int(self._total_train_tokens),
            "floating_point_operations": int(self.state.total_flos),
        }
        files = state_files(self._learner(), self.sampler_position(), counters, self.ranks)
        return files | self.more_state()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write the trained tensors and the learner's state, and nothing that would have to be unpickled."""
        del model, trial
        self.store_flos()
        step = self.state.global_step
        folder = Path(str(self.args.output_dir)) / f"checkpoint-{step:06d}"
        files = self._state_files()
        if self.ranks.first:
            write_checkpoint(folder, partial(self._save_files, files), self.state_digest)
        self.channel.ask("checkpoint", step=step, path=str(folder), state=self.state_digest)

    def _save_files(self, files: Mapping[str, bytes], folder: Path) -> None:
        save_trained(self.adapted, self.recording.base_folder, folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)


class _Acknowledge(TrainerCallback):
    """Around the optimizer's step: what it did, and whether to save or stop after it."""

    def __init__(self, trainer: RecordedTrainer) -> None:
        self._trainer = trainer

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The weights have changed and nothing else has: the rate is the one just used.

        The figures come before the acknowledgement, so that the record of the step holds them.
        """
        del args, control
        trainer = self._trainer
        figures = trainer.step_figures()
        before, trainer.state_digest = trainer.state_digest, live_state(trainer.adapted)
        trainer.channel.ask(
            "update",
            step=state.global_step + 1,
            loss=real(trainer.step_loss),
            gradient_norm=real(trainer.step_norm),
            learning_rate=real(kwargs["optimizer"].param_groups[0]["lr"]),
            before=before,
            after=trainer.state_digest,
            figures=figures,
        )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Save at the planned steps, after the last, and where the run is told to stop."""
        del args, kwargs
        settings = self._trainer.recording.settings
        last = state.global_step >= self._trainer.until or self._trainer.channel.stop
        planned = settings.save_steps > 0 and state.global_step % settings.save_steps == 0
        control.should_save = last or planned
        control.should_training_stop = last
        return control
