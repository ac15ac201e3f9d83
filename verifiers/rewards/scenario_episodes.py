"""Episodes with a scripted customer: the row's turns are said one after the other, whatever the model answers.

So all members of a group meet the same customer. The reply to the last turn decides; a reply before it that grants what
is forbidden or asserts what must be avoided cannot be taken back by a better last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from verifiers.rewards import support

Earned = tuple[float, dict[str, float]]


@dataclass(frozen=True)
class Scripted:
    """A conversation of the script: the row, and what the model said so far."""

    row: Mapping[str, Any]
    said: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the customer has nothing more to say."""
        return len(self.said) > len(self.row["turns"])

    def answer(self, text: str) -> tuple[Scripted, str | None]:
        """The conversation after a reply, and the customer's next turn; None where there is none."""
        after = replace(self, said=(*self.said, text))
        return after, None if after.over else str(self.row["turns"][len(self.said)])

    def earned(self, stop: str) -> Earned:
        """The support reward of the last reply; where the conversation was cut, at most what a wrong decision may earn."""
        replies = self.said or ("",)
        earned, parts = support.reward(self.row, replies[-1], replies[:-1])
        kept = min(support.reward(self.row, reply)[1]["policy"] for reply in replies)
        finished = self.over and stop == "end"
        parts = {**parts, "policy": kept, "finished": float(finished)}
        if kept < 1.0:
            return 0.0, parts
        return earned if finished else min(earned, support.CEILING), parts


def scripted(row: Mapping[str, Any]) -> Scripted:
    """The conversation that a scenario row scripts.

    Raises:
        EvidenceError: `CASE_BROKEN`, the row expects what the support reward cannot judge.
    """
    support.read_expected(row)
    return Scripted(row)
