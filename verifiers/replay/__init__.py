"""Steps V17 to V20: what a record claims is derived again from the records and blobs it names."""

from __future__ import annotations

from verifiers.replay import (
    data,
    draws,
    judgement,
    learning,
    models,
    plans,
    promotion,
    rewards,
    rollouts,
    studies,
)
from verifiers.replay.view import Replay, View

REPLAYS: dict[str, Replay] = {
    **data.REPLAYS,
    **rewards.REPLAYS,
    **learning.REPLAYS,
    **rollouts.REPLAYS,
    **models.REPLAYS,
    **plans.REPLAYS,
    **judgement.REPLAYS,
    **promotion.REPLAYS,
    **draws.REPLAYS,
    **studies.REPLAYS,
}

__all__ = ["REPLAYS", "Replay", "View"]
