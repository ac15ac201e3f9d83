"""Groups: the two files as they lie in blobs, one fault at a time, and what only an edge shows."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import numpy as np
import pytest
from campaigns.group_faults import FAULTS, spoiled, whole
from campaigns.group_maker import KEYS, STATE, make_group, settings_of
from campaigns.groups import verdict
from safetensors.numpy import load, save

from ledger.errors import EvidenceError
from verifiers.learning.group_plan import GroupPlan
from verifiers.learning.groups import check_group, read_group
from verifiers.learning.samples import TENSORS, encode_samples, read_samples
from verifiers.learning.trace import Turn, encode_trace, read_trace
from verifiers.rewards.earned import check_earned, earned
from verifiers.rewards.episodes import REWARDS

DESK = REWARDS["desk", 1]


def code_of(work, *arguments, **named):
    """The code with which something is refused, or None."""
    try:
        work(*arguments, **named)
    except EvidenceError as error:
        return error.code
    return None


def group_of(seed: int, key=("support", 3), **settings):
    """A good group."""
    return make_group(random.Random(seed), REWARDS[key], **settings)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_a_good_group_counts_and_is_read_back(key, seed):
    """What is written is what is read, the official library reads the same, and the group counts."""
    made = group_of(seed, key)
    samples, trace = made.blobs
    group = read_group(io.BytesIO(samples), trace)
    assert group.members == made.group.members
    theirs = load(samples)
    assert set(theirs) == set(TENSORS)
    for name, values in theirs.items():
        np.testing.assert_array_equal(values, getattr(group.samples, name))
    assert (encode_samples(group.samples), encode_trace(group.members)) == (samples, trace)
    check_group(made.body, group, made.plan, STATE)
    assert check_earned(group, made.plan, made.row) is None


def test_a_file_of_the_official_library_is_read():
    """Another order of the tensors and another padding of the header are the same file; remarks in it are refused."""
    samples = group_of(1).group.samples
    values = {name: np.asarray(getattr(samples, name)) for name in TENSORS}
    read = read_samples(io.BytesIO(save(values)))
    np.testing.assert_array_equal(read.logprobs, samples.logprobs)
    remarked = save(values, metadata={"by": "somebody"})
    assert code_of(read_samples, io.BytesIO(remarked)) == "GROUP_MALFORMED"


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_code(name):
    """A group with this fault alone is refused with the fault's code, and the same group without it counts."""
    made, given = spoiled(name, random.Random(name))
    assert verdict(made, given) == FAULTS[name].code
    assert verdict(made, whole(made)) is None


def test_a_header_that_claims_more_than_five_tensors_need_is_refused():
    """A long header is not read to its end."""
    data = (9000).to_bytes(8, "little") + b"{" + b" " * 8999
    assert code_of(read_samples, io.BytesIO(data)) == "GROUP_MALFORMED"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{}", "no fields"),
        (b"[]", "no object"),
        (b"", "an empty line"),
        (b"\xff", "no Unicode"),
        (b'{"member":true}', "a truth value"),
    ],
)
def test_a_line_that_is_no_member_is_refused(line, what):
    """Whatever stands in a line of a trace, it is a member's or the trace is refused."""
    good = group_of(1).blobs[1]
    assert code_of(read_trace, good + line + b"\n") == "GROUP_MALFORMED", what


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", "-1"),
        ("seed", "1.5"),
        ("seed", "true"),
        ("stop", '"eos"'),
        ("task", '"sha256:12"'),
        ("turns", "[]"),
        ("turns", '[{"role":"system","text":"","tokens":1}]'),
        ("turns", '[{"role":"assistant","text":"","tokens":true}]'),
        ("turns", '[{"more":1,"role":"assistant","text":"","tokens":1}]'),
        ("failed", "false"),
    ],
)
def test_a_field_of_another_type_is_refused(field, value):
    """Types are exact: no truth value is a number, no unknown role speaks."""
    import json  # noqa: PLC0415 - one test looks inside

    line = group_of(1).blobs[1].splitlines()[0].decode()
    old = json.dumps({field: json.loads(line)[field]}, separators=(",", ":"), ensure_ascii=False)
    assert old[1:-1] in line
    changed = line.replace(old[1:-1], f'"{field}":{value}')
    assert code_of(read_trace, changed.encode() + b"\n") == "GROUP_MALFORMED"


