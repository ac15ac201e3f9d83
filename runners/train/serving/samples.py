"""What a sampler is asked and what it answers; one shape for every engine (torch-free)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Ask:
    """One completion that is wanted: the prompt's token ids and the seed of this completion alone."""

    prompt: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Sampled:
    """One completion as the engine sampled it.

    Attributes:
        ids: its token ids, the one that ended it included.
        logprobs: the engine's own log-probability of each of them, as it was sampled.
        stop: `end` where the model ended it, `length` where the limit did.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: str


@dataclass(frozen=True)
class Drawing:
    """What shapes the distribution that is sampled from, how long a completion may be, in tokens, and what ends it."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    ends: tuple[int, ...] = ()


class Sampler(Protocol):
    """An engine that samples from weights it was given."""

    def sample(self, asks: Sequence[Ask], drawing: Drawing) -> list[Sampled]:
        """A completion for each ask, in order."""

    def renew(self, write: Callable[[Path], str]) -> str:
        """Take new weights: `write` puts them into a folder and says their digest, which is returned."""

    def score(self, ids: Sequence[int]) -> list[float]:
        """The log-probability of each token after the first, under the weights that the engine has now."""
