"""Evaluations side by side: pairing, guards, ranking, recommendation. It carries no authority; it is recomputed.

Outcomes are paired by case, and only where both arms were given the same prompt token by token. A case that is
undecided in either arm is no pair; it is named in the notes. Where the judge is not qualified, dialogue
outcomes are shown but not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger.canonical import parse_real, real
from ledger.errors import UsageError
from verifiers.judgement.judging import flip_rate
from verifiers.judgement.statistics import PairedTable, mcnemar, paired_table, wilson

Line = Mapping[str, Any]
GUARDS: Final = ("lost_success", "new_violation", "new_truncation", "new_failed_check")
MAX_NAMED = 64


@dataclass(frozen=True)
class Arm:
    """One evaluation: its record id, its protocol's record id, its outcome lines, its checkpoint's step.

    `label` is what a person reads; `step` settles a tie (0 for a model that was not trained here).
    """

    evaluation: str
    protocol: str
    label: str
    step: int
    lines: Sequence[Line]


@dataclass(frozen=True)
class Pair:
    """One case in both arms."""

    case: str
    family: str
    kind: str
    baseline: Line
    candidate: Line

    @property
    def decided(self) -> bool:
        """Whether both arms have an outcome."""
        return self.baseline["success"] is not None and self.candidate["success"] is not None


def pairs(baseline: Sequence[Line], candidate: Sequence[Line]) -> list[Pair]:
    """Outcome lines of two arms, case by case, in the baseline's order.

    Raises:
        UsageError: `PAIRING_BROKEN`, the arms have other cases, or one case had two prompts.
    """
    theirs = {line["case"]: line for line in candidate}
    mine = {line["case"]: line for line in baseline}
    if len(mine) != len(baseline) or len(theirs) != len(candidate):
        raise _broken("a case stands twice in one arm")
    if odd := sorted(mine.keys() ^ theirs.keys()):
        raise _broken(f"{len(odd)} cases stand in one arm only, e.g. {odd[0]}")
    return [_pair(line, theirs[case]) for case, line in mine.items()]


def scored(found: Sequence[Pair], *, judge_qualified: bool) -> list[Pair]:
    """The pairs whose outcome counts: scored by execution, or by a judge that is qualified."""
    return [pair for pair in found if judge_qualified or pair.kind == "desk"]


def counted(found: Sequence[Pair], *, judge_qualified: bool) -> list[Pair]:
    """The pairs that a statistic counts: scored, and decided in both arms."""
    return [pair for pair in scored(found, judge_qualified=judge_qualified) if pair.decided]


def table(found: Sequence[Pair]) -> PairedTable:
    """Paired counts of decided pairs."""
    return paired_table(
        [pair.baseline["success"] for pair in found], [pair.candidate["success"] for pair in found]
    )


def findings(line: Line, field: str, *, judge_qualified: bool) -> set[str]:
    """The `violations` or `failed_checks` of a line, without what only an unqualified judge says."""
    names = set(line["violations"] if field == "violations" else line["detail"].get(field, []))
    if judge_qualified:
        return names
    return names - set(line["detail"].get("judged_checks", []))


def guards(found: Sequence[Pair], *, judge_qualified: bool) -> dict[str, list[str]]:
    """The cases that break each guard, by guard; an empty list is a guard that holds.

    Violations, truncations and failed code checks are decided by code, so they count whatever the judge's
    standing; a lost success or a failed judge check needs a qualified judge, or an executed outcome.
    """
    solid = counted(found, judge_qualified=judge_qualified)
    return {
        "lost_success": [
            pair.case
            for pair in solid
            if pair.baseline["success"] and not pair.candidate["success"]
        ],
        "new_violation": [
            pair.case for pair in found if _new(pair, "violations", judge_qualified=judge_qualified)
        ],
        "new_truncation": [
            pair.case
            for pair in found
            if pair.candidate["truncated"] and not pair.baseline["truncated"]
        ],
        "new_failed_check": [
            pair.case
            for pair in found
            if _new(pair, "failed_checks", judge_qualified=judge_qualified)
        ],
    }


def derive_comparison(
    baseline: Arm,
    candidates: Sequence[Arm],
    *,
    judge_qualified: bool,
    seeds: int = 1,
    baselines: Mapping[str, float] | None = None,
    reasons: Sequence[str] = (),
) -> dict[str, Any]:
    """The body of `comparison.made`: candidates in the order of their rank.

    Args:
        baseline: the arm that the candidates are held against.
        candidates: at least one arm of the same protocol.
        judge_qualified: whether the judge of the passes is qualified.
        seeds: how many training seeds the candidates are replicates of; one seed is always descriptive.
        baselines: the protocol's baselines, rates in [0, 1] by name (best constant answer, the answerer that
            ignores the record, accuracy on twins, share of refusals, …).
        reasons: further reasons why the comparison is descriptive (a second look, too little power).

    Raises:
        UsageError: `PAIRING_BROKEN`, no candidate, another protocol, other cases or other prompts;
            `NOTHING_TO_COMPARE`, no pair is decided.
    """
    if not candidates:
        raise _broken("there is no candidate")
    results = [_result(baseline, arm, judge_qualified=judge_qualified) for arm in candidates]
    ranked = sorted(results, key=_rank)
    best = next((result for result in ranked if result.body["eligible"]), None)
    notes = [_one_seed()] if seeds < 2 else []
    notes += [*_judge_notes(baseline, judge_qualified=judge_qualified), *reasons]
    notes += [note for result in ranked for note in result.notes]
    return {
        "candidates": [result.body for result in ranked],
        "baselines": {name: real(rate) for name, rate in sorted((baselines or {}).items())},
        "recommendation": "baseline" if best is None else "candidate",
        "recommended": baseline.evaluation if best is None else best.arm.evaluation,
        "descriptive": seeds < 2 or bool(reasons),
        "notes": notes[:32],
    }


@dataclass(frozen=True)
class _Result:
    arm: Arm
    body: dict[str, Any]
    notes: list[str]
    rate: float
    score: float


def _result(baseline: Arm, arm: Arm, *, judge_qualified: bool) -> _Result:
    if arm.protocol != baseline.protocol:
        raise _broken(f"{arm.label} was evaluated under another protocol than {baseline.label}")
    found = pairs(baseline.lines, arm.lines)
    solid = counted(found, judge_qualified=judge_qualified)
    if not solid:
        raise UsageError("NOTHING_TO_COMPARE", f"no case of {arm.label} is decided in both arms")
    counts = table(solid)
    broken = guards(found, judge_qualified=judge_qualified)
    mine, theirs = (
        _standing([getattr(pair, side) for pair in solid]) for side in ("candidate", "baseline")
    )
    eligible = mine > theirs and not any(broken.values())
    body = {
        "evaluation": arm.evaluation,
        "paired": {
            "both": counts.both,
            "candidate_only": counts.candidate_only,
            "baseline_only": counts.baseline_only,
            "neither": counts.neither,
        },
        "mcnemar_p": real(mcnemar(counts)),
        "gain": real(counts.gain),
        "guards": {name: _named(broken[name]) for name in GUARDS},
        "eligible": eligible,
    }
    notes = _result_notes(arm, found, counts)
    return _Result(arm, body, notes, *mine)


def _rank(result: _Result) -> tuple[bool, float, float, int, str]:
    """Guards first, then success rate, then score, then the earlier step."""
    return (
        any(result.body["guards"].values()),
        -result.rate,
        -result.score,
        result.arm.step,
        result.arm.evaluation,
    )


def _standing(lines: Sequence[Line]) -> tuple[float, float]:
    """Success rate and mean score of decided outcomes."""
    successes = sum(line["success"] for line in lines)
    return successes / len(lines), sum(map(_score, lines)) / len(lines)


def _score(line: Line) -> float:
    """A line's score in [0, 1]: its own where it has one, otherwise 1 for a success."""
    text = line["detail"].get("score")
    return float(line["success"]) if text is None else parse_real(text)


