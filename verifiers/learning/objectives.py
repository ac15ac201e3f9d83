"""The policy loss of group-relative learning, in float64 and with its gradient: what a trainer's figures are held against.

One objective is a level of the ratio, a clip, an aggregation and a divergence from the reference. Notation: d is the new log-probability of a
token less the old one, r = exp(d), s = exp(mean of d over a sequence), A the sequence's advantage.

    clip     ppo     -min(r A, clip(r, low, high) A)     Schulman et al. 2017, arXiv 1707.06347; with `dual`, Ye et al. 2020, 1912.09729
             cispo   -sg(clip(r, low, high)) A logp      MiniMax 2025, arXiv 2506.13585
             none    -r A
    level    token   r                                   Shao et al. 2024, arXiv 2402.03300
             sequence  s for each of its tokens          Zheng et al. 2025, arXiv 2507.18071
    penalty  k1 d', k2 d'^2 / 2, k3 exp(-d') + d' - 1, d' the new log-probability less the reference's
             (Schulman, joschu.net/blog/kl-approx)

Bounds are absolute ratios. Gradients are with respect to the new log-probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Clip = Literal["ppo", "cispo", "none"]
Level = Literal["token", "sequence"]
Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum_mean", "constant", "sum"]
Penalty = Literal["none", "k1", "k2", "k3"]


@dataclass(frozen=True)
class Objective:
    """A policy loss, constant by constant.

    Attributes:
        level: whether a token's ratio is its own or its sequence's.
        clip: how the ratio is bounded.
        low: the lower bound, 0 for none.
        high: the upper bound.
        dual: with `ppo`, a bound on the loss where the advantage is negative; None for none.
        aggregation: how tokens become one number: over all tokens; over a sequence's tokens, then over sequences; sums
            of sequences, over sequences; all tokens over sequences times `divisor`; or just the sum.
        divisor: in tokens, with `constant`: the longest completion that the plan allows.
        penalty: the estimator of the divergence from the reference.
        coefficient: of the penalty.
    """

    level: Level = "token"
    clip: Clip = "ppo"
    low: float = 0.8
    high: float = 1.2
    dual: float | None = None
    aggregation: Aggregation = "sequence_mean"
    divisor: int | None = None
    penalty: Penalty = "none"
    coefficient: float = 0.0


@dataclass(frozen=True)
class Completion:
    """One sampled completion: log-probabilities of its tokens, each of shape (tokens,), and its advantage.

    Attributes:
        new: under the policy that learns.
        old: under the policy that the ratio is taken against.
        advantage: of the whole completion.
        reference: under the reference, where there is a penalty.
        weight: of each token's policy loss, where sampler and learner differ (`verifiers.learning.corrections`).
    """

    new: Floats
    old: Floats
    advantage: float
    reference: Floats | None = None
    weight: Floats | None = None


@dataclass(frozen=True)
class PolicyLoss:
    """The loss of a batch and what it did.

    Attributes:
        value: what is minimised.
        tokens: each completion's losses, before aggregation.
        gradients: the derivative of `value` by each new log-probability.
        ratios: each completion's ratios.
        clipped: the share of tokens whose bound acted: with `ppo` those without a gradient, or whose loss `dual` bounded;
            with `cispo` those whose weight is a bound.
    """

    value: float
    tokens: list[Floats]
    gradients: list[Floats]
    ratios: list[Floats]
    clipped: float


def policy_loss(completions: Sequence[Completion], objective: Objective) -> PolicyLoss:
    """The loss of a batch of completions.

    Raises:
        EvidenceError: `LOGPROBS_WRONG`, log-probabilities are missing, misaligned, positive or not finite.
    """
    if not completions:
        raise EvidenceError("LOGPROBS_WRONG", "a batch without completions has no loss")
    for item in completions:
        _check(item, objective)
    shares = _shares([item.new.size for item in completions], objective)
    losses, gradients, ratios, bound = [], [], [], 0
    for item, share in zip(completions, shares, strict=True):
        ratio = _ratio(item, objective.level)
        loss, slope, acted = _clipped(ratio, item, objective)
        if item.weight is not None:
            loss, slope = loss * item.weight, slope * item.weight
        if objective.level == "sequence" and objective.clip != "cispo":
            # a token is one of n in the distance that all n losses share
            slope = np.full_like(slope, slope.mean())
        divergence, pull = _penalty(item, objective)
        loss = loss + objective.coefficient * divergence
        losses.append(loss)
        gradients.append(share * (slope + objective.coefficient * pull))
        ratios.append(ratio)
        bound += int(acted.sum())
    value = sum(float((share * loss).sum()) for share, loss in zip(shares, losses, strict=True))
    count = sum(item.new.size for item in completions)
    return PolicyLoss(value, losses, gradients, ratios, bound / count)


def _ratio(item: Completion, level: Level) -> Floats:
    distance = item.new - item.old
    if level == "token":
        return np.exp(distance)
    return np.full_like(distance, np.exp(distance.mean()))


def _clipped(
    ratio: Floats, item: Completion, objective: Objective
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Losses, their slopes by the distance behind the ratio, and where a bound acted."""
    gain = item.advantage
    held = np.clip(ratio, objective.low, objective.high)
    if objective.clip == "none":
        return -ratio * gain, -ratio * gain, np.zeros(ratio.shape, dtype=np.bool_)
    if objective.clip == "cispo":
        return -held * gain * item.new, -held * gain, held != ratio
    free, bounded = -ratio * gain, -held * gain
    loss = np.maximum(free, bounded)
    acted = bounded > free
    if objective.dual is not None and gain < 0:
        ceiling = -objective.dual * gain
        acted = acted | (loss > ceiling)
        loss = np.minimum(loss, ceiling)
    return loss, np.where(acted, 0.0, free), acted


