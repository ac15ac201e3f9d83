"""Fuzz targets of rollouts: a group's samples, its trace, and a turn of an episode."""

from __future__ import annotations

import io
import random

import numpy as np

from campaigns.fuzz_oracle import Parts, expect, refusals
from campaigns.group_maker import KEYS, Made, make_group
from verifiers.learning.samples import TENSORS, encode_samples, read_samples
from verifiers.learning.trace import encode_trace, read_trace
from verifiers.rewards.episodes import REWARDS


def check_samples(data: bytes) -> None:
    """Samples that are read cover the same tokens, and written and read again they are the same."""
    with refusals():
        samples = read_samples(io.BytesIO(data))
        again = read_samples(io.BytesIO(encode_samples(samples)))
        for name in TENSORS:
            same = np.array_equal(
                getattr(samples, name), getattr(again, name), equal_nan=name == "logprobs"
            )
            expect(same, f"other {name}")
        expect(samples.bounds()[-1][1] == samples.mask.size == samples.logprobs.size, "a gap")


def check_trace(data: bytes) -> None:
    """A trace that is read, and whose rewards are numbers, is written as the bytes that it was."""
    with refusals():
        members = read_trace(data)
        if all(item.reward is not None and item.parts is not None for item in members):
            expect(encode_trace(members) == data, "another trace")


def check_turn(data: bytes) -> None:
    """Whatever a policy says, the episode goes on or is over, and earns a part of one."""
    text = data.decode("utf-8", "replace")
    for key in KEYS:
        reward = REWARDS[key]
        episode = reward.begin(_made(key).row)
        for said in text.split("\n")[:8]:
            if not episode.over:
                episode, answer = episode.answer(said)
                expect((answer is None) == episode.over, "no answer, and not over")
        for stop in ("end", "length", "turns"):
            expect(0 <= episode.earned(stop)[0] <= 1, "a reward that is none")


def _made(key: tuple[str, int]) -> Made:
    return make_group(random.Random(1), REWARDS[key])  # noqa: S311 - choices, no secrets


def _samples() -> list[bytes]:
    return [_made(key).blobs[0] for key in KEYS]


def _traces() -> list[bytes]:
    return [_made(key).blobs[1] for key in KEYS]


def _turns() -> list[bytes]:
    return [turn.text.encode() for key in KEYS for turn in _made(key).group.members[0].turns]


TARGETS: dict[str, Parts] = {
    "samples": (check_samples, _samples, 3, 16384),
    "trace": (check_trace, _traces, 3, 16384),
    "turn": (check_turn, _turns, 2, 1024),
}
