"""What happened to each member of a group: one line of canonical JSON a member, turn by turn.

    {"member": 0, "task": DIGEST, "script": DIGEST, "seed": 7, "turns": [{"role": "assistant", "text": "…", "tokens": 12}, …],
     "stop": "end", "parts": {"outcome": "1.0"}, "reward": "1.0", "failed": null}

`stop` says why the last turn was the last: `end` the episode was over, `length` the token limit cut it, `turns` there were
as many turns as the plan allows. Real numbers are texts in the ledger's form. A reward that is none is read as None:
whether that is a fault is for the group's rules to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger import canonical
from ledger.digests import is_digest
from ledger.errors import EvidenceError

ASSISTANT = "assistant"
ROLES = (ASSISTANT, "tool", "user")
STOPS = ("end", "length", "turns")
MAX_TRACE_BYTES = 1 << 28
MAX_LINE_BYTES = 1 << 22
MAX_TURNS = 1024
_FIELDS = {"member", "task", "script", "seed", "turns", "stop", "parts", "reward", "failed"}


@dataclass(frozen=True)
class Turn:
    """One turn behind the prompt: who spoke, what, and in how many tokens."""

    role: str
    text: str
    tokens: int


@dataclass(frozen=True)
class Member:
    """One trajectory of a group.

    Attributes:
        number: its place in the group, from 0.
        task: digest of the row that it answers.
        script: digest of what its environment was told.
        seed: of its sampling.
        turns: behind the prompt, in order.
        stop: one of `STOPS`.
        parts: of its reward, by name; None where one of them is no number.
        reward: None where it is no number.
        failed: why environment or reward failed, or None.
    """

    number: int
    task: str
    script: str
    seed: int
    turns: tuple[Turn, ...]
    stop: str
    parts: Mapping[str, float] | None
    reward: float | None
    failed: str | None

    @property
    def sampled(self) -> int:
        """Tokens that the policy sampled."""
        return sum(turn.tokens for turn in self.turns if turn.role == ASSISTANT)


def encode_trace(members: Iterable[Member]) -> bytes:
    """The bytes of a trace.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a text is no Unicode; `NOT_A_REAL`, a number is not finite.
    """
    return b"".join(canonical.encode(_line(member)) + b"\n" for member in members)


def read_trace(data: bytes) -> tuple[Member, ...]:
    """The members of a trace, in order.

    Raises:
        EvidenceError: `GROUP_MALFORMED`, it is too large, not ended by a line feed, or a line is not a member's.
    """
    if len(data) > MAX_TRACE_BYTES or not data.endswith(b"\n"):
        raise EvidenceError("GROUP_MALFORMED", "the trace is too large, empty or not ended")
    lines = data[:-1].split(b"\n")
    return tuple(_member(number, line) for number, line in enumerate(lines))


def _line(member: Member) -> dict[str, Any]:
    parts = member.parts
    return {
        "member": member.number,
        "task": member.task,
        "script": member.script,
        "seed": member.seed,
        "turns": [vars(turn) for turn in member.turns],
        "stop": member.stop,
        "parts": None if parts is None else {k: canonical.real(v) for k, v in parts.items()},
        "reward": None if member.reward is None else canonical.real(member.reward),
        "failed": member.failed,
    }


def _member(number: int, line: bytes) -> Member:
    try:
        value = canonical.decode(line) if len(line) <= MAX_LINE_BYTES else {}
    except EvidenceError as error:
        raise EvidenceError("GROUP_MALFORMED", f"line {number}: {error.message}") from None
    match value:
        case {
            "member": int(place),
            "task": str(task),
            "script": str(script),
            "seed": int(seed),
            "turns": list(turns),
            "stop": str(stop),
            "parts": parts,
            "reward": reward,
            "failed": str() | None as failed,
        } if value.keys() == _FIELDS and _plain(place, seed) and stop in STOPS:
            pass
        case _:
            raise EvidenceError("GROUP_MALFORMED", f"line {number} of the trace is no member's")
    if not (is_digest(task) and is_digest(script)):
        raise EvidenceError("GROUP_MALFORMED", f"line {number} names no task or no script")
    return Member(
        number=place,
        task=task,
        script=script,
        seed=seed,
        turns=_turns(number, turns),
        stop=stop,
        parts=_parts(parts),
        reward=_real(reward),
        failed=failed,
    )


def _turns(number: int, values: Sequence[Any]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for value in values[: MAX_TURNS + 1]:
        match value:
            case {"role": str(role), "text": str(text), "tokens": int(tokens)} if (
                len(value) == 3 and role in ROLES and _plain(tokens)
            ):
                turns.append(Turn(role, text, tokens))
            case _:
                raise EvidenceError("GROUP_MALFORMED", f"a turn of line {number} is none")
    if not 0 < len(turns) <= MAX_TURNS:
        raise EvidenceError("GROUP_MALFORMED", f"line {number} has no turn, or over {MAX_TURNS}")
    return tuple(turns)


def _plain(*values: int) -> bool:
    """Whether these are numbers, not truth values, and none is negative."""
    return all(type(value) is int and value >= 0 for value in values)


def _parts(value: Any) -> dict[str, float] | None:
    if not isinstance(value, dict):
        return None
    parts: dict[str, float] = {}
    for name, item in value.items():
        number = _real(item)
        if number is None:
            return None
        parts[name] = number
    return parts


def _real(value: Any) -> float | None:
    """The number of a text in the ledger's form, or None."""
    if not isinstance(value, str):
        return None
    try:
        return canonical.parse_real(value)
    except EvidenceError:
        return None
