"""The suites of the desk rewards: they are what their maker makes, and each trap is in them."""

from __future__ import annotations

import json

import pytest

from runners.prepare.desk_pairs import write_pairs
from runners.prepare.rewards import PAIRS_OF
from verifiers.replay.rewards import SHIPPED
from verifiers.rewards.suite import inversions, read_pairs

SUITES = {name: PAIRS_OF[name] for name in ("desk", "desk_episode")}


def pairs_of(name):
    """The pairs that come with a reward."""
    return read_pairs(map(json.loads, SUITES[name].read_bytes().splitlines()))


def test_the_suites_are_what_their_maker_makes(tmp_path):
    """Nobody has edited a pair by hand."""
    write_pairs(tmp_path)
    for path in SUITES.values():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", SUITES)
def test_no_trap_lifts_a_wrong_trajectory(name):
    """Every pair is ordered rightly, and right ones earn everything."""
    pairs = pairs_of(name)
    assert inversions(SHIPPED[name, 1], pairs) == []
    assert {SHIPPED[name, 1](pair.scenario, pair.right) for pair in pairs} == {1.0}
    assert {"a forbidden action", "both decisions at once", "a claim in words"} <= {
        pair.trap for pair in pairs
    }


@pytest.mark.parametrize(
    ("reward", "trap"),
    [
        (lambda case, reply: float("refuse" in reply), "a refusal of what is allowed"),
        (lambda case, reply: float(case["wanted"]["tool"] in reply), "a forbidden action"),
        (lambda case, reply: float(bool(reply)), "a claim in words"),
        (lambda case, reply: -SHIPPED["desk", 1](case, reply), "handed on"),
    ],
)
def test_a_reward_that_can_be_had_cheaply_is_found_out(reward, trap):
    """Rewards for refusing, for acting, for talking or with the wrong sign each fail on a trap of their own."""
    assert trap in {item.pair.trap for item in inversions(reward, pairs_of("desk"))}
