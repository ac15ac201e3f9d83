"""Weights for tokens that one program sampled and another learns from: what is done about the gap between both.

The ratio here is the learner's old probability over the sampler's. Sources: Yao et al. 2025 ("Your efficient RL
framework secretly brings you off-policy RL training") for truncating, Ling team 2025 (arXiv 2510.18855) for the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correction:
    """How the gap is weighed.

    Attributes:
        level: the ratio of a token, the product over a completion, or the geometric mean over it.
        rule: `truncate`: the ratio, at most `high`; `mask`: the ratio where it lies within both bounds, else 0.
        low: with `mask`.
        high: the upper bound.
    """

    level: Literal["token", "product", "mean"] = "token"
    rule: Literal["truncate", "mask"] = "truncate"
    low: float = 0.0
    high: float = 2.0


def weights(learner: Floats, sampler: Floats, correction: Correction) -> Floats:
    """The weight of each token, shape (tokens,).

    Args:
        learner: log-probabilities under the learner before the update.
        sampler: log-probabilities as the sampler gave them.
        correction: how.
    """
    distance = learner - sampler
    if correction.level != "token":
        whole = distance.sum() if correction.level == "product" else distance.mean()
        distance = np.full_like(distance, whole)
    ratio = np.exp(distance)
    if correction.rule == "truncate":
        return np.minimum(ratio, correction.high)
    within = (ratio >= correction.low) & (ratio <= correction.high)
    return np.where(within, ratio, 0.0)


def effective_share(values: Floats) -> float:
    """The effective sample size of weights as a share of their number: (sum w)^2 / (n sum w^2); Kish 1965."""
    total = float(np.square(values).sum())
    return float(values.sum() ** 2 / (values.size * total)) if total else 0.0
