"""The gate: every line, its number, its threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judgement_rows import POLICY, line

from ledger.codes import CODES
from ledger.errors import UsageError
from ledger.records.promotion import GateDecided
from verifiers.judgement.gate_evidence import Evidence, SeedEvidence, limits
from verifiers.judgement.gates import GATES, decide_gates
from verifiers.judgement.resampling import generator

CASES = 40
SEEDS = (11, 12, 13, 14, 15, 16)
STUDY = {
    "seeds": list(SEEDS),
    "comparisons": 1,
    "alpha": "0.05",
    "minimum_gain": "0.03",
    "cases": CASES,
    "descriptive": False,
}
PINNED = {"model": "sha256:m", "package": "sha256:p", "judge": "sha256:j", "rubric": "sha256:r"}
SETTINGS = {"protocol": "sha256:p", "generation": "sha256:g"}


def lines(failing: set[int], **marks):
    """Outcome lines of 40 cases in 4 families; `marks` overrides fields of a case by its number."""
    made = []
    for number in range(CASES):
        fields = {"family": f"family{number // 10}"} | marks.get(f"case{number}", {})
        success = fields.pop("success", number not in failing)
        made.append(line(f"case{number}", success, **fields))
    return made


def seed(number: int, gained: int = 3, **changes) -> SeedEvidence:
    """A seed whose baseline fails `gained` spread cases that its candidate gets right."""
    failing = {(number * 7 + 11 * index) % CASES for index in range(gained)}
    whole = SeedEvidence(
        seed=number,
        checkpoint=f"sha256:{number}",
        state=f"state {number}",
        traced=True,
        baseline=lines(failing),
        candidate=lines(set()),
        settings=(SETTINGS, SETTINGS),
        metadata=PINNED,
        updates_reproduced=3,
        share_reproduced=0.05,
    )
    return replace(whole, **changes)


def decide(seeds, *, study=STUDY, qualified: bool = True, policy=POLICY, protocol=None):
    """The gate over these seeds."""
    evidence = Evidence(seeds, judge_qualified=qualified)
    return decide_gates(evidence, limits(policy, study, protocol), generator(7))


def failed(report) -> set[str]:
    """Names of the lines that did not pass."""
    return {found.name for found in report.lines if not found.passed}


def test_a_clean_study_passes_every_line() -> None:
    """Six improved seeds with everything in place pass, and the report is a valid `gate.decided`."""
    report = decide([seed(number) for number in SEEDS])
    assert failed(report) == set()
    assert report.passed
    GateDecided.model_validate(report.body())
    assert {found.name: found.value for found in report.lines}["significance"] == "0.03125"


# Each defect touches the first seed alone (or all, where it has to) and must fail just these lines.
DEFECTS = {
    "a seed dropped": (lambda seeds: seeds[1:], {"seeds", "planned_seeds", "significance"}),
    "a seed twice": (
        lambda seeds: [*seeds[1:], seeds[1]],
        {"seeds", "planned_seeds", "identities"},
    ),
    "another seed": (lambda seeds: [*seeds[1:], seed(99)], {"planned_seeds"}),
    "other settings": (
        lambda seeds: [replace(seeds[0], settings=(SETTINGS, {"protocol": "q"})), *seeds[1:]],
        {"pairing", "cases", "undecided", "significance", "interval", "gain", "violations"}
        | {"truncations", "families"},
    ),
    "other cases": (
        lambda seeds: [replace(seeds[0], candidate=lines(set())[1:]), *seeds[1:]],
        {"pairing", "cases", "undecided", "significance", "interval", "gain", "violations"}
        | {"truncations", "families"},
    ),
    "one adapter twice": (
        lambda seeds: [replace(seeds[0], checkpoint=seeds[1].checkpoint), *seeds[1:]],
        {"identities"},
    ),
    "untraced": (lambda seeds: [replace(seeds[0], traced=False), *seeds[1:]], {"identities"}),
    "undecided": (
        lambda seeds: [
            replace(
                seeds[0],
                candidate=lines(set(), **{f"case{n}": {"success": None} for n in (1, 2, 5)}),
            ),
            *seeds[1:],
        ],
        {"undecided"},
    ),
    "a tied seed": (lambda seeds: [seed(11, gained=0), *seeds[1:]], {"significance"}),
    "a small effect": (lambda _: [seed(number, gained=1) for number in SEEDS], {"gain"}),
    "a violation": (
        lambda seeds: [
            replace(seeds[0], candidate=lines(set(), case1={"violations": ("x",)})),
            *seeds[1:],
        ],
        {"violations"},
    ),
    "a truncation": (
        lambda seeds: [
            replace(seeds[0], candidate=lines(set(), case1={"truncated": True})),
            *seeds[1:],
        ],
        {"truncations"},
    ),
    "a family worse": (
        lambda _: [
            replace(seed(n), baseline=lines(set(range(10))), candidate=lines({31})) for n in SEEDS
        ],
        {"families"},
    ),
    "another package": (
        lambda seeds: [replace(seeds[0], metadata=PINNED | {"package": "q"}), *seeds[1:]],
        {"metadata"},
    ),
    "no model digest": (
        lambda seeds: [replace(one, metadata={"package": "p"}) for one in seeds],
        {"metadata"},
    ),
    "too few updates run again": (
        lambda seeds: [replace(seeds[0], updates_reproduced=2), *seeds[1:]],
        {"reruns"},
    ),
    "too few cases run again": (
        lambda seeds: [replace(seeds[0], share_reproduced=0.025), *seeds[1:]],
        {"reruns"},
    ),
    "a re-run disagreed": (
        lambda seeds: [replace(seeds[0], disagreed=1), *seeds[1:]],
        {"reproduced"},
    ),
}


LINE_CODES = {
    "seeds": "SEEDS_TOO_FEW",
    "planned_seeds": "SEEDS_NOT_AS_PLANNED",
    "pairing": "PAIRING_BROKEN",
    "identities": "IDENTITY_UNPROVEN",
    "cases": "CASES_NOT_AS_PLANNED",
    "undecided": "UNDECIDED_TOO_MANY",
    "significance": "NOT_SIGNIFICANT",
    "interval": "INTERVAL_REACHES_ZERO",
    "gain": "EFFECT_TOO_SMALL",
    "violations": "NEW_VIOLATION",
    "truncations": "NEW_TRUNCATION",
    "families": "FAMILY_REGRESSED",
    "metadata": "METADATA_UNPINNED",
    "reruns": "UNREPRODUCED",
    "reproduced": "NOT_REPRODUCED",
}


def test_every_line_has_its_code() -> None:
    """Each line of the gate has one code of its own, and the code is in the table of codes."""
    assert {name: code for name, code, _ in GATES} == LINE_CODES
    assert set(LINE_CODES.values()) <= CODES.keys()


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_fails_its_lines_and_no_other(defect: str) -> None:
    """One defect in an otherwise clean study fails just the lines that are about it, each with its code."""
    spoil, names = DEFECTS[defect]
    report = decide(spoil([seed(number) for number in SEEDS]))
    assert failed(report) == names
    assert not report.passed
    codes = {found.name: found.code for found in report.lines if found.code is not None}
    assert codes == {name: LINE_CODES[name] for name in names}
    GateDecided.model_validate(report.body())


def test_every_line_has_a_defect_that_fails_it() -> None:
    """The table of defects covers the table of gates, the interval through the published study."""
    covered = set().union(*(names for _, names in DEFECTS.values()))
    assert covered == {name for name, _, _ in GATES}


@pytest.mark.parametrize("split", [(2, 2, 1, 1, 0, 0), (3, 1, 1, 1, 0, 0)], ids=["2211", "3111"])
def test_the_published_study_is_not_promoted(split: tuple[int, ...]) -> None:
    """Four improved and two tied seeds: p = 0.125, lower endpoint exactly 0, gain too small; three lines fail."""
    seeds, failing = [], iter(range(0, CASES, 5))
    for number, gained in zip(SEEDS, split, strict=True):
        baseline = lines({next(failing) for _ in range(gained)})
        seeds.append(replace(seed(number), baseline=baseline))
    report = decide(seeds)
    values = {found.name: found.value for found in report.lines}
    assert (values["significance"], values["interval"]) == ("0.125", "0.0")
    assert failed(report) == {"significance", "interval", "gain"}


def test_one_seed_without_a_study_fails_by_name() -> None:
    """A single good seed is descriptive: too few seeds, no study, no significance, nothing run again."""
    lone = replace(seed(11, gained=20), updates_reproduced=0, share_reproduced=0.0)
    report = decide([lone], study=None)
    assert failed(report) == {"seeds", "planned_seeds", "significance", "reruns"}
    values = {found.name: (found.value, found.threshold) for found in report.lines}
    assert values["seeds"] == ("1", "at least 6")
    assert values["significance"][0] == "1.0"


def test_a_worse_candidate_is_never_significant() -> None:
    """Six worse seeds reach p = 0.03125 and still fail: the gain must be positive."""
    swapped = [
        replace(one, baseline=one.candidate, candidate=one.baseline)
        for one in (seed(number) for number in SEEDS)
    ]
    assert {"significance", "interval", "gain", "families"} <= failed(decide(swapped))


def test_no_seed_at_all_passes_nothing() -> None:
    """Nothing is never enough: every line fails, and none of them crashes."""
    report = decide([])
    assert failed(report) == {name for name, _, _ in GATES}


def test_bonferroni_over_planned_comparisons() -> None:
    """With two planned comparisons six improved seeds no longer reach 0.05."""
    report = decide([seed(number) for number in SEEDS], study=STUDY | {"comparisons": 2})
    assert failed(report) == {"significance"}


def test_an_unqualified_judge_decides_nothing() -> None:
    """Dialogue outcomes of an unqualified judge leave the gate to the desk cases, and their number."""
    talk = {f"case{number}": {"kind": "dialogue"} for number in range(10)}
    seeds = [
        replace(
            one,
            baseline=lines({11, 12, 21, 25, 31, 35}, **talk),
            candidate=lines({1, 2, 3, 4}, **talk),
        )
        for one in (seed(number) for number in SEEDS)
    ]
    report = decide(seeds, qualified=False)
    assert {found.name: found.value for found in report.lines}["cases"] == "30"
    assert failed(report) == {"cases"}
    assert "families" in failed(decide(seeds, qualified=True))


def test_judge_and_rubric_are_pinned_where_there_is_a_dialogue() -> None:
    """Desk cases need no judge's digest; one dialogue case does."""
    bare = {"model": "sha256:m", "package": "sha256:p"}
    seeds = [replace(seed(number), metadata=bare) for number in SEEDS]
    assert failed(decide(seeds)) == set()
    talk = {"case1": {"kind": "dialogue"}}
    judged = [
        replace(
            one, baseline=lines({11, 12, 21, 25, 31, 35}, **talk), candidate=lines(set(), **talk)
        )
        for one in seeds
    ]
    report = decide(judged)
    assert failed(report) == {"metadata"}
    said = {found.name: found.value for found in report.lines}["metadata"]
    assert said == "not pinned: judge, rubric"


