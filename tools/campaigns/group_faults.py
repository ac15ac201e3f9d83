"""What can be wrong with a group, one way at a time: how a good one is spoiled, and the code that it is then refused with."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from campaigns.group_maker import Made, body_of, make_group, rows_of, samples_of
from ledger import canonical
from ledger.canonical import real
from ledger.digests import sha256
from verifiers.learning.advantages import advantages
from verifiers.learning.groups import Group
from verifiers.learning.samples import Samples, encode_samples
from verifiers.learning.trace import ASSISTANT, Member, Turn, encode_trace
from verifiers.rewards.episodes import REWARDS, script_digest


@dataclass
class Spoiled:
    """What is handed to the check: the record's body, the samples' file, the trace, and the row that the task names."""

    body: dict[str, Any]
    samples: bytes
    trace: bytes
    row: Any


Spoil = Callable[[Made, random.Random], Spoiled]


@dataclass(frozen=True)
class Fault:
    """One way of being wrong, and every code that says so; `only` names the rewards where it can be done."""

    code: str
    spoil: Spoil
    only: tuple[str, ...] = ("desk", "desk_episode", "support")


def whole(made: Made, **body: Any) -> Spoiled:
    """A group as it is, with fields of its body changed."""
    samples, trace = made.blobs
    return Spoiled({**made.body, **body}, samples, trace, made.row)


def _again(made: Made, source: random.Random, members: list[Member]) -> Spoiled:
    """The group of other members, everything else derived from them as a careless runner would."""
    group = Group(samples_of(source, tuple(members)), tuple(members))
    changed = replace(made, group=group)
    stops = body_of(group, made.plan)["stops"] if members else {}
    return replace(whole(changed, stops=stops), row=made.row)


def _with(made: Made, source: random.Random, **changes: Any) -> Spoiled:
    """One member changed in its trace alone."""
    place = source.randrange(len(made.group.members))
    members = list(made.group.members)
    members[place] = replace(members[place], **changes)
    return replace(whole(made), trace=encode_trace(members))


def _short(made: Made, source: random.Random) -> Spoiled:
    members = list(made.group.members)
    del members[source.randrange(len(members))]
    numbered = [replace(member, number=place) for place, member in enumerate(members)]
    found = _again(made, source, numbered)
    body = {**body_of(Group(made.group.samples, tuple(numbered)), made.plan)}
    return replace(found, body={**body, "stops": found.body["stops"]})


def _long(made: Made, source: random.Random) -> Spoiled:
    last = made.group.members[-1]
    more = replace(last, number=last.number + 1, seed=last.seed + 1)
    members = [*made.group.members, more]
    return replace(_again(made, source, members), body=body_of(Group(made.group.samples, tuple(members)), made.plan))  # fmt: skip


def _line_lost(made: Made, source: random.Random) -> Spoiled:
    found = whole(made)
    lines = found.trace.splitlines(keepends=True)
    del lines[source.randrange(len(lines))]
    return replace(found, trace=b"".join(lines))


def _two_places(made: Made, source: random.Random) -> tuple[int, int]:
    first, second = source.sample(range(len(made.group.members)), 2)
    return first, second


def _twice(made: Made, source: random.Random, *, renumbered: bool) -> Spoiled:
    first, second = _two_places(made, source)
    members = list(made.group.members)
    copy = members[first]
    members[second] = replace(copy, number=second) if renumbered else copy
    found = _again(made, source, members)
    body = body_of(Group(made.group.samples, tuple(members)), made.plan)
    return replace(found, body=body)


def _same_seed(made: Made, source: random.Random) -> Spoiled:
    first, second = _two_places(made, source)
    members = list(made.group.members)
    members[second] = replace(members[second], seed=members[first].seed)
    return replace(whole(made), trace=encode_trace(members))


def _out_of_order(made: Made, source: random.Random) -> Spoiled:
    first, second = _two_places(made, source)
    members = list(made.group.members)
    members[first], members[second] = members[second], members[first]
    return replace(whole(made), trace=encode_trace(members))


def _other_row(made: Made, source: random.Random) -> Any:
    own = script_digest(made.row)
    others = [row for row in rows_of(made.row["kind"]) if row["id"] != made.row["id"]]
    differing = [row for row in others if script_digest(row) != own]
    return source.choice(differing or others)


def _task_of_another(made: Made, source: random.Random) -> Spoiled:
    return _with(made, source, task=sha256(source.randbytes(8)))


def _script_of_another(made: Made, source: random.Random) -> Spoiled:
    return _with(made, source, script=sha256(source.randbytes(8)))


def _row_of_another(made: Made, source: random.Random) -> Spoiled:
    """All members are relabelled as another task's, whose environment is another."""
    return replace(whole(made), row=_other_row(made, source))


