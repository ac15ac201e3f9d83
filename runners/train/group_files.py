"""A group of completions as bytes: the samples as safetensors, the trace as JSON lines; and back (torch-free).

The formats are those that verification reads (docs/spec/verification.md). The bytes follow from the values alone, so a
group that is replayed has the digests of the group that was sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load, save

from ledger import canonical
from ledger.canonical import parse_real, real

if TYPE_CHECKING:
    from collections.abc import Mapping

ASSISTANT = "assistant"
REFUSED = "refused"
"""Why a completion stopped that a sampler did not give: its group is rejected, and nothing stands in for it."""


@dataclass(frozen=True)
class Member:
    """One completion of a group.

    Attributes:
        seed: of its sampling.
        ids: its tokens.
        logprobs: of each, under the policy that sampled it, in nats.
        text: its words.
        stop: `end`, `length` or `refused`.
        reward: what it earned, None where the reward failed.
        parts: of the reward, by name.
        failed: why environment or reward failed, or None.
    """

    seed: int
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    stop: str
    reward: float | None
    parts: Mapping[str, float]
    failed: str | None = None


@dataclass(frozen=True)
class Group:
    """One task and its completions."""

    task: str
    script: str
    prompt: tuple[int, ...]
    members: tuple[Member, ...]

    @property
    def rewards(self) -> list[float]:
        """The members' rewards; zero stands for one that failed, in a group that is rejected for it."""
        return [member.reward or 0.0 for member in self.members]

    @property
    def refused(self) -> str | None:
        """Why one of the members is none, by code and words; None where each was sampled."""
        return next((member.failed for member in self.members if member.stop == REFUSED), None)


def samples_bytes(group: Group) -> bytes:
    """The samples' file."""
    lengths = [len(member.ids) for member in group.members]
    ids = [token for member in group.members for token in member.ids]
    logprobs = [value for member in group.members for value in member.logprobs]
    return save(
        {
            "prompt_ids": np.asarray(group.prompt, dtype=np.int32),
            "lengths": np.asarray(lengths, dtype=np.int32),
            "completion_ids": np.asarray(ids, dtype=np.int32),
            "mask": np.ones(len(ids), dtype=np.uint8),
            "logprobs": np.asarray(logprobs, dtype=np.float32),
        }
    )


def trace_bytes(group: Group) -> bytes:
    """The trace's file: a line a member."""
    return b"".join(
        canonical.encode(
            {
                "member": number,
                "task": group.task,
                "script": group.script,
                "seed": member.seed,
                "turns": [{"role": ASSISTANT, "text": member.text, "tokens": len(member.ids)}],
                "stop": member.stop,
                "parts": {name: real(value) for name, value in member.parts.items()},
                "reward": None if member.reward is None else real(member.reward),
                "failed": member.failed,
            }
        )
        + b"\n"
        for number, member in enumerate(group.members)
    )


def read_group(samples: bytes, trace: bytes) -> Group:
    """The group of two files that this program wrote."""
    tensors = load(samples)
    lines = [canonical.decode(line) for line in trace.splitlines()]
    ends = np.cumsum(tensors["lengths"]).tolist()
    bounds = zip([0, *ends[:-1]], ends, strict=True)
    members = tuple(
        _member(line, tensors["completion_ids"][begin:end], tensors["logprobs"][begin:end])
        for line, (begin, end) in zip(lines, bounds, strict=True)
    )
    prompt = tuple(tensors["prompt_ids"].tolist())
    return Group(lines[0]["task"], lines[0]["script"], prompt, members)


def _member(line: dict[str, Any], ids: Any, logprobs: Any) -> Member:
    return Member(
        seed=line["seed"],
        ids=tuple(ids.tolist()),
        logprobs=tuple(logprobs.tolist()),
        text=line["turns"][0]["text"],
        stop=line["stop"],
        reward=None if line["reward"] is None else parse_real(line["reward"]),
        parts={name: parse_real(value) for name, value in line["parts"].items()},
        failed=line["failed"],
    )