def test_a_study_can_only_be_stricter() -> None:
    """Each limit is the strictest of policy, study and protocol, whoever sets it."""
    loose = STUDY | {"alpha": "0.2", "minimum_gain": "0.0", "cases": 5, "seeds": [1]}
    found = limits(POLICY, loose, {"undecided_share": "0.5"})
    assert (found.alpha, found.minimum_gain, found.cases, found.seeds) == (0.05, 0.03, 32, 6)
    assert found.undecided_share == 0.05
    strict = STUDY | {"alpha": "0.01", "minimum_gain": "0.1", "cases": 99, "seeds": list(range(8))}
    found = limits(POLICY, strict, {"undecided_share": "0.01"})
    assert (found.alpha, found.minimum_gain, found.cases, found.seeds) == (0.01, 0.1, 99, 8)
    assert found.undecided_share == 0.01


def test_a_policy_without_a_floor_is_refused() -> None:
    """A missing floor is an error and never a floor of zero."""
    with pytest.raises(UsageError) as caught:
        limits({name: value for name, value in POLICY.items() if name != "alpha"})
    assert (caught.value.code, caught.value.field) == ("POLICY_MALFORMED", "alpha")


def test_a_gain_of_just_the_floor_passes() -> None:
    """A mean gain of exactly 3 in 100 meets a floor of 0.03, whatever floats make of 3 / 100."""
    policy = POLICY | {"minimum_gain": "0.075"}
    report = decide([seed(number, gained=3) for number in SEEDS], policy=policy)
    assert "gain" not in failed(report)
