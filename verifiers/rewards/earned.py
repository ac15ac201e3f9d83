"""What a group's members earn by replay: the one place where a reward, its parts and a penalty for length come together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.learning.trace import ASSISTANT, Turn
from verifiers.rewards.episodes import REWARDS, EpisodeReward, script_digest

if TYPE_CHECKING:
    from verifiers.learning.group_plan import GroupPlan
    from verifiers.learning.groups import Group

OWN_REWARD = "what a reward of one's own gave the members of a group"
OVERLONG = "overlong"
TOLERANCE = 1e-9


def earned(
    reward: EpisodeReward,
    row: Mapping[str, Any],
    turns: Sequence[Turn],
    stop: str,
    plan: GroupPlan,
) -> tuple[float, dict[str, float]]:
    """The reward of a trajectory as its trace is to have it: by replay, less what the plan takes off for length.

    Raises:
        EvidenceError: what `EpisodeReward.score` raises.
    """
    value, parts = reward.score(row, turns, stop)
    if not plan.overlong_buffer:
        return value, parts
    sampled = sum(turn.tokens for turn in turns if turn.role == ASSISTANT)
    penalty = plan.overlong(sampled)
    return value + penalty, {**parts, OVERLONG: penalty}


def check_earned(group: Group, plan: GroupPlan, row: Mapping[str, Any]) -> str | None:
    """Refuse a group whose members met another environment than the row's, or earned otherwise than its replay gives.

    Returns:
        What is taken on faith, where nobody can replay the reward; else None.

    Raises:
        EvidenceError: `GROUP_OTHER_SCRIPT`; `GROUP_OTHER_TASK`, the reward does not judge rows of this kind; `EPISODE_WRONG`;
            `GROUP_CUT`; `GROUP_REWARD`.
    """
    script = script_digest(row)
    for member in group.members:
        if member.script != script:
            raise EvidenceError(
                "GROUP_OTHER_SCRIPT",
                "the members met another environment than the row's",
                field=f"members.{member.number}.script",
                expected=script,
                actual=member.script,
            )
    reward = REWARDS.get(plan.reward)
    if reward is None:
        return OWN_REWARD
    if row["kind"] != reward.kind:
        raise EvidenceError(
            "GROUP_OTHER_TASK",
            f"the reward {reward.name} does not judge rows of this kind",
            field="task",
            expected=reward.kind,
            actual=str(row["kind"])[:40],
        )
    for member in group.members:
        value, parts = earned(reward, row, member.turns, member.stop, plan)
        due = {"reward": value, **parts}
        said = {"reward": member.reward, **(member.parts or {})}
        if due.keys() != said.keys() or any(not _near(said[name], due[name]) for name in due):
            raise EvidenceError(
                "GROUP_REWARD",
                "the replay gives another reward, or other parts",
                field=f"members.{member.number}.reward",
                expected=str(due)[:200],
                actual=str(said)[:200],
            )
    return None


def _near(said: float | None, due: float) -> bool:
    return said is not None and abs(said - due) <= TOLERANCE
