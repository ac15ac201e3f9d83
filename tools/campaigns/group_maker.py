"""Good groups of every reward that can be replayed: real cases, episodes that were really played, blobs of the real form.

No model takes part: a policy of fixed habits picks what to write at each turn, right, wrong or malformed, and a tokenizer
that takes every four bytes for a token gives ids. What a verifier sees is what a runner would record.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ledger.canonical import real
from ledger.digests import sha256
from runners.prepare.desk_dated import dated_cases
from verifiers.data.identity import row_digest
from verifiers.learning.advantages import advantages
from verifiers.learning.group_plan import SAMPLER, GroupPlan
from verifiers.learning.groups import Group
from verifiers.learning.samples import Samples, encode_samples
from verifiers.learning.trace import ASSISTANT, Member, Turn, encode_trace
from verifiers.rewards.desk import read_case
from verifiers.rewards.desk_calls import call
from verifiers.rewards.episodes import REWARDS, EpisodeReward, script_digest

STATE = {"scheme": "tensors", "value": sha256(b"weights that sample")}
KEYS = tuple(REWARDS)
TOKEN_BYTES = 4
MAX_TURNS = {"desk": 1, "desk_episode": 8, "support": 4}
SCENARIO: dict[str, Any] = {
    "kind": "scenario",
    "family": "return_window",
    "opening": "I bought the blue kettle 45 days ago and it never pleased me. Please refund the 39.90 dollars.",
    "policy_facts": ["Refunds are granted within 30 days of delivery."],
    "context": "Order 5512, one blue kettle, 39.90 dollars, delivered 45 days ago.",
    "turns": ["But I was on holiday for two weeks. Can you not refund the kettle?"],
    "expected": {"decision": "refuse"},
    "must_avoid": ["full refund"],
}
_REPLIES = (
    "I'm sorry, the kettle was delivered 45 days ago, so I can't refund it.",
    "I have refunded the 39.90 dollars to your card.",
    "Thank you for your message about the kettle.",
    "Refund refund refund refund refund refund refund refund.",
)


@dataclass(frozen=True)
class Made:
    """A group as a runner would record it, with the row that it answers and the settings of its plan."""

    body: dict[str, Any]
    group: Group
    row: Mapping[str, Any]
    settings: dict[str, Any]

    @property
    def plan(self) -> GroupPlan:
        """What the settings say of groups."""
        return GroupPlan.of(self.settings)

    @property
    def blobs(self) -> tuple[bytes, bytes]:
        """The samples' file and the trace."""
        return encode_samples(self.group.samples), encode_trace(self.group.members)


def settings_of(reward: EpisodeReward, members: int = 4, **changes: Any) -> dict[str, Any]:
    """Settings of a plan as a record has them."""
    return {
        "advantage_centre": "mean",
        "advantage_scale": "std",
        "advantage_ddof": 1,
        "advantage_epsilon": "0.0001",
        "engine": "transformers",
        "group_size": members,
        "lora_dropout": "0.0",
        "max_new_tokens": 512,
        "max_turns": MAX_TURNS[reward.name],
        "min_p": "0.0",
        "num_iterations": 2,
        "overlong_buffer": 0,
        "overlong_penalty": "0.0",
        "reward": reward.name,
        "reward_version": reward.version,
        "steps_per_generation": 2,
        "temperature": "1.0",
        "top_k": 0,
        "top_p": "1.0",
        **changes,
    }


@cache
def rows_of(kind: str) -> tuple[dict[str, Any], ...]:
    """Rows of a kind: the dated desk cases, or scenarios that differ in their number."""
    if kind == "desk":
        return tuple(dated_cases(seed=3))
    return tuple({**SCENARIO, "id": f"kettle-{number}"} for number in range(8))