def _result_notes(arm: Arm, found: Sequence[Pair], counts: PairedTable) -> list[str]:
    undecided = [pair.case for pair in found if not pair.decided]
    notes = [
        _rate_note(f"{arm.label}", counts.both + counts.candidate_only, counts.pairs),
        _rate_note("its baseline", counts.both + counts.baseline_only, counts.pairs),
    ]
    if undecided:
        notes.append(
            f"{arm.label}: {len(undecided)} undecided pairs left out: {_listed(undecided)}"
        )
    return notes


def _rate_note(label: str, successes: int, trials: int) -> str:
    found = wilson(successes, trials)
    return (
        f"{label}: {successes} of {trials}, Wilson 95 % interval {found.lower:.3f} to {found.upper:.3f} "
        f"(not the gate)"
    )


def _judge_notes(baseline: Arm, *, judge_qualified: bool) -> list[str]:
    dialogues = [line for line in baseline.lines if line["kind"] == "dialogue"]
    if not dialogues:
        return []
    flips = [line["detail"].get("flipped") for line in dialogues]
    read = [flip for flip in flips if flip is not None]
    found = flip_rate(sum(read), len(read))
    flip_note = (
        f"judge contradicts itself on {sum(read)} of {len(read)} baseline answers, "
        f"Wilson 95 % interval {found.lower:.3f} to {found.upper:.3f}"
    )
    if judge_qualified:
        return [flip_note]
    return [f"judge not qualified: {len(dialogues)} dialogue cases shown, not counted", flip_note]


def _one_seed() -> str:
    return "one training seed: descriptive, no promotion can rest on it"


def _pair(baseline: Line, candidate: Line) -> Pair:
    case = baseline["case"]
    for field in ("family", "kind"):
        if baseline[field] != candidate[field]:
            raise _broken(f"case {case} has another {field} in the other arm")
    answered = [
        line for line in (baseline, candidate) if line["detail"]["reason"] != "no_transcript"
    ]
    if len({line["detail"]["prompt_digest"] for line in answered}) > 1:
        raise _broken(f"case {case} was prompted differently in the two arms")
    return Pair(case, baseline["family"], baseline["kind"], baseline, candidate)


def _new(pair: Pair, field: str, *, judge_qualified: bool) -> bool:
    before, after = (
        findings(line, field, judge_qualified=judge_qualified)
        for line in (pair.baseline, pair.candidate)
    )
    return bool(after - before)


def _named(cases: Sequence[str]) -> list[str]:
    """Case ids as a record can hold them: at most 64 entries, the last saying how many are left out."""
    if len(cases) <= MAX_NAMED:
        return list(cases)
    kept = list(cases[: MAX_NAMED - 1])
    return [*kept, f"and {len(cases) - len(kept)} more"]


def _listed(cases: Sequence[str]) -> str:
    shown = ", ".join(cases[:5])
    return shown if len(cases) <= 5 else f"{shown} and {len(cases) - 5} more"


def _broken(message: str) -> UsageError:
    return UsageError("PAIRING_BROKEN", message)
