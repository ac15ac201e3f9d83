"""TRL's supervised trainer, made to say what it does and to wait for the answer (loads torch).

What it says and when: `runners.train.recorded`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader
from trl.trainer.sft_trainer import SFTTrainer

from ledger.errors import UsageError
from runners.train.loss import STEP, LabelledLoss, labelled_loss
from runners.train.order import sampler_position
from runners.train.precision import computing
from runners.train.recorded import RecordedTrainer, Recording
from runners.train.tokens import IGNORED
from runners.train.trained import core

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runners.train.config import SftSettings
    from runners.train.evaluation import Validation
    from runners.train.tokens import EncodedRow

Batch = dict[str, Any]


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


class LedgerSFTTrainer(RecordedTrainer, SFTTrainer):
    """An `SFTTrainer` that announces batches, acknowledges updates and publishes checkpoints.

    It wants a dataset of tokens in the order they are to be read (`runners.train.order`) and `Collator`.

    Args:
        recording: where events go and where the run begins; an origin's weights are in the model already.
        rows: the encoded rows that the dataset's `rows` column counts.
        settings: of the run.
        validation: the rows to evaluate on while training, None where there are none.
        options: what `SFTTrainer` takes.
    """

    def __init__(
        self,
        *,
        recording: Recording,
        rows: Sequence[EncodedRow],
        settings: SftSettings,
        validation: Validation | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.begin(recording)
        self.rows = rows
        self.settings = settings
        self.validation = validation
        self.step_parts: list[LabelledLoss] = []

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[Batch], torch.Tensor | int | None]:
        """Choose the micro-batches of one step, and have them recorded before anything is computed on them."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        if self.origin is not None and self.origin.step == self.state.global_step:
            self.restored(self.origin)
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

    def step_figures(self) -> dict[str, Any]:
        """Counts of the step, and the validation loss where it is due."""
        evaluated: dict[str, Any] = {}
        if self.validation is not None and self.validation.due(self.state.global_step + 1):
            evaluated = self.validation.figures(self.adapted)
        return {**figures(self.step_parts), **evaluated}

    def sampler_position(self) -> dict[str, Any]:
        """Where the plan's order stands."""
        return dict(sampler_position(self.state.global_step, len(self.rows), self.settings))


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