def test_the_token_limit_may_cut_a_turn_and_nothing_else_may():
    """A member of exactly the limit may say that it was cut; one token fewer and it may not."""
    made = group_of(3, ("desk", 1))
    longest = max(member.sampled for member in made.group.members)
    members = tuple(
        replace(member, stop="length") if member.sampled == longest else member
        for member in made.group.members
    )
    stops = {"length": sum(member.stop == "length" for member in members)}
    stops["end"] = len(members) - stops["length"]
    group = replace(made.group, members=members)
    body = {**made.body, "stops": stops}
    fits = GroupPlan.of({**made.settings, "max_new_tokens": longest})
    sampler = {**made.body["sampler"], "max_new_tokens": longest}
    assert code_of(check_group, {**body, "sampler": sampler}, group, fits) is None
    sampler["max_new_tokens"] = longest + 1
    wider = GroupPlan.of({**made.settings, "max_new_tokens": longest + 1})
    assert code_of(check_group, {**body, "sampler": sampler}, group, wider) == "GROUP_CUT"


def test_float32_advantages_are_near_enough_and_no_nearer_is_asked():
    """A trainer's float32 passes; a figure that differs in the third digit does not."""
    made = group_of(2)
    rounded = [repr(float(np.float32(float(value)))) for value in made.body["advantages"]]
    assert code_of(check_group, {**made.body, "advantages": rounded}, made.group, made.plan) is None
    other = [repr(float(value) * 1.01 + 0.01) for value in made.body["advantages"]]
    found = code_of(check_group, {**made.body, "advantages": other}, made.group, made.plan)
    assert found == "GROUP_ADVANTAGE"


def test_a_long_completion_loses_what_the_plan_says():
    """The penalty is a part of its own, it is in the reward, and a verifier takes off the same."""
    row = group_of(1, ("desk", 1)).row
    settings = settings_of(DESK, max_new_tokens=40, overlong_buffer=20, overlong_penalty="0.5")
    plan = GroupPlan.of(settings)
    value, parts = earned(DESK, row, [Turn("assistant", "x" * 120, 30)], "end", plan)
    assert parts["overlong"] == -0.25
    assert value == DESK.score(row, [Turn("assistant", "x" * 120, 30)], "end")[0] - 0.25
    short, parts = earned(DESK, row, [Turn("assistant", "x", 20)], "end", plan)
    assert (short, parts["overlong"]) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["group_size", "reward", "num_iterations", "top_p", "max_turns"])
def test_a_plan_that_does_not_say_how_groups_are_made_is_refused(name):
    """A setting that groups follow from is in the plan, or nothing can be said of them."""
    settings = settings_of(DESK)
    del settings[name]
    assert code_of(GroupPlan.of, settings) == "PLAN_WRONG"


def test_rewards_that_nobody_can_replay_are_said_so():
    """A reward of one's own is on faith; the environment is checked all the same."""
    made = group_of(1)
    own = GroupPlan.of({**made.settings, "reward": "mine", "reward_version": 0})
    assert "one's own" in str(check_earned(made.group, own, made.row))
    other = {**made.row, "context": "another record"}
    assert code_of(check_earned, made.group, own, other) == "GROUP_OTHER_SCRIPT"


def test_a_reward_judges_rows_of_its_kind_only():
    """A desk reward for scenario rows would judge nothing."""
    made = group_of(1)
    desk = GroupPlan.of({**made.settings, "reward": "desk", "reward_version": 1})
    assert code_of(check_earned, made.group, desk, made.row) == "GROUP_OTHER_TASK"
