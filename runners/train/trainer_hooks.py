"""What is put in the way of a trainer's own methods, on that one object: rows told apart, batches seen, norms checked.

The library hands a batch on as tensors. So a hidden column carries each row's position through sampler and workers, a
collator takes it out of the rows and lays it beside their tensors, and it is taken away before the model sees the batch.
Nothing is drawn from a random generator, so the batches are those that would have come anyway. (Loads torch.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ledger.errors import UsageError
from runners.train.adopted_rows import POSITION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Batch = Any

NAMES = (
    "train",
    "get_train_dataloader",
    "get_batch_samples",
    "training_step",
    "_get_grad_norm",
)


class Watcher(Protocol):
    """Who is told."""

    def runs(self, arguments: dict[str, Any], train: Callable[[], Any]) -> Any:
        """Do the training, and see that it has a beginning and an end."""

    def check_data(self) -> None:
        """Refuse another data set than the one that was read."""

    def chosen(self, positions: list[list[int]], tokens: int) -> None:
        """The rows of the next step's micro-batches, before anything is computed on them."""

    def computed(self, loss: float) -> None:
        """A micro-batch's share of the step's loss."""

    def normed(self, norm: float) -> None:
        """The norm of the step's gradient, before the optimizer sees it."""


class RowCollator:
    """The trainer's collator, with each row's position taken out before and laid beside the batch after.

    Args:
        collator: the trainer's own.
    """

    def __init__(self, collator: Callable[[list[dict[str, Any]]], Any]) -> None:
        self._collator = collator

    def __call__(self, examples: Sequence[dict[str, Any]]) -> Batch:
        """The batch, with the positions under `POSITION` as a tensor of shape (rows,)."""
        positions = [int(example[POSITION]) for example in examples]
        plain = [
            {name: value for name, value in example.items() if name != POSITION}
            for example in examples
        ]
        batch = self._collator(plain)
        batch[POSITION] = torch.tensor(positions)
        return batch


def install(trainer: Any, watcher: Watcher) -> None:
    """Put the hooks on a trainer; `remove` takes them off."""
    for name in NAMES:
        setattr(trainer, name, _hook(name, getattr(trainer, name), trainer, watcher))


def remove(trainer: Any) -> None:
    """The trainer as it was."""
    for name in NAMES:
        delattr(trainer, name)


def _hook(
    name: str, original: Callable[..., Any], trainer: Any, watcher: Watcher
) -> Callable[..., Any]:
    made: dict[str, Callable[..., Any]] = {
        "train": _train,
        "get_train_dataloader": _dataloader,
        "get_batch_samples": _batches,
        "training_step": _step,
        "_get_grad_norm": _norm,
    }
    hook: Callable[..., Any] = made[name](original, trainer, watcher)
    return hook


def _train(original: Callable[..., Any], _trainer: Any, watcher: Watcher) -> Callable[..., Any]:
    def train(
        resume_from_checkpoint: str | bool | None = None,
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> Any:
        arguments = {
            "resume_from_checkpoint": resume_from_checkpoint,
            "trial": trial,
            "ignore_keys_for_eval": ignore_keys_for_eval,
        }
        return watcher.runs(arguments, lambda: original(**arguments))

    return train


def _dataloader(original: Callable[..., Any], trainer: Any, watcher: Watcher) -> Callable[..., Any]:
    def get_train_dataloader() -> Any:
        watcher.check_data()
        trainer._set_signature_columns_if_needed()  # noqa: SLF001 - the only list of what the library keeps
        collator, dataset, columns = (
            trainer.data_collator,
            trainer.train_dataset,
            trainer._signature_columns,  # noqa: SLF001 - the same
        )
        trainer.data_collator = RowCollator(collator)
        trainer.train_dataset = dataset.add_column(POSITION, list(range(len(dataset))))
        trainer._signature_columns = [*columns, POSITION]  # noqa: SLF001 - the same
        try:
            return original()
        finally:
            trainer.data_collator, trainer.train_dataset = collator, dataset
            trainer._signature_columns = columns  # noqa: SLF001 - the same

    return get_train_dataloader


def _batches(original: Callable[..., Any], _trainer: Any, watcher: Watcher) -> Callable[..., Any]:
    def get_batch_samples(iterator: Any, count: int, device: Any) -> Any:
        batches, items = original(iterator, count, device)
        positions = [batch.pop(POSITION).tolist() for batch in batches]
        if batches:
            watcher.chosen(positions, sum(_counted(batch) for batch in batches))
        return batches, items

    return get_batch_samples


def _step(original: Callable[..., Any], _trainer: Any, watcher: Watcher) -> Callable[..., Any]:
    def training_step(*arguments: Any, **options: Any) -> Any:
        loss = original(*arguments, **options)
        watcher.computed(float(loss))
        return loss

    return training_step


def _norm(original: Callable[..., Any], _trainer: Any, watcher: Watcher) -> Callable[..., Any]:
    def get_grad_norm(*arguments: Any, **options: Any) -> Any:
        norm = original(*arguments, **options)
        watcher.normed(float(norm))
        return norm

    return get_grad_norm


def check_signal(step: int, loss: float, norm: float) -> None:
    """Refuse a step that has nothing to learn from, before the optimizer takes it.

    Raises:
        UsageError: `BAD_GRADIENT`, loss or norm is not finite, or the norm is zero.
    """
    if not (math.isfinite(norm) and norm > 0 and math.isfinite(loss)):
        raise UsageError(
            "BAD_GRADIENT", f"step {step} has a gradient norm of {norm} and a loss of {loss}"
        )


def _counted(batch: Batch) -> int:
    """How many tokens of a batch its loss looks at, as far as its tensors say."""
    labels, mask = batch.get("labels"), batch.get("completion_mask")
    if isinstance(labels, torch.Tensor) and labels.dim() > 1:
        return int((labels[..., 1:] != -100).sum())
    if mask is None:
        mask = batch.get("attention_mask")
    return 0 if mask is None else int(mask.sum())
