"""What a completion earns: the one place where the runner asks a reward, and takes the planned penalty for length.

A reward that fails is a fact about the group, never a zero: the group is then rejected with a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import EvidenceError
from runners.train.sampling import LENGTH
from verifiers.learning.advantages import soft_overlong
from verifiers.rewards import desk, support

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runners.train.rl_config import RlSettings

Earned = tuple[float | None, dict[str, float], str | None]
"""Reward, its parts by name, and why there is none."""


def earned(
    row: Mapping[str, Any], text: str, stop: str, tokens: int, settings: RlSettings
) -> Earned:
    """What a completion earns.

    Args:
        row: the task's.
        text: the completion's.
        stop: why it ended.
        tokens: how many the policy sampled.
        settings: of the run.
    """
    try:
        reward, parts = score(settings.reward, row, text, stop)
    except EvidenceError as error:
        return None, {}, f"{error.code}: {error.message}"[:300]
    if settings.overlong_buffer:
        share = soft_overlong(tokens, settings.max_new_tokens, settings.overlong_buffer)
        reward += settings.overlong_penalty * share
    return reward, parts, None


def score(
    name: str, row: Mapping[str, Any], text: str, stop: str
) -> tuple[float, dict[str, float]]:
    """The reward of a name for a text in one turn, and its parts.

    Raises:
        EvidenceError: `CASE_BROKEN`, `CASE_DISAGREES`: the row cannot be judged.
    """
    if name == support.NAME:
        return support.reward(row, text)
    found = desk.outcome(row, text, truncated=stop == LENGTH)
    success = float(found["success"])
    return success, {"outcome": success, "violations": float(len(found["violations"]))}
