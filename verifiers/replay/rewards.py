"""V17: what an audit of a reward says is derived again, where the reward is one of ours."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.digests import sha256
from verifiers.replay.view import deriving, expect
from verifiers.rewards import (
    decisions,
    desk,
    desk_calls,
    desk_episodes,
    desk_records,
    desk_rules,
    episodes,
    support,
)
from verifiers.rewards.episodes import REWARDS, spoken
from verifiers.rewards.suite import Inversion, inversions, read_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from ledger.record import Record
    from verifiers.replay.view import Replay, View
    from verifiers.rewards.suite import Reward


def _one_turn(scenario: Mapping[str, Any], reply: str) -> float:
    return support.reward(scenario, reply)[0]


def _desk_turns(name: str) -> Reward:
    """A desk reward as an audit asks it: each line of a reply is one turn."""
    reward = REWARDS[name, 1]
    return lambda case, reply: spoken(reward, case, reply.split("\n"))


SHIPPED: dict[tuple[str, int], Reward] = {
    (support.NAME, support.VERSION): _one_turn,
    ("desk", 1): _desk_turns("desk"),
    ("desk_episode", 1): _desk_turns("desk_episode"),
}
"""Rewards that an audit can be derived again for."""
_DESK = (desk, desk_calls, desk_records, desk_rules, desk_episodes, episodes)
_CODE: dict[str, tuple[ModuleType, ...]] = {
    support.NAME: (support, decisions),
    "desk": _DESK,
    "desk_episode": _DESK,
}


@cache
def shipped_code(name: str) -> bytes:
    """The source of a reward of ours as an audit keeps it."""
    modules = _CODE[name]
    code = {module.__name__: Path(str(module.__file__)).read_text("utf-8") for module in modules}
    return canonical.encode(code)


def findings_rows(found: list[Inversion]) -> list[dict[str, Any]]:
    """Inversions as an audit's blob keeps them."""
    return [
        {
            "pair": item.pair.id,
            "trap": item.pair.trap,
            "right": repr(item.right),
            "wrong": repr(item.wrong),
        }
        for item in found
    ]


def reward_audit(record: Record, view: View) -> str | None:
    """The pairs are in the suite that is named, and a reward of ours inverts as many as the record says.

    Raises:
        EvidenceError: `REWARD_WRONG`.
    """
    body = record.body
    with deriving("REWARD_WRONG"):
        pairs = read_pairs(view.lines(body["suite"]))
        expect("REWARD_WRONG", "pairs", body["pairs"], len(pairs))
        findings = [] if body["findings"] is None else list(view.lines(body["findings"]))
        expect("REWARD_WRONG", "inversions", body["inversions"], len(findings))
        reward = SHIPPED.get((body["name"], body["reward_version"]))
        if reward is None or body["code"]["digest"] != sha256(shipped_code(body["name"])):
            return "what a reward that is not the project's own gives"
        derived = findings_rows(inversions(reward, pairs))
        expect("REWARD_WRONG", "findings", findings, derived)
    return None


REPLAYS: dict[str, Replay] = {"reward.audited": reward_audit}
