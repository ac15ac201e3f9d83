"""TRL's supervised trainer, made to say what it does and to wait for the answer (loads torch).

Order of one optimizer step, each arrow an event that the supervisor must acknowledge before the next line runs:

    next micro-batches chosen       -> `batch`       which rows, how many tokens the loss will count
    forward and backward passes
    gradient checked, optimizer step -> `update`     loss, gradient norm, rate, state before and after
    (at a save point) files written  -> `checkpoint` folder, step, state

A run that goes on from a checkpoint first says `restored`: what it loaded, by digests of the live state. The library's
own way of resuming is not used: it goes on without a word where optimizer, schedule or random state is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader
from transformers import TrainerCallback
from trl.trainer.sft_trainer import SFTTrainer

from ledger.canonical import real
from ledger.errors import UsageError
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
from runners.train.loss import STEP, LabelledLoss, labelled_loss
from runners.train.order import sampler_position
from runners.train.precision import computing
from runners.train.shared_channel import ranks_of
from runners.train.tokens import IGNORED
from runners.train.trained import core, live_state, save_trained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from transformers import TrainerControl, TrainerState, TrainingArguments

    from runners.protocol import Channel
    from runners.train.config import SftSettings
    from runners.train.evaluation import Validation
    from runners.train.tokens import EncodedRow

Batch = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a run goes on from: its folder and its step."""

    folder: Path
    step: int


class Collator:
    """Rows to a batch, padded on the right; `rows` are their positions among the encoded rows."""

    def __init__(self, pad_id: int) -> None:
        self._pad_id = pad_id

    def __call__(self, examples: Sequence[Batch]) -> Batch:
        """The batch as tensors of shape (rows, longest to a multiple of `STEP`); `rows` has shape (rows,)."""
        longest = -(-max(len(example["input_ids"]) for example in examples) // STEP) * STEP
        return {
            "input_ids": self._padded(
                [example["input_ids"] for example in examples], longest, self._pad_id
            ),
            "labels": self._padded([example["labels"] for example in examples], longest, IGNORED),
            "attention_mask": self._padded(
                [[1] * len(example["input_ids"]) for example in examples], longest, 0
            ),
            "rows": torch.tensor([example["rows"] for example in examples]),
        }

    @staticmethod
    def _padded(sequences: Sequence[Sequence[int]], length: int, filler: int) -> torch.Tensor:
        return torch.tensor(
            [[*sequence, *[filler] * (length - len(sequence))] for sequence in sequences]
        )


class LedgerSFTTrainer(SFTTrainer):
    """An `SFTTrainer` that announces batches, acknowledges updates and publishes checkpoints.

    It wants a dataset of tokens in the order they are to be read (`runners.train.order`) and `Collator`.

    Args:
        channel: where events go.
        rows: the encoded rows that the dataset's `rows` column counts.
        settings: of the run.
        until: the step after which to stop, the last of the settings' schedule or an earlier one.
        base_folder: the base model's folder.
        validation: the rows to evaluate on while training, None where there are none.
        origin: the checkpoint to go on from exactly; its adapter is in the model already.
        options: what `SFTTrainer` takes.

    Raises:
        EvidenceError: `STATE_INCOMPLETE` or `STATE_MALFORMED`, the origin's state is not whole.
    """

    def __init__(
        self,
        *,
        channel: Channel,
        rows: Sequence[EncodedRow],
        settings: SftSettings,
        until: int,
        base_folder: Path,
        validation: Validation | None = None,
        origin: Origin | None = None,
        **options: Any,
    ) -> None:
        if origin is not None:
            check_complete(origin.folder, origin.step, settings.processes)
        super().__init__(**options)
        self.adapted: Any = self.model
        self.channel = channel
        self.ranks = ranks_of(channel)
        self.rows = rows
        self.settings = settings
        self.until = until
        self.base_folder = base_folder
        self.validation = validation
        self.origin = origin
        self.step_loss = 0.0
        self.step_norm = math.nan
        self.step_parts: list[LabelledLoss] = []
        self.state_digest = live_state(self.adapted)
        self.add_callback(_Acknowledge(self))

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[Batch], torch.Tensor | int | None]:
        """Choose the micro-batches of one step, and have them recorded before anything is computed on them."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        if self.origin is not None and self.origin.step == self.state.global_step:
            self._restored(self.origin)
        chosen = [
            [self.rows[position] for position in batch.pop("rows").tolist()] for batch in batches
        ]
        if chosen:
            self.channel.ask("batch", step=self.state.global_step + 1, **batch_fields(chosen))
        self.step_loss, self.step_parts = 0.0, []
        return batches, items

    def compute_loss(
        self,
        model: Any,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The mean loss over the step's labelled tokens; the library's own computation where `loss` is `stock`.

        `num_items_in_batch` counts the labelled tokens of all processes, so their losses and gradients are summed. The
        library multiplies by the number of processes instead, and averages.
        """
        if self.settings.loss == "stock":
            with computing(self.settings, inputs["input_ids"].device):
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)  # type: ignore[no-untyped-call]  # the library has no types
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        with computing(self.settings, inputs["input_ids"].device):
            found = labelled_loss(
                core(self.adapted),
                inputs["input_ids"],
                inputs["labels"],
                lengths,
                shared=not self.settings.gradient_checkpointing,
            )
        self.step_parts.append(replace(found, total=found.total.detach()))
        return found.total / (found.labelled if num_items_in_batch is None else num_items_in_batch)

    def training_step(self, *args: Any, **options: Any) -> torch.Tensor:
        """One micro-batch; its share of the step's loss is added up. The library is given what its log averages over ranks."""
        loss: torch.Tensor = super().training_step(*args, **options)  # type: ignore[no-untyped-call]  # the same
        if self.settings.loss == "stock":
            self.step_loss += loss.item() / self.ranks.size
            return loss
        self.step_loss += loss.item()
        return loss * self.ranks.size

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The rows of this process in order; the library would divide among several what is divided already."""
        if self.ranks.size == 1:
            return super().get_train_dataloader()
        rows: Any = self.train_dataset
        size = self.settings.batch_size
        return DataLoader(rows, batch_size=size, collate_fn=self.data_collator)

    def _clip_grad_norm(self, model: Any) -> Any:
        """The norm of all processes' gradient together, before it is cut; the library's loss has met in the wrapped model."""
        if self.settings.loss != "stock":
            self.ranks.add_gradients(self.adapted.parameters())
        return super()._clip_grad_norm(model)  # type: ignore[no-untyped-call]  # the same

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The norm, checked before the optimizer sees the gradient.

        Raises:
            UsageError: `BAD_GRADIENT`, it is zero or not finite.
        """
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[no-untyped-call]  # the same
        self.step_norm = float(norm)
        if not (math.isfinite(self.step_norm) and self.step_norm > 0):
            step = self.state.global_step + 1
            raise UsageError("BAD_GRADIENT", f"step {step} has a gradient norm of {self.step_norm}")
        return norm

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
        return prepared

    def _restored(self, origin: Origin) -> None:
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
        step = self.state.global_step
        counters = {
            "updates": step,
            "tokens": int(self._total_train_tokens),
            "floating_point_operations": int(self.state.total_flos),
        }
        sampler = sampler_position(step, len(self.rows), self.settings)
        return state_files(self._learner(), sampler, counters, self.ranks)

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
        save_trained(self.adapted, self.base_folder, folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)


