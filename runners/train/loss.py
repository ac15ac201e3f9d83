"""The supervised loss, computed where it counts (loads torch).

The value is that of the library's own loss, the mean negative log-likelihood of the labelled tokens, to float tolerance
(a test holds the two side by side). Two savings, both exact:

* the vocabulary projection, a third of a small model's step, is made for labelled positions only;
* rows of a batch that open with the same tokens share one pass over that opening: keys and values are computed once and
  repeated, and the gradient of every row flows back through them. With LoRA dropout above zero a shared opening also
  shares its dropout mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from runners.train.tokens import IGNORED

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_SHARED = 16
"""Openings shorter than this are not worth a pass of their own."""

STEP = 8
"""Lengths are rounded to a multiple of this: a kernel is compiled for each new shape, and kept in memory."""


@dataclass(frozen=True)
class Shared:
    """Rows of a batch, by position, and how many opening tokens they share."""

    rows: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class LabelledLoss:
    """The summed loss in nats, and what it took: labelled tokens, those predicted rightly, tokens computed."""

    total: torch.Tensor
    labelled: int
    right: int
    computed: int


def labelled_loss(
    model: Any,
    input_ids: torch.Tensor,
    labels: torch.Tensor,
    lengths: Sequence[int],
    *,
    shared: bool = True,
) -> LabelledLoss:
    """The summed negative log-likelihood of a batch's labelled tokens.

    Args:
        model: a causal language model with `base_model` (the transformer) and `lm_head`, as adapters leave it.
        input_ids: tokens, shape (rows, longest), padded on the right.
        labels: the same shape, `IGNORED` where nothing is counted.
        lengths: tokens of each row without its padding.
        shared: openings are computed once. Layers that compute their activations again in the backward pass keep no
            keys and values while they train, so there it must be off.
    """
    parts, targets, computed = [], [], 0
    alone = [Shared((row,), 0) for row in range(len(lengths))]
    groups = share(input_ids.tolist(), _first_labels(labels), lengths) if shared else alone
    for group in groups:
        rows = list(group.rows)
        end = min(_rounded_up(max(lengths[row] for row in rows)), input_ids.shape[1])
        hidden = _hidden(model.base_model, input_ids[rows, :end], group.length)
        wanted = labels[rows, group.length + 1 : end]
        mask = wanted != IGNORED
        parts.append(hidden[:, :-1][mask])
        targets.append(wanted[mask])
        computed += group.length + len(rows) * (end - group.length)
    hidden, target = _filled(torch.cat(parts), torch.cat(targets))
    logits = model.lm_head(hidden).float()
    total = torch.nn.functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")
    right = int((logits.detach().argmax(dim=-1) == target).sum())
    return LabelledLoss(total, int((target != IGNORED).sum()), right, computed)


def share(
    rows: Sequence[Sequence[int]], first_labels: Sequence[int], lengths: Sequence[int]
) -> list[Shared]:
    """Rows put together where that computes fewer tokens: a row joins the first group that gains by it.

    A shared opening ends at least one token before the first label, whose prediction belongs to the row itself.
    """
    groups: list[Shared] = []
    for row, tokens in enumerate(rows):
        limit = min(first_labels[row] - 1, lengths[row] - 1)
        for index, group in enumerate(groups):
            common = _common(rows[group.rows[0]], tokens, min(group.length, limit))
            if common >= MIN_SHARED and len(group.rows) * (group.length - common) < common:
                groups[index] = Shared((*group.rows, row), common)
                break
        else:
            groups.append(Shared((row,), max(limit, 0)))
    return [_rounded(group) for group in groups]


def _filled(hidden: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both with rows that are not counted, up to a round length."""
    missing = _rounded_up(len(target)) - len(target)
    pad = torch.nn.functional.pad
    return pad(hidden, (0, 0, 0, missing)), pad(target, (0, missing), value=IGNORED)


def _rounded(group: Shared) -> Shared:
    alone = len(group.rows) == 1
    return Shared(group.rows, 0 if alone else group.length - group.length % STEP)


def _rounded_up(length: int) -> int:
    return -(-length // STEP) * STEP


def _hidden(transformer: Any, input_ids: torch.Tensor, shared: int) -> torch.Tensor:
    """Last hidden states from position `shared` on, shape (rows, length - shared, width)."""
    if not shared:
        plain: torch.Tensor = transformer(input_ids=input_ids, use_cache=False).last_hidden_state
        return plain
    cache = DynamicCache(config=transformer.config)
    transformer(input_ids=input_ids[:1, :shared], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(input_ids))
    rest: torch.Tensor = transformer(
        input_ids=input_ids[:, shared:], past_key_values=cache, use_cache=True
    ).last_hidden_state
    return rest


def _first_labels(labels: torch.Tensor) -> list[int]:
    counted = (labels != IGNORED).long()
    first = torch.where(counted.any(dim=1), counted.argmax(dim=1), labels.shape[1])
    return [int(position) for position in first]


def _common(left: Sequence[int], right: Sequence[int], limit: int) -> int:
    for position in range(limit):
        if left[position] != right[position]:
            return position
    return limit
