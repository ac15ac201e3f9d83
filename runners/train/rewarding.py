"""What a completion earns: the one place where the runner asks a reward, by the verifier's own rule.

A reward that fails is a fact about the group, never a zero: the group is then rejected with a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import EvidenceError
from verifiers.learning.group_plan import GroupPlan
from verifiers.learning.trace import ASSISTANT, Turn
from verifiers.rewards.earned import earned as by_replay
from verifiers.rewards.episodes import REWARDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runners.train.rl_config import RlSettings

Earned = tuple[float | None, dict[str, float], str | None]
"""Reward, its parts by name, and why there is none."""


def earned(
    row: Mapping[str, Any], text: str, stop: str, tokens: int, settings: RlSettings
) -> Earned:
    """What a completion earns, less what the plan takes off for length.

    Args:
        row: the task's.
        text: the completion's.
        stop: why it ended.
        tokens: how many the policy sampled.
        settings: of the run.
    """
    reward = REWARDS[settings.reward, settings.reward_version]
    plan = GroupPlan.of(settings.effective())
    try:
        value, parts = by_replay(reward, row, [Turn(ASSISTANT, text, tokens)], stop, plan)
    except EvidenceError as error:
        return None, {}, f"{error.code}: {error.message}"[:300]
    return value, dict(parts), None
