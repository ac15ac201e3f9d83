"""Rewards for whole episodes, by name and version: begun, answered turn by turn, and replayed exactly from a trace.

The runner steps an episode while it samples; a verifier steps the same code through the recorded turns. Everything is
pure: an episode is a value, and answering it makes the next one.

    desk          a desk case in one call, judged as the evaluation judges it
    desk_episode  a desk case in several turns with tool results; it has to be finished
    support       a scenario with its scripted customer, by the support reward
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from ledger.digests import sha256
from ledger.errors import EvidenceError
from verifiers.data.identity import row_bytes
from verifiers.learning.trace import ASSISTANT, Turn
from verifiers.rewards import support
from verifiers.rewards.desk_episodes import one_call, several_turns
from verifiers.rewards.scenario_episodes import scripted

_SCRIPT_FIELDS = ("turns", "policy_facts", "context")


class Episode(Protocol):
    """One trajectory as far as it has gone."""

    @property
    def over(self) -> bool:
        """Whether the environment waits for nothing more."""

    def answer(self, text: str) -> tuple[Self, str | None]:
        """The episode after a turn of the policy, and what it is answered; None where it is over."""

    def earned(self, stop: str) -> tuple[float, dict[str, float]]:
        """The reward and its parts, each 0 to 1, where sampling stopped for this reason."""


@dataclass(frozen=True)
class EpisodeReward:
    """A reward that we can replay.

    Attributes:
        name: as a plan's settings have it.
        version: another where any trace would earn otherwise.
        kind: of the rows that it judges.
        role: who answers the policy's turns.
        begin: the episode of a row, before anything was said.
    """

    name: str
    version: int
    kind: str
    role: str
    begin: Callable[[Mapping[str, Any]], Episode]

    def score(
        self, row: Mapping[str, Any], turns: Sequence[Turn], stop: str
    ) -> tuple[float, dict[str, float]]:
        """What a recorded trajectory earns, and its parts.

        Raises:
            EvidenceError: `CASE_BROKEN`, `CASE_DISAGREES`, the row cannot be judged; `EPISODE_WRONG`, the environment did not
                answer as these turns say; `GROUP_CUT`, the episode was to go on, or had ended before.
        """
        return self.replay(row, turns, stop).earned(stop)

    def replay(self, row: Mapping[str, Any], turns: Sequence[Turn], stop: str) -> Episode:
        """The episode that these turns lead to.

        Raises:
            EvidenceError: as `score` says.
        """
        episode = self.begin(row)
        answer: str | None = None
        for place, turn in enumerate(turns):
            if turn.role == ASSISTANT:
                if episode.over:
                    raise _cut(f"turn {place} stands behind the end of the episode")
                episode, answer = episode.answer(turn.text)
            elif (turn.role, turn.text) != (self.role, answer):
                raise EvidenceError(
                    "EPISODE_WRONG",
                    f"turn {place} is not what the environment answers",
                    field=f"turns.{place}",
                    expected=f"{self.role}: {answer}"[:200],
                    actual=f"{turn.role}: {turn.text}"[:200],
                )
        if stop == "end" and not episode.over:
            raise _cut("it stopped before its episode was over")
        if stop == "turns" and episode.over:
            raise _cut("its episode was over, and it is said to have run out of turns")
        return episode


def script_digest(row: Mapping[str, Any]) -> str:
    """What names a row's environment: a desk case whole, of a scenario the turns, the facts and the context.

    Raises:
        EvidenceError: `CASE_BROKEN`, the row is of a kind that has no environment.
    """
    if row.get("kind") == "scenario":
        return sha256(row_bytes({name: row[name] for name in _SCRIPT_FIELDS}))
    if row.get("kind") == "desk":
        return sha256(row_bytes(row))
    raise EvidenceError("CASE_BROKEN", "a row of this kind has no environment", field="kind")


def spoken(reward: EpisodeReward, row: Mapping[str, Any], said: Sequence[str]) -> float:
    """What a policy earns that says these turns one after the other, whatever it is answered.

    Raises:
        EvidenceError: `CASE_BROKEN`, `CASE_DISAGREES`.
    """
    episode = reward.begin(row)
    for text in said:
        if not episode.over:
            episode, _ = episode.answer(text)
    return episode.earned("end" if episode.over else "turns")[0]


def _cut(message: str) -> EvidenceError:
    return EvidenceError("GROUP_CUT", message, field="stop")


REWARDS: dict[tuple[str, int], EpisodeReward] = {
    (item.name, item.version): item
    for item in (
        EpisodeReward("desk", 1, "desk", "tool", one_call),
        EpisodeReward("desk_episode", 1, "desk", "tool", several_turns),
        EpisodeReward(support.NAME, support.VERSION, "scenario", "user", scripted),
    )
}
"""Every reward for episodes that a verifier can replay."""
