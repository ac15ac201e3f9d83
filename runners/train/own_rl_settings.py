"""The settings of a run of groups in a user's own script (torch-free)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from runners.train.rl_config import RlSettings

TRAINER: Literal["LedgerGRPOTrainer"] = "LedgerGRPOTrainer"


class OwnRlSettings(RlSettings):
    """The settings of a run of `LedgerGRPOTrainer`: those of our own runs, and a reward of any audited name."""

    reward: Annotated[str, Field(min_length=1, max_length=80)] = "desk"  # type: ignore[assignment]  # wider than ours
    trainer: Literal["LedgerGRPOTrainer"] = TRAINER


def planned_settings(values: Mapping[str, Any]) -> RlSettings:
    """The settings of a recorded reinforcement plan, of our own runner or of a user's script.

    Raises:
        UsageError: `SETTING_UNKNOWN`; `SETTING_INVALID`.
    """
    kind = OwnRlSettings if "trainer" in values else RlSettings
    return kind.from_values(values)