def _foreign_state(made: Made, source: random.Random) -> Spoiled:
    state = {"scheme": "tensors", "value": sha256(source.randbytes(8))}
    return whole(made, state=state)


def _sampler(made: Made, source: random.Random) -> Spoiled:
    name, value = source.choice(
        [
            ("temperature", "0.7"),
            ("top_p", "0.9"),
            ("top_k", 20),
            ("min_p", "0.1"),
            ("max_new_tokens", 1),
            ("engine", "vllm"),
            ("temperature", 1),
        ]
    )
    return whole(made, sampler={**made.body["sampler"], name: value})


def _sampler_unsaid(made: Made, source: random.Random) -> Spoiled:
    left_out = source.choice(sorted(made.body["sampler"]))
    kept = {name: value for name, value in made.body["sampler"].items() if name != left_out}
    return whole(made, sampler=kept)


def _sampler_more(made: Made, _source: random.Random) -> Spoiled:
    return whole(made, sampler={**made.body["sampler"], "repetition_penalty": "1.2"})


def _samples(made: Made, **changes: Any) -> Spoiled:
    return replace(whole(made), samples=encode_samples(replace(made.group.samples, **changes)))


def _logprob(value: float, given: int = 1) -> Spoil:
    def spoil(made: Made, source: random.Random) -> Spoiled:
        logprobs = made.group.samples.logprobs.copy()
        places = np.flatnonzero(made.group.samples.mask == given)
        logprobs[source.choice(places.tolist())] = value
        return _samples(made, logprobs=logprobs)

    return spoil


def _logprobs_short(made: Made, source: random.Random) -> Spoiled:
    keep = made.group.samples.logprobs.size - source.randrange(1, 5)
    return _samples(made, logprobs=made.group.samples.logprobs[:keep])


def _logprobs_shifted(made: Made, source: random.Random) -> Spoiled:
    """Moved on by a few tokens, so that given tokens have some."""
    logprobs = made.group.samples.logprobs
    while not logprobs[made.group.samples.mask == 0].any():
        logprobs = np.roll(logprobs, source.randrange(1, 4))
    return _samples(made, logprobs=logprobs)


def _without(name: str) -> Spoil:
    def spoil(made: Made, _source: random.Random) -> Spoiled:
        data, _ = made.blobs
        return replace(whole(made), samples=_rebuilt(data, drop=name))

    return spoil


def _rebuilt(data: bytes, drop: str = "", retype: str = "", more: bool = False) -> bytes:
    """A samples' file with a tensor left out, of another type, or one too many."""
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    made: dict[str, Any] = {}
    parts: list[bytes] = []
    at = 0
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        if name == drop:
            continue
        dtype = "U32" if name == retype else entry["dtype"]
        made[name] = {**entry, "dtype": dtype, "data_offsets": [at, at + end - start]}
        parts.append(body[start:end])
        at += end - start
    if more:
        made["extra"] = {"dtype": "U8", "shape": [1], "data_offsets": [at, at + 1]}
        parts.append(b"\0")
    text = json.dumps(made).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _mask_flipped(made: Made, source: random.Random) -> Spoiled:
    mask = made.group.samples.mask.copy()
    place = source.randrange(mask.size)
    mask[place] = source.choice([value for value in (0, 1, 2, 255) if value != mask[place]])
    return _samples(made, mask=mask)


