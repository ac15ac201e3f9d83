"""The figures of a study, from its design: what a registration records and what a verifier derives again."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from ledger.canonical import parse_real, real
from ledger.checks.study import points
from verifiers.judgement.power import (
    METHOD,
    REPLICATES,
    TRIALS,
    Design,
    best,
    gate_power,
    what_suffices,
)

TESTS: Final = ("sign_flip", "bootstrap_seeds_cases")
SIMULATION_SEED: Final = 0
SIMULATION: Final = {
    "method": METHOD,
    "seed": SIMULATION_SEED,
    "trials": TRIALS,
    "replicates": REPLICATES,
}
"""How power is simulated. The seed is the program's, so that nobody tries seeds until one is kind."""

DIGITS: Final = 6


def design_of(body: Mapping[str, Any]) -> Design:
    """The design that a study's body states.

    Raises:
        EvidenceError: `NOT_A_REAL`.
    """
    return Design(
        baseline_rate=parse_real(body["baseline_rate"]),
        effect=parse_real(body["effect"]),
        spread=parse_real(body["spread"]),
        seeds=len(body["seeds"]),
        cases=body["cases"],
        families=body["families"],
        rollouts=body["rollouts"],
        alpha=parse_real(body["alpha"]),
        comparisons=body["comparisons"],
        minimum_gain=parse_real(body["minimum_gain"]),
    )


def figures(body: Mapping[str, Any]) -> dict[str, str]:
    """What can be attained, and how often the gate would find the effect, as a record has it.

    Raises:
        UsageError: `STATISTIC_INPUT`, with the field that is out of range.
        EvidenceError: `NOT_A_REAL`.
    """
    design = design_of(body)
    found = best(design)
    # the closed form goes through a library's power function, whose last digits may differ: six digits are evidence
    best_power = round(found.perfect_power, DIGITS)
    return {
        "attainable_gain": real(float(1 - Fraction(body["baseline_rate"]))),
        "minimum_p": real(found.minimum_p),
        "best_power": real(best_power),
        # the noise of a simulation must not promise more than a candidate that never fails could show
        "power": real(min(best_power, _power(design))),
    }


def what_would_do(body: Mapping[str, Any], floor: str) -> str:
    """What would reach the power demanded, as a sentence; simulated with fewer studies, so about.

    Raises:
        UsageError: `STATISTIC_INPUT`.
    """
    design = design_of(body)
    enough = what_suffices(design, parse_real(floor), SIMULATION_SEED)
    ways = []
    if enough.seeds is not None:
        ways.append(f"about {enough.seeds} seeds")
    if enough.answers is not None:
        ways.append(f"about {enough.answers} answers a seed")
    if ways:
        return f"{' or '.join(ways)} would do"
    if design.minimum_gain >= design.effect:
        return (
            "look for an effect above the minimum gain: a mean gain around it passes half the time"
        )
    left = points(1 - Fraction(body["baseline_rate"]))
    return f"no number of seeds or answers within the limits would do; the baseline leaves {left} points"


@lru_cache(maxsize=256)
def _power(design: Design) -> float:
    return gate_power(design, SIMULATION_SEED)
