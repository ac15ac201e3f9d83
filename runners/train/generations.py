"""Batches of groups for a run: drawn, sampled, judged, kept, recorded; drawn again where they say nothing (loads torch).

A *generation* is the batch of groups that a cycle of updates reads. A *draw* asks as many tasks as a generation has
groups. A group is *constant* where all its members earned the same: it says nothing. Each update is to read a group that
says something, so a draw with too few of them is followed by another, up to the plan's limit, and those that say something
are collected; with dynamic sampling they are collected until a whole generation is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ledger.canonical import real
from ledger.errors import EvidenceError, UsageError
from runners.seeding import derive
from runners.train.group_files import REFUSED, Group, Member
from runners.train.journal import Draw
from runners.train.rewarding import Earned, earned
from runners.train.sampling import sample
from runners.train.serving.samples import Ask
from runners.train.tasks import drawn
from verifiers.learning.advantages import advantages, is_constant

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from runners.protocol import Asked
    from runners.train.journal import Journal
    from runners.train.rl_config import RlSettings
    from runners.train.serving.engine import Completion, Engine
    from runners.train.tasks import Task


Judge = Callable[[Mapping[str, Any], str, str, int, "RlSettings"], Earned]
"""What a completion earns, by its row, text, stop, sampled tokens and the settings (`runners.train.rewarding.earned`)."""


@dataclass(frozen=True)
class Recorded:
    """A group with its record: id, completions, advantages."""

    id: str
    group: Group
    advantages: tuple[float, ...]

    @property
    def constant(self) -> bool:
        """Whether all members earned the same, so that the group says nothing."""
        return is_constant(self.group.rewards)


@dataclass(frozen=True)
class Generation:
    """The groups that a cycle of updates reads, and what it took to get them.

    Attributes:
        groups: as many as planned.
        draws: how many draws were made since the run began, those of this generation included.
        redrawn: how many of them gave nothing that is read.
        rejected: groups that do not count.
        constant: groups of all its draws that say nothing.
        sampled: groups of all its draws.
        served: what was seen of the server that sampled them; None where the learner's own process did.
    """

    groups: tuple[Recorded, ...]
    draws: int
    redrawn: int
    rejected: int
    constant: int
    sampled: int
    served: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Sampler:
    """What samples, and from what.

    Attributes:
        model: the live policy.
        tokenizer: of the model.
        tasks: all tasks of the run.
        prompts: their token ids.
        ends: tokens that end a completion.
        settings: of the run.
        journal: keeps what was sampled.
        channel: where groups are said.
        judge: what gives rewards.
        engine: the server that samples; None where the live model does.
    """

    model: Any
    tokenizer: Any
    tasks: Sequence[Task]
    prompts: Sequence[Sequence[int]]
    ends: Collection[int]
    settings: RlSettings
    journal: Journal
    channel: Asked
    judge: Judge = earned
    engine: Engine | None = None

    def close(self) -> None:
        """Let go of the server, where there is one."""
        if self.engine is not None:
            self.engine.close()

    def generation(self, number: int, draws: int, state: str) -> Generation:
        """The next generation.

        Args:
            number: of the generation, from 0.
            draws: made before it.
            state: the policy's state digest.

        Raises:
            UsageError: `NO_SIGNAL`, every draw within the limit was constant or rejected; what a server raises.
            EvidenceError: `SAMPLER_REPLY`, within the limit a server gave no completions; what a server raises.
        """
        wanted, limit = self.settings.groups_per_batch, self.settings.redraw_limit
        slices = self.settings.steps_per_generation
        kept: list[Recorded] = []
        spare: list[Recorded] = []
        refused: list[str] = []
        rejected = constant = sampled = 0
        for made in range(1, limit + 2):
            drawn_now = self.journal.draw(
                draws + made - 1, state, partial(self._sampled, draws + made - 1, state)
            )
            found = self._said(number, draws + made - 1, state, drawn_now)
            refused += [group.refused for group in drawn_now.groups if group.refused]
            whole = [item for item in found if item is not None]
            telling = [item for item in whole if not item.constant]
            sampled += len(found)
            rejected += len(found) - len(whole)
            constant += len(whole) - len(telling)
            kept += telling
            spare += [item for item in whole if item.constant]
            enough = len(telling) >= slices and len(whole) == wanted
            if enough and not self.settings.dynamic_sampling:
                chosen = whole
            elif len(kept) >= wanted or (made > limit and len(kept) >= slices):
                chosen = [*kept, *spare][:wanted]
            else:
                continue
            if len(chosen) == wanted:
                dealt = tuple(_dealt(chosen, slices))
                return Generation(
                    dealt, draws + made, made - 1, rejected, constant, sampled, drawn_now.served
                )
        if len(refused) == sampled:
            raise EvidenceError(
                "SAMPLER_REPLY",
                f"generation {number + 1}: in {limit + 1} draws the sampler gave no whole group; the last: {refused[-1]}",
            )
        raise UsageError(
            "NO_SIGNAL",
            f"generation {number + 1}: {limit + 1} draws of {wanted} groups gave no batch whose every update learns;"
            f" of {sampled} groups {constant} were constant and {rejected} rejected",
            field="redraw_limit",
        )

    def _said(self, number: int, draw: int, state: str, made: Draw) -> list[Recorded | None]:
        """The groups of a draw with their records; None for one that was rejected."""
        groups = made.groups
        said = [
            {
                "task": group.task,
                "script": group.script,
                "rewards": [real(value) for value in group.rewards],
                "advantages": [real(value) for value in self._advantages(group)],
                "stops": _stops(group),
                "refused": group.refused,
            }
            for group in groups
        ]
        place = str(self.journal.place(draw, state))
        reply = self.channel.ask(
            "groups", generation=number, draw=draw, state=state, path=place, groups=said,
            weights=None if made.served is None else made.served["weights"],
        )  # fmt: skip
        names: list[str | None] = reply["groups"]
        return [
            None if name is None else Recorded(name, group, tuple(self._advantages(group)))
            for name, group in zip(names, groups, strict=True)
        ]

    def _advantages(self, group: Group) -> list[float]:
        return [float(value) for value in advantages(group.rewards, self.settings.rule())]

    def _sampled(self, draw: int, state: str) -> Draw:
        settings = self.settings
        digests = [task.digest for task in self.tasks]
        places = drawn(digests, settings.seed, settings.groups_per_batch, draw)
        asks = [self._asks(draw, number, place) for number, place in enumerate(places)]
        engine = self.engine
        found = (
            [self._own(group) for group in asks] if engine is None else engine.sample(asks, state)
        )
        groups = [self._group(*of) for of in zip(places, asks, found, strict=True)]
        return Draw(groups, None if engine is None else engine.served)

    def _asks(self, draw: int, number: int, place: int) -> list[Ask]:
        """What is wanted of one group: its prompt as often as planned, each time with another seed."""
        prompt, seed = tuple(self.prompts[place]), self.settings.seed
        return [
            Ask(prompt, derive(seed, "rollout", draw, number, member))
            for member in range(self.settings.group_size)
        ]

    def _own(self, asks: list[Ask]) -> Sequence[Completion]:
        """A group that the live model samples."""
        return sample(
            self.model,
            [ask.prompt for ask in asks],
            [ask.seed for ask in asks],
            ends=self.ends,
            pad=int(self.tokenizer.pad_token_id),
            max_new_tokens=self.settings.max_new_tokens,
            temperature=self.settings.temperature,
        )

    def _group(self, place: int, asks: list[Ask], found: Sequence[Completion]) -> Group:
        task = self.tasks[place]
        members = [
            self._member(task, ask.seed, item) for ask, item in zip(asks, found, strict=True)
        ]
        return Group(task.digest, task.script, tuple(self.prompts[place]), tuple(members))

    def _member(self, task: Task, seed: int, item: Completion) -> Member:
        if isinstance(item, EvidenceError):
            why = f"{item.code}: {item.message}"[:300]
            return Member(seed, (), (), "", REFUSED, None, {}, why)
        text = self.tokenizer.decode(list(item.ids), skip_special_tokens=True)
        reward, parts, failed = self.judge(task.row, text, item.stop, len(item.ids), self.settings)
        return Member(seed, item.ids, item.logprobs, text, item.stop, reward, parts, failed)


def _dealt(groups: list[Recorded], slices: int) -> list[Recorded]:
    """Groups in an order in which each of some equal slices has one that says something, where there are so many."""
    telling = [item for item in groups if not item.constant]
    constant = iter([item for item in groups if item.constant])
    size = len(groups) // slices
    dealt = []
    for number in range(slices):
        own = telling[number::slices]
        dealt += own + [next(constant) for _ in range(size - len(own))]
    return dealt


def _stops(group: Group) -> dict[str, int]:
    stops = [member.stop for member in group.members]
    return {name: stops.count(name) for name in sorted(set(stops))}
