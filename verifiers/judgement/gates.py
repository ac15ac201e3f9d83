"""The gate: a conjunction of lines, each with its number, its threshold and its verdict.

`decide_gates` looks at what evidence there is and never stops at the first failing line: a reader sees all that
is missing. Nothing here is trusted from a record of a verdict: outcomes, identities and re-runs are what
the caller re-derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from ledger.canonical import real
from verifiers.judgement.comparison import findings
from verifiers.judgement.gate_evidence import Evidence, Facts, Limits, SeedEvidence
from verifiers.judgement.statistics import sign_flip

if TYPE_CHECKING:
    import numpy as np

    from verifiers.judgement.comparison import Line, Pair

METADATA: Final = ("model", "package")
JUDGE_METADATA: Final = ("judge", "rubric")


@dataclass(frozen=True)
class GateLine:
    """One line of the gate."""

    name: str
    value: str
    threshold: str
    passed: bool
    code: str | None

    def as_dict(self) -> dict[str, Any]:
        """The line as `gate.decided` carries it."""
        return {
            "name": self.name,
            "value": self.value,
            "threshold": self.threshold,
            "passed": self.passed,
            "code": self.code,
        }


@dataclass(frozen=True)
class GateReport:
    """All lines, in the order of the table."""

    lines: tuple[GateLine, ...]

    @property
    def passed(self) -> bool:
        """Whether every line passed; a gate without a line has not."""
        return bool(self.lines) and all(line.passed for line in self.lines)

    def body(self) -> dict[str, Any]:
        """The body of `gate.decided`."""
        return {"gates": [line.as_dict() for line in self.lines], "passed": self.passed}


def decide_gates(evidence: Evidence, demanded: Limits, rng: np.random.Generator) -> GateReport:
    """Every line of the gate.

    Args:
        evidence: what was re-derived.
        demanded: the limits, from `limits`.
        rng: the random source of the bootstrap, from a recorded seed (`resampling.generator`).
    """
    facts = Facts(evidence, demanded, rng)
    table = GATES if evidence.exposure is None else GATES + EXPOSURE_GATES
    return GateReport(tuple(_line(name, code, check, facts) for name, code, check in table))


# What a line says: its number, its threshold, and whether it passed.
_Said = tuple[str, str, bool]
_Check = Callable[[Facts], _Said]


def _seeds(facts: Facts) -> _Said:
    found = len({seed.seed for seed in facts.evidence.seeds})
    return str(found), f"at least {facts.demanded.seeds}", found >= facts.demanded.seeds


def _planned_seeds(facts: Facts) -> _Said:
    planned = facts.demanded.planned_seeds
    found = sorted(seed.seed for seed in facts.evidence.seeds)
    if planned is None:
        return "no study", "all seeds of a registered study", False
    wanted = ", ".join(map(str, sorted(planned)))
    return _short(", ".join(map(str, found)) or "none"), _short(wanted), found == sorted(planned)


def _pairing(facts: Facts) -> _Said:
    paired = facts.problem is None and bool(facts.all_pairs)
    said = "same cases, prompts and settings" if paired else facts.problem or "no seed"
    return _short(said), "same cases, prompts and settings in both arms", paired


def _identities(facts: Facts) -> _Said:
    seeds = facts.evidence.seeds
    # a file beside the weights makes another folder of them, and no other weights
    distinct = min(len({seed.checkpoint for seed in seeds}), len({seed.state for seed in seeds}))
    traced = sum(seed.traced for seed in seeds)
    fine = bool(seeds) and distinct == traced == len(seeds)
    return f"{distinct} distinct, {traced} traced", f"{len(seeds)} of each", fine


def _case_count(facts: Facts) -> _Said:
    demanded = facts.demanded
    totals = {len(found) for found in facts.all_pairs}
    scored = min((len(found) for found in facts.scored), default=0)
    planned = demanded.planned_cases
    registered = planned is None or totals == {planned}
    wanted = f"at least {demanded.cases}" + (f", {planned} as registered" if planned else "")
    return str(scored), wanted, registered and scored >= demanded.cases


def _undecided(facts: Facts) -> _Said:
    shares = [
        sum(not pair.decided for pair in found) / len(found) if found else 1.0
        for found in facts.scored
    ]
    limit = facts.demanded.undecided_share
    worst = max(shares, default=1.0)
    return real(worst), f"at most {real(limit)} in every seed", worst <= limit


def _significance(facts: Facts) -> _Said:
    alpha, comparisons = facts.demanded.alpha, facts.demanded.comparisons
    threshold = f"at most {real(alpha)} after {comparisons} planned comparison(s)"
    if not facts.computable:
        return "none", threshold, False
    p = min(1.0, sign_flip(facts.gains) * comparisons)
    exposure = facts.evidence.exposure
    said = real(p) if exposure is None else f"{real(p)} at look {exposure.look}"
    return said, threshold, p <= alpha and sum(facts.gains) > 0


def _interval(facts: Facts) -> _Said:
    if not facts.computable:
        return "none", "above 0.0", False
    return real(facts.interval.lower), "above 0.0", facts.interval.lower > 0.0


def _gain(facts: Facts) -> _Said:
    wanted = f"at least {real(facts.demanded.minimum_gain)}"
    if not facts.computable:
        return "none", wanted, False
    mean = sum(facts.gains) / len(facts.gains)
    # Compared as the decimal that was declared, so that a gain of exactly 0.03 passes a floor of 0.03.
    floor = Fraction(real(facts.demanded.minimum_gain))
    return real(float(mean)), wanted, mean >= floor


def _violations(facts: Facts) -> _Said:
    qualified = facts.evidence.judge_qualified

    def broken(line: Line) -> int:
        return len(findings(line, "violations", judge_qualified=qualified))

    return _worst(facts, broken)


def _truncations(facts: Facts) -> _Said:
    return _worst(facts, lambda line: int(line["truncated"]))


def _families(facts: Facts) -> _Said:
    gains: dict[str, int] = {}
    lost: dict[str, set[str]] = {}
    for found in facts.counted:
        for pair in found:
            delta = pair.candidate["success"] - pair.baseline["success"]
            gains[pair.family] = gains.get(pair.family, 0) + delta
            if delta < 0:
                lost.setdefault(pair.family, set()).add(pair.case)
    fallen = sorted(family for family, gain in gains.items() if gain < 0)
    said = ", ".join(f"{family} ({_cases(lost[family])})" for family in fallen)
    counted = f"{len(fallen)} fell" + (f": {said}" if fallen else "")
    return _short(counted), "no family falls", facts.computable and not fallen


def _fresh(facts: Facts) -> _Said:
    assert facts.evidence.exposure is not None  # its lines stand only where it is known
    seen = facts.evidence.exposure.seen
    said = f"{len(seen)} seen" + (f": {_cases(seen)}" if seen else "")
    return _short(said), "no case was trained or validated on", not seen


def _looks(facts: Facts) -> _Said:
    assert facts.evidence.exposure is not None  # its lines stand only where it is known
    look = facts.evidence.exposure.look
    return f"look {look}", "the first look at each case", look == 1


def _metadata(facts: Facts) -> _Said:
    seeds = facts.evidence.seeds
    judged = any(pair.kind == "dialogue" for found in facts.all_pairs for pair in found)
    needed = METADATA + (JUDGE_METADATA if judged else ())
    unpinned = [name for name in needed if not _is_pinned(name, seeds)]
    said = "one digest each" if not unpinned else f"not pinned: {', '.join(unpinned)}"
    return said, "one digest each of " + ", ".join(needed), not unpinned


def _reruns(facts: Facts) -> _Said:
    demanded, seeds = facts.demanded, facts.evidence.seeds
    updates = min((seed.updates_reproduced for seed in seeds), default=0)
    share = min((seed.share_reproduced for seed in seeds), default=0.0)
    missing = max((seed.not_run for seed in seeds), default=0)
    enough = updates >= demanded.reruns_updates_per_seed and share >= demanded.reruns_case_share
    said = f"{updates} updates a seed, {real(share)} of cases, {missing} drawn and not run"
    wanted = (
        f"{demanded.reruns_updates_per_seed} updates a seed, "
        f"{real(demanded.reruns_case_share)} of cases, all that was drawn"
    )
    return said, wanted, bool(seeds) and enough and not missing


def _reproduced(facts: Facts) -> _Said:
    seeds = facts.evidence.seeds
    disagreed = max((seed.disagreed for seed in seeds), default=0)
    said = f"{disagreed} disagreed in the worst seed"
    return said, "none disagrees", bool(seeds) and disagreed == 0


GATES: Final[tuple[tuple[str, str, _Check], ...]] = (
    ("seeds", "SEEDS_TOO_FEW", _seeds),
    ("planned_seeds", "SEEDS_NOT_AS_PLANNED", _planned_seeds),
    ("pairing", "PAIRING_BROKEN", _pairing),
    ("identities", "IDENTITY_UNPROVEN", _identities),
    ("cases", "CASES_NOT_AS_PLANNED", _case_count),
    ("undecided", "UNDECIDED_TOO_MANY", _undecided),
    ("significance", "NOT_SIGNIFICANT", _significance),
    ("interval", "INTERVAL_REACHES_ZERO", _interval),
    ("gain", "EFFECT_TOO_SMALL", _gain),
    ("violations", "NEW_VIOLATION", _violations),
    ("truncations", "NEW_TRUNCATION", _truncations),
    ("families", "FAMILY_REGRESSED", _families),
    ("metadata", "METADATA_UNPINNED", _metadata),
    ("reruns", "UNREPRODUCED", _reruns),
    ("reproduced", "NOT_REPRODUCED", _reproduced),
)

EXPOSURE_GATES: Final[tuple[tuple[str, str, _Check], ...]] = (
    ("fresh", "TEST_SEEN", _fresh),
    ("looks", "TEST_LOOKED_AGAIN", _looks),
)
CASES_NAMED: Final = 4


def _line(name: str, code: str, check: _Check, facts: Facts) -> GateLine:
    value, threshold, passed = check(facts)
    return GateLine(name, value, threshold, passed, None if passed else code)


def _rise(found: Sequence[Pair], measure: Callable[[Line], int]) -> int:
    return sum(measure(pair.candidate) - measure(pair.baseline) for pair in found)


def _worst(facts: Facts, measure: Callable[[Line], int]) -> _Said:
    """By how much a measure rose in the worst seed, and in which cases it did."""
    risen = [(_rise(found, measure), found) for found in facts.all_pairs]
    worst = max((rise for rise, _ in risen), default=0)
    cases = {
        pair.case
        for rise, found in risen
        if rise > 0
        for pair in found
        if measure(pair.candidate) > measure(pair.baseline)
    }
    said = f"{worst:+d} in the worst seed" + (f": {_cases(cases)}" if cases else "")
    return _short(said), "no rise in any seed", bool(risen) and worst <= 0


def _cases(names: Iterable[str]) -> str:
    """The first cases by name, and how many more there are."""
    ordered = sorted(names)
    more = len(ordered) - CASES_NAMED
    return ", ".join(ordered[:CASES_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_pinned(name: str, seeds: Sequence[SeedEvidence]) -> bool:
    digests = {seed.metadata.get(name, "") for seed in seeds}
    return len(digests) == 1 and "" not in digests


def _short(text: str) -> str:
    """A text as a gate line can hold it: at most 200 characters."""
    return text if len(text) <= 200 else text[:199] + "…"