class _Acknowledge(TrainerCallback):
    """Around the optimizer's step: what it did, and whether to save or stop after it."""

    def __init__(self, trainer: LedgerSFTTrainer) -> None:
        self._trainer = trainer

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The weights have changed and nothing else has: the rate is the one just used.

        An evaluation comes before the acknowledgement, so that the record of the step holds its figures.
        """
        del args, control
        trainer = self._trainer
        evaluated: dict[str, Any] = {}
        if trainer.validation is not None and trainer.validation.due(state.global_step + 1):
            evaluated = trainer.validation.figures(trainer.adapted)
        before, trainer.state_digest = trainer.state_digest, live_state(trainer.adapted)
        trainer.channel.ask(
            "update",
            step=state.global_step + 1,
            loss=real(trainer.step_loss),
            gradient_norm=real(trainer.step_norm),
            learning_rate=real(kwargs["optimizer"].param_groups[0]["lr"]),
            before=before,
            after=trainer.state_digest,
            figures={**figures(trainer.step_parts), **evaluated},
        )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Save at the planned steps, after the last, and where the run is told to stop."""
        del args, kwargs
        settings = self._trainer.settings
        last = state.global_step >= self._trainer.until or self._trainer.channel.stop
        planned = settings.save_steps > 0 and state.global_step % settings.save_steps == 0
        control.should_save = last or planned
        control.should_training_stop = last
        return control


def batch_fields(chosen: Sequence[Sequence[EncodedRow]]) -> dict[str, Any]:
    """What a `batch` event says: each micro-batch's rows in order, and the tokens that the step's loss counts."""
    return {
        "micro_batches": [[row.digest for row in rows] for rows in chosen],
        "trainable_tokens": sum(row.trainable for rows in chosen for row in rows),
        "tokens": sum(len(row.ids) for rows in chosen for row in rows),
    }


def figures(parts: Sequence[LabelledLoss]) -> dict[str, int]:
    """Counts of one step: labelled tokens, those the model would have chosen, tokens computed after sharing."""
    return {
        "labelled": sum(part.labelled for part in parts),
        "right": sum(part.right for part in parts),
        "computed": sum(part.computed for part in parts),
    }
