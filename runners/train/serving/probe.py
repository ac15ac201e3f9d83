"""Whether a sampler has the weights it was given: both score one text, and must agree (pure).

A digest says which bytes a server was pointed at, not that it computes with them. So after each renewal both sides
score the same tokens. That tells the new weights from the old ones only as far as they differ, which is measured too:
the learner's scores under the weights before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

NEARER, ROUNDING = 4, 10
"""Where the weights hardly moved, a sampler is stale that is so much nearer to those before, and so far from rounding."""


@dataclass(frozen=True)
class Probe:
    """What a probe found, in nats of a token.

    Attributes:
        gap: the largest difference between sampler and learner.
        moved: the largest difference between the learner's scores now and under the weights before.
    """

    gap: float
    moved: float

    @property
    def tells(self) -> bool:
        """Whether a sampler with the old weights would have been seen: they score farther away than it does."""
        return self.moved > 2 * self.gap


def probe(
    learner: Sequence[float],
    before: Sequence[float],
    sampler: Sequence[float],
    tolerance: float,
) -> Probe:
    """Hold a sampler's scores of one text against the learner's, under its weights now and under those before.

    Args:
        learner: log-probabilities of the text's tokens under the weights that the sampler was given.
        before: the same under the weights that it had until then.
        sampler: what the sampler says.
        tolerance: in nats of a token; engines compute in other orders.

    Raises:
        EvidenceError: `SAMPLER_REPLY`, it scored another number of tokens; `SAMPLER_STALE`, it is farther than the
            tolerance from the learner, or nearer to the weights before than to those it was given.
    """
    if not len(learner) == len(before) == len(sampler) or not learner:
        raise EvidenceError(
            "SAMPLER_REPLY",
            "the sampler scored another number of tokens than the probe has",
            expected=str(len(learner)),
            actual=str(len(sampler)),
        )
    gap, moved, old = (
        _farthest(one, other)
        for one, other in ((learner, sampler), (learner, before), (before, sampler))
    )
    nearer = old < gap if moved > tolerance else old < gap / NEARER and gap > tolerance / ROUNDING
    if gap > tolerance or nearer:
        raise EvidenceError(
            "SAMPLER_STALE",
            "the sampler does not score with the weights it was given"
            + (", but with those before" if old <= tolerance else ""),
            expected=f"within {tolerance:g} nats of the learner",
            actual=f"{gap:.3g} from the learner, {old:.3g} from the weights before",
        )
    return Probe(gap, moved)


def _farthest(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(left - right) for left, right in zip(one, other, strict=True))
