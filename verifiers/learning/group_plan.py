"""What a reinforcement plan's settings say about its groups: how large, sampled how, judged how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from verifiers.learning.advantages import AdvantageRule, soft_overlong

SAMPLER = ("engine", "max_new_tokens", "min_p", "temperature", "top_k", "top_p")
"""Settings that change what is sampled: a group says each of them, as the plan does."""
_BASELINES: dict[str, Literal["mean", "others"]] = {"mean": "mean", "leave_one_out": "others"}
_SCALES: dict[str, Literal["none", "deviation"]] = {"none": "none", "std": "deviation"}


@dataclass(frozen=True)
class GroupPlan:
    """A plan's settings as far as groups, their rewards and batches of them follow from them.

    Attributes:
        members: of each group.
        sampler: the settings of `SAMPLER`, as the plan has them.
        settings: all settings, for what else a group says of its sampler.
        rule: what an advantage is.
        reward: name and version.
        max_new_tokens: that one completion may have.
        max_turns: of the policy, in one episode.
        overlong_buffer: tokens before the limit in which a long completion is penalised; 0 for none.
        overlong_penalty: the whole of that penalty, as a positive number.
        lag: by how many updates a batch's groups may be older than the policy that learns from them.
        slices: how many batches are made of the groups sampled at one time.
    """

    members: int
    sampler: Mapping[str, Any]
    settings: Mapping[str, Any]
    rule: AdvantageRule
    reward: tuple[str, int]
    max_new_tokens: int
    max_turns: int
    overlong_buffer: int
    overlong_penalty: float
    lag: int
    slices: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> GroupPlan:
        """What the settings say.

        Raises:
            EvidenceError: `PLAN_WRONG`, a setting that groups need is absent or of another type.
        """
        try:
            slices = int(settings["steps_per_generation"])
            return cls(
                members=int(settings["group_size"]),
                sampler={name: settings[name] for name in SAMPLER},
                settings=settings,
                rule=_rule(settings),
                reward=(str(settings["reward"]), int(settings["reward_version"])),
                max_new_tokens=int(settings["max_new_tokens"]),
                max_turns=int(settings["max_turns"]),
                overlong_buffer=int(settings.get("overlong_buffer") or 0),
                overlong_penalty=_real(settings.get("overlong_penalty") or "0.0"),
                lag=int(settings["num_iterations"]) * slices - 1,
                slices=slices,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EvidenceError(
                "PLAN_WRONG", f"the plan's settings do not say how groups are made: {error!r}"[:200]
            ) from None

    def overlong(self, tokens: int) -> float:
        """What a completion of so many sampled tokens loses of its reward: 0 or less."""
        if not self.overlong_buffer or not self.overlong_penalty:
            return 0.0
        share = soft_overlong(tokens, self.max_new_tokens, self.overlong_buffer)
        return self.overlong_penalty * share


def _rule(settings: Mapping[str, Any]) -> AdvantageRule:
    return AdvantageRule(
        baseline=_BASELINES[settings["advantage_centre"]],
        scale=_SCALES[settings["advantage_scale"]],
        ddof=cast("Literal[0, 1]", int(settings["advantage_ddof"])),
        epsilon=_real(settings["advantage_epsilon"]),
    )


def _real(value: Any) -> float:
    """A setting that is a real number: as text in a record, as itself before it is one."""
    return parse_real(value) if isinstance(value, str) else float(value)
