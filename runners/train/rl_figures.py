"""What one update's loss did: how far its ratios went from 1, how many tokens a bound held, how far the reference is (loads torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runners.train.rl_config import RlSettings


@dataclass(frozen=True)
class Measured:
    """Log-probabilities and entropies of the pass that learns, each of shape (completions, tokens), in nats."""

    logprobs: torch.Tensor
    entropies: torch.Tensor


def figures_of(
    measured: Measured, batch: Mapping[str, Any], settings: RlSettings
) -> dict[str, float]:
    """The figures of an update, by the names that its record has.

    Args:
        measured: of the pass that learns.
        batch: what it read.
        settings: of the run.
    """
    given = batch["completion_mask"].bool()
    mask = given & batch["tool_mask"].bool() if "tool_mask" in batch else given
    gains = batch["advantages"].unsqueeze(1).expand_as(mask)
    distance = measured.logprobs - batch["old_per_token_logps"]
    if settings.ratio_level == "sequence":
        mean = (distance * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
        distance = mean.expand_as(distance)
    ratio = distance.exp()
    away = batch["ref_per_token_logps"] - measured.logprobs
    kept = ratio[mask]
    return {
        "ratio_mean": float(kept.mean()),
        "ratio_min": float(kept.min()),
        "ratio_max": float(kept.max()),
        "clipped": float(_held(ratio, gains, settings)[mask].float().mean()),
        "masked": 1 - float(mask.sum() / given.sum()),
        "kl": float((away.exp() - away - 1)[mask].mean()),
        "entropy": float(measured.entropies[mask].mean()),
        "signal": float((batch["advantages"] != 0).float().mean()),
    }


def _held(ratio: torch.Tensor, gains: torch.Tensor, settings: RlSettings) -> torch.Tensor:
    """Where a bound acted."""
    high, low = ratio > settings.clip_high, ratio < settings.clip_low
    if settings.clip == "none":
        return torch.zeros_like(high)
    if settings.clip == "cispo":
        return high | low
    return (high & (gains > 0)) | (low & (gains < 0))