def _penalty(item: Completion, objective: Objective) -> tuple[Floats, Floats]:
    """The divergence at each token and its derivative."""
    if objective.penalty == "none" or item.reference is None:
        return np.zeros_like(item.new), np.zeros_like(item.new)
    distance = item.new - item.reference
    if objective.penalty == "k1":
        return distance, np.ones_like(distance)
    if objective.penalty == "k2":
        return distance**2 / 2, distance
    return np.exp(-distance) + distance - 1, 1 - np.exp(-distance)


def _shares(lengths: Sequence[int], objective: Objective) -> list[float]:
    """What a token's loss counts in the batch's, by the completion that it stands in."""
    count, whole = len(lengths), sum(lengths)
    match objective.aggregation:
        case "token_mean":
            return [1 / whole for _ in lengths]
        case "sequence_mean":
            return [1 / (count * length) for length in lengths]
        case "sequence_sum_mean":
            return [1 / count for _ in lengths]
        case "constant":
            if objective.divisor is None or objective.divisor < max(lengths):
                raise EvidenceError(
                    "LOGPROBS_WRONG",
                    f"a completion of {max(lengths)} tokens is longer than the divisor",
                    field="divisor",
                )
            return [1 / (count * objective.divisor) for _ in lengths]
        case _:
            return [1.0 for _ in lengths]


def _check(item: Completion, objective: Objective) -> None:
    named = {"new": item.new, "old": item.old}
    if objective.penalty != "none":
        named["reference"] = _there(item.reference)
    for name, values in named.items():
        if values.shape != item.new.shape or values.ndim != 1 or not values.size:
            raise EvidenceError(
                "LOGPROBS_WRONG", f"{name} has not one log-probability a token", field=name
            )
        if not np.isfinite(values).all() or (values > 0).any():
            raise EvidenceError(
                "LOGPROBS_WRONG", f"{name} holds what is no log-probability", field=name
            )


def _there(values: Floats | None) -> Floats:
    if values is None:
        raise EvidenceError(
            "LOGPROBS_WRONG", "a penalty needs the reference's log-probabilities", field="reference"
        )
    return values