def _length_moved(made: Made, source: random.Random) -> Spoiled:
    """A token changes its owner: the sum stays as it is."""
    first, second = _two_places(made, source)
    lengths = made.group.samples.lengths.copy()
    lengths[first] += 1
    lengths[second] -= 1
    return _samples(made, lengths=lengths)


def _ids_short(made: Made, source: random.Random) -> Spoiled:
    keep = made.group.samples.completion_ids.size - source.randrange(1, 5)
    return _samples(made, completion_ids=made.group.samples.completion_ids[:keep])


def _id_negative(made: Made, source: random.Random) -> Spoiled:
    ids = made.group.samples.completion_ids.copy()
    ids[source.randrange(ids.size)] = -1
    return _samples(made, completion_ids=ids)


def _tokens_of_a_turn(made: Made, source: random.Random) -> Spoiled:
    place = source.randrange(len(made.group.members))
    turns = list(made.group.members[place].turns)
    turns[-1] = replace(turns[-1], tokens=turns[-1].tokens + source.choice((1, 5)))
    members = list(made.group.members)
    members[place] = replace(members[place], turns=tuple(turns))
    return replace(whole(made), trace=encode_trace(members))


def _reward_lost(made: Made, source: random.Random) -> Spoiled:
    return _with(made, source, reward=None)


def _raw_line(field: str, value: Any) -> Spoil:
    """A field of one line written as it never should be."""

    def spoil(made: Made, source: random.Random) -> Spoiled:
        lines = made.blobs[1].splitlines()
        place = source.randrange(len(lines))
        line = json.loads(lines[place])
        lines[place] = canonical.encode({**line, field: value})
        return replace(whole(made), trace=b"\n".join(lines) + b"\n")

    return spoil


def _reward_count(made: Made, source: random.Random) -> Spoiled:
    rewards = list(made.body["rewards"])
    changed = [*rewards, rewards[0]] if source.random() < 0.5 else rewards[:-1]
    return whole(made, rewards=changed)


def _reward_text(value: Any) -> Spoil:
    def spoil(made: Made, source: random.Random) -> Spoiled:
        rewards: list[Any] = list(made.body["rewards"])
        rewards[source.randrange(len(rewards))] = value
        return whole(made, rewards=rewards)

    return spoil


def _rewards_invented(made: Made, source: random.Random) -> Spoiled:
    """A reward that the replay does not give, told alike by trace and record, with advantages that follow from it."""
    place = source.randrange(len(made.group.members))
    members = list(made.group.members)
    earned = members[place].reward or 0.0
    invented = source.choice([value for value in (0.0, 0.5, 1.0, -1.0) if value != earned])
    members[place] = replace(members[place], reward=invented)
    group = Group(made.group.samples, tuple(members))
    return replace(whole(replace(made, group=group)), body=body_of(group, made.plan))


def _failed(made: Made, source: random.Random) -> Spoiled:
    return _with(made, source, failed="the environment raised", reward=0.0)


def _cut_turn(made: Made, source: random.Random) -> Spoiled:
    """A member's last turn is taken away with its tokens: the environment's answer hangs in the air."""
    members = list(made.group.members)
    long = [place for place, member in enumerate(members) if len(member.turns) > 1]
    if not long:
        place = source.randrange(len(members))
        members[place] = replace(members[place], stop="length")
        return replace(whole(made), trace=encode_trace(members), body={**made.body, "stops": body_of(Group(made.group.samples, tuple(members)), made.plan)["stops"]})  # fmt: skip
    place = source.choice(long)
    members[place] = replace(members[place], turns=members[place].turns[:-1])
    return _again(made, source, members)


