"""Whether a group counts: what was sampled, by whom and under what, held against the plan. One code a fault.

The runner asks before it records a group and records a rejection under the code instead; a verifier asks again. A group is
judged as a whole: a member that failed is no reward of 0, and a group without it is another group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from verifiers.learning.advantages import advantages
from verifiers.learning.group_plan import SAMPLER, GroupPlan
from verifiers.learning.samples import Samples, read_samples
from verifiers.learning.trace import ASSISTANT, Member, read_trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

ADVANTAGE_TOLERANCE = 1e-5
"""Absolute and relative: a trainer computes them in float32."""


@dataclass(frozen=True)
class Group:
    """A group as its two files say: what was sampled, and what happened."""

    samples: Samples
    members: tuple[Member, ...]

    @property
    def rewards(self) -> list[float]:
        """One a member; NaN where there is none."""
        return [float("nan") if m.reward is None else m.reward for m in self.members]

    def trainable(self, member: int) -> int:
        """How many tokens of a member the policy sampled."""
        start, end = self.samples.bounds()[member]
        return int(self.samples.mask[start:end].sum())


def read_group(samples: BinaryIO, trace: bytes) -> Group:
    """A group from its samples' file and its trace.

    Raises:
        EvidenceError: what `read_samples` and `read_trace` raise.
    """
    return Group(read_samples(samples), read_trace(trace))


def check_group(
    body: Mapping[str, Any],
    group: Group,
    plan: GroupPlan,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a group that is not exactly what the plan asks for.

    Args:
        body: of its record, or of the record to be.
        group: what its files hold.
        plan: what the run's plan says.
        state: of the policy that was to sample it; None where nobody can say.

    Raises:
        EvidenceError: `GROUP_SIZE`, `GROUP_FAILED`, `GROUP_DUPLICATE_MEMBER`, `GROUP_MALFORMED`, `GROUP_OTHER_TASK`,
            `GROUP_OTHER_SCRIPT`, `GROUP_STATE`, `GROUP_SAMPLER`, `GROUP_TOKENS`, `LOGPROBS_WRONG`, `GROUP_CUT`,
            `GROUP_REWARD`, `GROUP_ADVANTAGE`; where several are due, the first of this order.
    """
    _check_size(body, group, plan)
    _check_failed(group)
    _check_distinct(group)
    _check_same(body, group)
    _check_state(body, state)
    _check_sampler(body, plan)
    for member, (start, end) in zip(group.members, group.samples.bounds(), strict=True):
        mask = group.samples.mask[start:end]
        _check_tokens(member, mask, plan)
        _check_logprobs(member, mask, group.samples.logprobs[start:end])
        _check_whole(member, plan)
    _check_stops(body, group)
    _check_rewards(body, group)
    _check_advantages(body, group, plan)


def _check_size(body: Mapping[str, Any], group: Group, plan: GroupPlan) -> None:
    counts = {
        "members": body["members"],
        "samples": int(group.samples.lengths.size),
        "trace": len(group.members),
    }
    for name, count in counts.items():
        if count != plan.members:
            raise _fault("GROUP_SIZE", "not the planned members", name, plan.members, count)


def _check_failed(group: Group) -> None:
    for member in group.members:
        if member.failed is not None:
            raise _fault("GROUP_FAILED", "environment or reward failed", _at(member, "failed"), None, member.failed)  # fmt: skip


def _check_distinct(group: Group) -> None:
    for name in ("number", "seed"):
        twice = [n for n, times in Counter(getattr(m, name) for m in group.members).items() if times > 1]  # fmt: skip
        if twice:
            raise _fault("GROUP_DUPLICATE_MEMBER", f"two members have one {name}", name, "distinct", twice[0])  # fmt: skip
    numbers = [member.number for member in group.members]
    if numbers != list(range(len(numbers))):
        raise _fault("GROUP_MALFORMED", "the members are not in order", "member", "0, 1, …", numbers)  # fmt: skip


def _check_same(body: Mapping[str, Any], group: Group) -> None:
    for name, code in (("task", "GROUP_OTHER_TASK"), ("script", "GROUP_OTHER_SCRIPT")):
        for member in group.members:
            if getattr(member, name) != body[name]:
                raise _fault(code, f"a member has another {name} than its group", _at(member, name), body[name], getattr(member, name))  # fmt: skip


def _check_state(body: Mapping[str, Any], state: Mapping[str, Any] | None) -> None:
    if state is not None and body["state"] != state:
        raise _fault("GROUP_STATE", "another policy state sampled it", "state", state, body["state"])  # fmt: skip


def _check_sampler(body: Mapping[str, Any], plan: GroupPlan) -> None:
    said = body["sampler"]
    unsaid = sorted(set(SAMPLER) - said.keys())
    if unsaid:
        raise _fault("GROUP_SAMPLER", "the group does not say how it was sampled", f"sampler.{unsaid[0]}", plan.sampler[unsaid[0]], "none")  # fmt: skip
    for name, value in said.items():
        planned = plan.settings.get(name)
        if value != planned or type(value) is not type(planned):
            raise _fault("GROUP_SAMPLER", "it was sampled otherwise than planned", f"sampler.{name}", planned, value)  # fmt: skip


