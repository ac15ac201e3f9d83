"""Advantages of a group of rewards: how much better each member did than its group.

The rule is spelled out, never a framework's name: the same name stands for different constants elsewhere. Sources: Shao
et al. 2024 (arXiv 2402.03300) for the group's mean and deviation, Liu et al. 2025 (2503.20783) for the mean alone,
Ahmadian et al. 2024 (2402.14740) for leaving the member itself out.
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

MIN_MEMBERS = 2


@dataclass(frozen=True)
class AdvantageRule:
    """What an advantage is, constant by constant.

    Attributes:
        baseline: what is subtracted: the group's mean, or the mean of the other members.
        scale: what it is divided by: nothing, or the group's standard deviation.
        ddof: 1 for the sample's deviation, 0 for the population's.
        epsilon: keeps the division finite.
        guard: `add`: the deviation plus epsilon; `floor`: the larger of both.
    """

    baseline: Literal["mean", "others"] = "mean"
    scale: Literal["none", "deviation"] = "deviation"
    ddof: Literal[0, 1] = 1
    epsilon: float = 1e-4
    guard: Literal["add", "floor"] = "add"


def advantages(rewards: Sequence[float], rule: AdvantageRule) -> Floats:
    """The advantages of one group's members, shape (members,), in float64.

    Equal rewards give zeros, exactly: such a group says nothing.

    Raises:
        EvidenceError: `GROUP_SIZE`, a group of fewer than two has no baseline; `NOT_A_REAL`, a reward is not finite.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 1 or values.size < MIN_MEMBERS:
        raise EvidenceError(
            "GROUP_SIZE", f"{values.size} rewards have no baseline", field="rewards"
        )
    if not np.isfinite(values).all():
        raise EvidenceError("NOT_A_REAL", "a reward is not finite", field="rewards")
    if is_constant(rewards):
        return np.zeros_like(values)
    mean = float(values.mean())
    centred: Floats = values - mean
    if rule.baseline == "others":
        centred = centred * values.size / (values.size - 1)
    if rule.scale == "none":
        return centred
    deviation = float(values.std(ddof=rule.ddof))
    guarded = deviation + rule.epsilon if rule.guard == "add" else max(deviation, rule.epsilon)
    scaled: Floats = centred / guarded
    return scaled


def is_constant(rewards: Sequence[float]) -> bool:
    """Whether all rewards are the same number: by comparison, not by a deviation that rounding keeps above zero."""
    return all(reward == rewards[0] for reward in rewards)


def soft_overlong(length: int, limit: int, buffer: int) -> float:
    """The penalty for a long completion, 0 to -1 (Yu et al. 2025, arXiv 2503.14476, equation 13).

    Args:
        length: of the completion, in tokens.
        limit: from which on the penalty is whole.
        buffer: how many tokens before the limit it begins.
    """
    begins = limit - buffer
    if length <= begins:
        return 0.0
    return max((begins - length) / buffer, -1.0)
