"""The published replication result: 960 of 960 against 954 of 960, in both splits over seeds that fit it."""

from __future__ import annotations

from verifiers.judgement.outcome_table import Cell

SPLITS = [(2, 2, 1, 1, 0, 0), (3, 1, 1, 1, 0, 0)]


def published(split, cases: int = 32, families: int = 8):
    """Six seeds of 160 answers an arm; the candidate never fails, the baseline fails `split` times, on cases of its own."""
    failing = iter(range(0, cases, 4))
    bad = {(seed, next(failing)) for seed, count in enumerate(split, 1) for _ in range(count)}
    rollouts = 160 // cases
    return {
        (seed, f"case{case:02d}"): Cell(
            f"family{case * families // cases}",
            rollouts - ((seed, case) in bad),
            rollouts,
            rollouts,
        )
        for seed in range(1, 7)
        for case in range(cases)
    }