def make_group(
    source: random.Random,
    reward: EpisodeReward,
    row: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Made:
    """A group of one row, played member by member until its rewards differ; of equal rewards where a row allows no others.

    Args:
        source: of every choice.
        reward: that judges it.
        row: that it answers; one of `rows_of` where none is given.
        changes: of the plan's settings.
    """
    chosen = source.choice(rows_of(reward.kind)) if row is None else row
    settings = settings_of(reward, **changes)
    plan = GroupPlan.of(settings)
    task, script = row_digest(chosen), script_digest(chosen)
    first = source.randrange(2**31)
    members = tuple(
        _play(source, reward, chosen, plan, (number, task, script, first + number))
        for number in range(plan.members)
    )
    group = Group(samples_of(source, members), members)
    return Made(body_of(group, plan), group, chosen, settings)


def body_of(group: Group, plan: GroupPlan) -> dict[str, Any]:
    """The body of a group's record, its two blobs left out."""
    first = group.members[0]
    return {
        "task": first.task,
        "script": first.script,
        "members": len(group.members),
        "state": dict(STATE),
        "rewards": [real(reward) for reward in group.rewards],
        "advantages": [real(value) for value in advantages(group.rewards, plan.rule)],
        "dialect": "grpo",
        "sampler": {name: plan.settings[name] for name in SAMPLER},
        "stops": dict(Counter(member.stop for member in group.members)),
    }


def samples_of(source: random.Random, members: tuple[Member, ...]) -> Samples:
    """Ids, masks and log-probabilities for what the members said."""
    turns = [turn for member in members for turn in member.turns]
    lengths = [turn.tokens for turn in turns]
    given = np.array([turn.role == ASSISTANT for turn in turns], dtype=np.uint8)
    mask = np.repeat(given, lengths)
    numbers = np.random.default_rng(source.randrange(2**32))
    logprobs = -numbers.exponential(0.7, mask.size).astype(np.float32) * mask
    return Samples(
        prompt_ids=np.arange(1, 40, dtype=np.int32),
        lengths=np.array([sum(t.tokens for t in m.turns) for m in members], dtype=np.int32),
        completion_ids=np.concatenate([_ids(turn) for turn in turns]),
        mask=mask,
        logprobs=logprobs,
    )


def _play(
    source: random.Random,
    reward: EpisodeReward,
    row: Mapping[str, Any],
    plan: GroupPlan,
    named: tuple[int, str, str, int],
) -> Member:
    """One trajectory, to its end or to the last turn that the plan allows."""
    episode, answer = reward.begin(row), None
    turns: list[Turn] = []
    habit = source.choice(("right", "hasty", "wild"))
    for number in range(plan.max_turns):
        if answer is not None:
            turns.append(_turn(reward.role, answer))
        text = _say(source, reward.name, row, habit, number)
        turns.append(_turn(ASSISTANT, text))
        episode, answer = episode.answer(text)
        if episode.over:
            break
    stop = "end" if episode.over else "turns"
    earned, parts = reward.score(row, turns, stop)
    number, task, script, seed = named
    return Member(number, task, script, seed, tuple(turns), stop, parts, earned, None)


def _say(source: random.Random, name: str, row: Mapping[str, Any], habit: str, turn: int) -> str:
    if name == "support":
        return _REPLIES[0] if habit == "right" else source.choice(_REPLIES)
    case = read_case(row)
    told = {
        "lookup": call("lookup", order=case.order.order_id),
        "foreign": call("lookup", order="#W0000000"),
        "expected": case.expected,
        "wanted": case.wanted,
        "transfer": call("transfer"),
        "finish": call("finish"),
    }
    if name == "desk":
        asked = (
            "expected" if habit == "right" else source.choice(("expected", "wanted", "transfer"))
        )
        return "I will see to it." if habit == "wild" else told[asked].text()
    if habit == "right":
        # an action that is answered `try_again` is tried again
        again = "expected" if row["metadata"].get("environment") else "finish"
        return told[("lookup", "expected", again, "finish")[min(turn, 3)]].text()
    if habit == "hasty":
        return told[("wanted", "finish")[min(turn, 1)]].text()
    return "No call." if source.random() < 0.2 else told[source.choice(tuple(told))].text()


def _turn(role: str, text: str) -> Turn:
    return Turn(role, text, -(-len(text.encode()) // TOKEN_BYTES))


def _ids(turn: Turn) -> Any:
    data = turn.text.encode().ljust(turn.tokens * TOKEN_BYTES, b"\0")
    return np.frombuffer(data, dtype="<u4").astype(np.int64).__mod__(2**31 - 1).astype(np.int32)
