"""The loss on validation rows while a run trains, which changes nothing of the run (loads torch).

No gradient, no dropout, no draw from a generator that training draws from: modes and random states are as before. A run
with evaluation has the same weights, to the last bit, as one without.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ledger.canonical import real
from runners.train.loss import labelled_loss
from runners.train.precision import computing
from runners.train.preflight import encode_rows, read_rows
from runners.train.trained import core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from runners.train.config import SftSettings
    from runners.train.tokens import EncodedRow, Tokenizer


@dataclass(frozen=True)
class Validation:
    """Rows to evaluate on, and when.

    Attributes:
        rows: encoded like training rows.
        settings: of the run.
        last: the step after which the run ends; it is evaluated whatever the interval.
        collate: makes a batch of tensors of rows.
    """

    rows: Sequence[EncodedRow]
    settings: SftSettings
    last: int
    collate: Callable[[Sequence[dict[str, Any]]], dict[str, Any]]

    def due(self, step: int) -> bool:
        """Whether a step is followed by an evaluation."""
        return step % self.settings.eval_steps == 0 or step == self.last

    def figures(self, model: Any) -> dict[str, Any]:
        """The mean loss in nats over the labelled tokens of all rows, their number, and those predicted rightly."""
        total, labelled, right = 0.0, 0, 0
        device = next(model.parameters()).device
        with undisturbed(model), computing(self.settings, device):
            for start in range(0, len(self.rows), self.settings.batch_size):
                batch = self.collate(
                    [as_example(row) for row in self.rows[start : start + self.settings.batch_size]]
                )
                found = labelled_loss(
                    core(model),
                    batch["input_ids"].to(device),
                    batch["labels"].to(device),
                    batch["attention_mask"].sum(dim=1).tolist(),
                )
                total += found.total.item()
                labelled += found.labelled
                right += found.right
        return {
            "validation_loss": real(total / labelled),
            "validation_labelled": labelled,
            "validation_right": right,
            "validation_rows": len(self.rows),
        }


def validation_of(
    job: dict[str, Any],
    settings: SftSettings,
    tokenizer: Tokenizer,
    collate: Callable[[Sequence[dict[str, Any]]], dict[str, Any]],
) -> Validation | None:
    """The job's validation rows, encoded; None where it has none.

    Raises:
        EvidenceError: see `encode_rows`.
        UsageError: `ROW_UNTRAINABLE`, no row keeps a label.
    """
    if not settings.eval_steps or job.get("validation") is None:
        return None
    encoded = encode_rows(tokenizer, read_rows(Path(job["validation"])), settings.max_length)
    return Validation(encoded.rows, settings, int(job["until"]), collate)


def as_example(row: EncodedRow) -> dict[str, Any]:
    """A row as the collator takes it."""
    return {"input_ids": list(row.ids), "labels": list(row.labels), "rows": 0}


@contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Evaluate within: afterwards each module's mode and torch's random states are what they were."""
    modes = [(module, module.training) for module in model.modules()]
    with torch.random.fork_rng(), torch.no_grad():
        try:
            model.train(mode=False)
            yield
        finally:
            for module, training in modes:
                module.training = training