def _cut_episode(made: Made, source: random.Random) -> Spoiled:
    """A member's last answer and reply are taken away, and it says that it ended so."""
    members = list(made.group.members)
    long = [place for place, member in enumerate(members) if len(member.turns) > 2]
    if not long:
        return _cut_turn(made, source)
    place = source.choice(long)
    members[place] = replace(members[place], turns=members[place].turns[:-2], stop="end")
    return _again(made, source, members)


def _stops(made: Made, _source: random.Random) -> Spoiled:
    return whole(made, stops={"end": len(made.group.members) + 1})


def _advantage(made: Made, source: random.Random) -> Spoiled:
    values = list(made.body["advantages"])
    place = source.randrange(len(values))
    values[place] = real(float(values[place]) + source.choice((-0.01, 0.01, 1.0)))
    return whole(made, advantages=values)


def _other_dialect(made: Made, _source: random.Random) -> Spoiled:
    """Advantages by another rule; where all are zero either way, one that is none."""
    rule = replace(made.plan.rule, ddof=0, epsilon=1e-8)
    values = [real(value) for value in advantages(made.group.rewards, rule)]
    return whole(made, advantages=["1.0", *values[1:]] if values == made.body["advantages"] else values)  # fmt: skip


def _environment_lied(made: Made, source: random.Random) -> Spoiled:
    """An answer of the environment is another than it gave."""
    members = list(made.group.members)
    answered = [place for place, member in enumerate(members) if len(member.turns) > 1]
    if not answered:
        return _environment_extra(made, source)
    place = source.choice(answered)
    turns = list(members[place].turns)
    spoken = source.choice([at for at, turn in enumerate(turns) if turn.role != ASSISTANT])
    text = "Very well." if turns[spoken].role == "user" else '{"done":"refund"}'
    turns[spoken] = Turn(turns[spoken].role, text, turns[spoken].tokens)
    members[place] = replace(members[place], turns=tuple(turns))
    return replace(whole(made), trace=encode_trace(members))


def _environment_extra(made: Made, source: random.Random) -> Spoiled:
    """The environment is said to have answered, and the policy to have gone on, though the episode was over."""
    members = list(made.group.members)
    place = source.randrange(len(members))
    role = REWARDS[made.plan.reward].role
    more = (Turn(role, "Go on.", 2), Turn(ASSISTANT, "I did.", 2))
    members[place] = replace(members[place], turns=(*members[place].turns, *more))
    return _again(made, source, members)


def _cut_file(made: Made, source: random.Random) -> Spoiled:
    data = made.blobs[0]
    return replace(whole(made), samples=data[: source.randrange(8, len(data))])


def _lengthened_file(made: Made, source: random.Random) -> Spoiled:
    return replace(whole(made), samples=made.blobs[0] + source.randbytes(4))


def _trace_bytes(made: Made, source: random.Random) -> Spoiled:
    data = made.blobs[1]
    spoiled = source.choice(
        (data[:-1], b"", data + b"\n", data.replace(b'"', b"'", 1), b" " + data)
    )
    return replace(whole(made), trace=spoiled)


def _nothing_sampled(made: Made, _source: random.Random) -> Spoiled:
    none = np.zeros(0, dtype=np.int32)
    empty = Samples(none, none, none, none.astype(np.uint8), none.astype(np.float32))
    return replace(whole(made), samples=encode_samples(empty))


