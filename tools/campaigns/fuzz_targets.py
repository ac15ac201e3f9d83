"""What is fuzzed: one function for each parser of bytes, with what must hold of it and seeds to start from.

A check raises nothing but what the harness must report: errors of the two families, with a known code, are how a parser
refuses. Where bytes are read at all, writing what was read must give them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from campaigns import fuzz_learning, fuzz_ledger, fuzz_rollouts
from campaigns.fuzz_oracle import Check


@dataclass(frozen=True)
class Target:
    """One parser: what is done with an input, seeds, its share of the time, the longest input in bytes."""

    check: Check
    seeds: Callable[[], list[bytes]]
    weight: int = 1
    max_bytes: int = 4096


TARGETS: dict[str, Target] = {
    name: Target(*parts)
    for module in (fuzz_ledger, fuzz_learning, fuzz_rollouts)
    for name, parts in module.TARGETS.items()
}