def _check_tokens(member: Member, mask: NDArray[np.uint8], plan: GroupPlan) -> None:
    """The turns cover the tokens, the policy's turns are exactly what it sampled, and speakers take turns."""
    given = [turn.role == ASSISTANT for turn in member.turns]
    lengths = [turn.tokens for turn in member.turns]
    alternate = all(first != second for first, second in pairwise(given))
    if not given[0] or not alternate or min(lengths) < 1:
        raise _fault("GROUP_TOKENS", "speakers do not take turns, or one says no token", _at(member, "turns"), "assistant first", given)  # fmt: skip
    due = np.repeat(np.array(given, dtype=np.uint8), lengths) if sum(lengths) == mask.size else None
    if due is None or not np.array_equal(due, mask):
        raise _fault("GROUP_TOKENS", "turns and tokens are not the same", _at(member, "turns"), int(mask.size), sum(lengths))  # fmt: skip
    if max(lengths[::2]) > plan.max_new_tokens or len(lengths[::2]) > plan.max_turns:
        raise _fault("GROUP_TOKENS", "it is longer than the plan allows", _at(member, "turns"), f"{plan.max_turns} of {plan.max_new_tokens}", lengths[::2])  # fmt: skip


def _check_logprobs(member: Member, mask: NDArray[np.uint8], logprobs: NDArray[np.float32]) -> None:
    sampled = logprobs[mask == 1]
    if not np.isfinite(logprobs).all() or (sampled > 0).any():
        raise _fault("LOGPROBS_WRONG", "a log-probability is positive or not finite", _at(member, "logprobs"), "finite, at most 0", "other")  # fmt: skip
    if logprobs[mask == 0].any():
        raise _fault("LOGPROBS_WRONG", "a token that was given has a log-probability", _at(member, "logprobs"), "0.0", "other")  # fmt: skip


def _check_whole(member: Member, plan: GroupPlan) -> None:
    """The last turn is the policy's, and it ended for the reason named."""
    turns = [turn.tokens for turn in member.turns if turn.role == ASSISTANT]
    whole = sum(turn.tokens for turn in member.turns)
    if member.turns[-1].role != ASSISTANT:
        raise _fault("GROUP_CUT", "the last turn is not the policy's", _at(member, "turns"), ASSISTANT, member.turns[-1].role)  # fmt: skip
    if member.stop == "length" and max(turns[-1], whole) < plan.max_new_tokens:
        raise _fault("GROUP_CUT", "it was cut before the token limit", _at(member, "stop"), plan.max_new_tokens, whole)  # fmt: skip
    if member.stop == "turns" and len(turns) != plan.max_turns:
        raise _fault("GROUP_CUT", "it was cut before the last turn", _at(member, "stop"), plan.max_turns, len(turns))  # fmt: skip


def _check_stops(body: Mapping[str, Any], group: Group) -> None:
    stops = dict(Counter(member.stop for member in group.members))
    said = {name: count for name, count in body["stops"].items() if count}
    if said != stops:
        raise _fault("GROUP_CUT", "why members stopped is counted otherwise", "stops", stops, said)


def _check_rewards(body: Mapping[str, Any], group: Group) -> None:
    said = _reals("GROUP_REWARD", "rewards", body["rewards"], len(group.members))
    for member, reward in zip(group.members, said, strict=True):
        if member.reward is None or member.parts is None:
            raise _fault("GROUP_REWARD", "a member has no reward, or a part that is no number", _at(member, "reward"), "a number", member.reward)  # fmt: skip
        if member.reward != reward:
            raise _fault("GROUP_REWARD", "record and trace give other rewards", _at(member, "reward"), member.reward, reward)  # fmt: skip


def _check_advantages(body: Mapping[str, Any], group: Group, plan: GroupPlan) -> None:
    said = np.array(_reals("GROUP_ADVANTAGE", "advantages", body["advantages"], len(group.members)))
    due = advantages(group.rewards, plan.rule)
    if not np.allclose(said, due, rtol=ADVANTAGE_TOLERANCE, atol=ADVANTAGE_TOLERANCE):
        raise _fault("GROUP_ADVANTAGE", "the plan's rule gives other advantages", "advantages", due.tolist(), said.tolist())  # fmt: skip


def _reals(code: str, name: str, values: Sequence[Any], count: int) -> list[float]:
    if len(values) != count:
        raise _fault(code, f"there is not one of {name} a member", name, count, len(values))
    try:
        return [parse_real(value) for value in values]
    except (EvidenceError, TypeError):
        raise _fault(code, f"one of {name} is no number", name, "numbers", values) from None


def _at(member: Member, name: str) -> str:
    return f"members.{member.number}.{name}"


def _fault(code: str, message: str, field: str, expected: object, actual: object) -> EvidenceError:
    return EvidenceError(
        code, message, field=field, expected=str(expected)[:200], actual=str(actual)[:200]
    )