_TURNS = ("desk_episode", "support")
FAULTS: dict[str, Fault] = {
    "short": Fault("GROUP_SIZE", _short),
    "long": Fault("GROUP_SIZE", _long),
    "a line of the trace lost": Fault("GROUP_SIZE", _line_lost),
    "member twice, same line": Fault("GROUP_DUPLICATE_MEMBER", lambda made, source: _twice(made, source, renumbered=False)),
    "member twice, renumbered": Fault("GROUP_DUPLICATE_MEMBER", lambda made, source: _twice(made, source, renumbered=True)),
    "two members of one seed": Fault("GROUP_DUPLICATE_MEMBER", _same_seed),
    "members out of order": Fault("GROUP_MALFORMED", _out_of_order),
    "a member of another task": Fault("GROUP_OTHER_TASK", _task_of_another),
    "another member's script": Fault("GROUP_OTHER_SCRIPT", _script_of_another),
    "another row's environment": Fault("GROUP_OTHER_SCRIPT", _row_of_another, ("desk", "desk_episode")),
    "foreign policy state": Fault("GROUP_STATE", _foreign_state),
    "another sampler": Fault("GROUP_SAMPLER", _sampler),
    "a sampler setting unsaid": Fault("GROUP_SAMPLER", _sampler_unsaid),
    "a sampler setting nobody planned": Fault("GROUP_SAMPLER", _sampler_more),
    "log-probabilities missing": Fault("LOGPROBS_WRONG", _without("logprobs")),
    "a log-probability NaN": Fault("LOGPROBS_WRONG", _logprob(float("nan"))),
    "a log-probability infinite": Fault("LOGPROBS_WRONG", _logprob(float("-inf"))),
    "a log-probability positive": Fault("LOGPROBS_WRONG", _logprob(0.25)),
    "log-probabilities too few": Fault("LOGPROBS_WRONG", _logprobs_short),
    "log-probabilities shifted": Fault("LOGPROBS_WRONG", _logprobs_shifted, ("support",)),
    "a given token with a log-probability": Fault("LOGPROBS_WRONG", _logprob(-0.5, given=0), ("support",)),
    "ids missing": Fault("GROUP_MALFORMED", _without("completion_ids")),
    "a tensor too many": Fault("GROUP_MALFORMED", lambda made, _: replace(whole(made), samples=_rebuilt(made.blobs[0], more=True))),
    "ids of another type": Fault("GROUP_MALFORMED", lambda made, _: replace(whole(made), samples=_rebuilt(made.blobs[0], retype="prompt_ids"))),
    "ids too few": Fault("GROUP_TOKENS", _ids_short),
    "an id negative": Fault("GROUP_TOKENS", _id_negative),
    "nothing sampled": Fault("GROUP_TOKENS", _nothing_sampled),
    "mask flipped": Fault("GROUP_TOKENS", _mask_flipped),
    "lengths moved": Fault("GROUP_TOKENS", _length_moved),
    "a turn of more tokens": Fault("GROUP_TOKENS", _tokens_of_a_turn),
    "reward None": Fault("GROUP_REWARD", _reward_lost),
    "reward NaN": Fault("GROUP_REWARD", _raw_line("reward", "nan")),
    "reward of the record NaN": Fault("GROUP_REWARD", _reward_text("nan")),
    "reward of the record None": Fault("GROUP_REWARD", _reward_text(None)),
    "rewards of a wrong count": Fault("GROUP_REWARD", _reward_count),
    "rewards invented": Fault("GROUP_REWARD", _rewards_invented),
    "a part that is no number": Fault("GROUP_REWARD", _raw_line("parts", {"outcome": None})),
    "cut in the middle of a turn": Fault("GROUP_CUT", _cut_turn),
    "cut in the middle of an episode": Fault("GROUP_CUT", _cut_episode),
    "stops miscounted": Fault("GROUP_CUT", _stops),
    "environment failed": Fault("GROUP_FAILED", _failed),
    "advantages other": Fault("GROUP_ADVANTAGE", _advantage),
    "advantages of another dialect": Fault("GROUP_ADVANTAGE", _other_dialect),
    "the environment's answer changed": Fault("EPISODE_WRONG", _environment_lied, _TURNS),
    "samples cut": Fault("TENSORS_INVALID", _cut_file),
    "samples go on": Fault("TENSORS_INVALID", _lengthened_file),
    "trace of another form": Fault("GROUP_MALFORMED", _trace_bytes),
}  # fmt: skip


def spoiled(name: str, source: random.Random) -> tuple[Made, Spoiled]:
    """A good group of a kind that the fault fits, and the same with the fault."""
    fault = FAULTS[name]
    reward = source.choice([item for item in REWARDS.values() if item.name in fault.only])
    made = make_group(source, reward)
    return made, fault.spoil(made, source)
