"""Evaluations side by side: pairing, guards, ranking, recommendation."""

from __future__ import annotations

import pytest
from judgement_rows import line

from ledger.canonical import encode
from ledger.errors import UsageError
from ledger.records.evaluation import ComparisonMade
from verifiers.judgement.comparison import Arm, derive_comparison, guards, pairs, table

IDS = {"base": "a", "one": "b", "two": "c", "three": "d"}


def arm(label: str, lines, *, step: int = 0, protocol: str = "p") -> Arm:
    """An arm whose evaluation id is made from its label."""
    return Arm("sha256:" + IDS[label] * 64, protocol, label, step, lines)


def outcomes(text: str, **marks):
    """One line a letter: `y` success, `n` failure, `?` undecided; `marks` overrides fields of a case."""
    success = {"y": True, "n": False, "?": None}
    return [
        line(f"case{index}", success[char], **marks.get(f"case{index}", {}))
        for index, char in enumerate(text)
    ]


def compare(base: str, *candidates, **options):
    """The comparison of arms given as strings."""
    names = ("one", "two", "three")
    arms = [
        arm(names[index], outcomes(text), step=10 * (index + 1))
        for index, text in enumerate(candidates)
    ]
    return derive_comparison(arm("base", outcomes(base)), arms, judge_qualified=False, **options)


def test_paired_counts_and_mcnemar() -> None:
    """Counts are paired by case, and p is the exact one of the discordant pairs."""
    body = compare("ynnnnnnny", "yyyyyyyny")
    found = body["candidates"][0]
    assert found["paired"] == {"both": 2, "candidate_only": 6, "baseline_only": 0, "neither": 1}
    assert (found["mcnemar_p"], found["gain"]) == ("0.03125", repr(6 / 9))
    assert (body["recommendation"], body["recommended"]) == ("candidate", "sha256:" + "b" * 64)


def test_pairing_is_by_case_and_not_by_place() -> None:
    """A shuffled arm gives the same table."""
    base, candidate = outcomes("yynn"), outcomes("ynyn")
    assert table(pairs(base, candidate)) == table(pairs(base, candidate[::-1]))


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        (outcomes("yy"), outcomes("yyy")),
        (outcomes("yy"), outcomes("yy")[:1] * 2),
        (outcomes("y"), outcomes("y", case0={"prompt_digest": "sha256:" + "1" * 64})),
        (outcomes("y"), outcomes("y", case0={"family": "other"})),
        (outcomes("y"), outcomes("y", case0={"kind": "dialogue"})),
    ],
    ids=["other cases", "twice", "other prompt", "other family", "other kind"],
)
def test_arms_that_were_not_given_the_same_are_not_compared(base, candidate) -> None:
    """Other cases, a doubled case or another prompt breaks the pairing."""
    with pytest.raises(UsageError) as caught:
        derive_comparison(arm("base", base), [arm("one", candidate)], judge_qualified=True)
    assert caught.value.code == "PAIRING_BROKEN"


def test_another_protocol_or_no_candidate_is_refused() -> None:
    """Evaluations of two protocols are never put side by side, and one arm alone is no comparison."""
    base = arm("base", outcomes("y"))
    for candidates in ([arm("one", outcomes("y"), protocol="q")], []):
        with pytest.raises(UsageError) as caught:
            derive_comparison(base, candidates, judge_qualified=True)
        assert caught.value.code == "PAIRING_BROKEN"


def test_a_case_without_a_transcript_is_no_broken_pairing() -> None:
    """An arm that never answered has no prompt to differ in; the pair is left out and named."""
    silent = outcomes("?y", case0={"prompt_digest": None, "reason": "no_transcript"})
    body = derive_comparison(
        arm("base", outcomes("yn")), [arm("one", silent)], judge_qualified=True
    )
    assert body["candidates"][0]["paired"]["candidate_only"] == 1
    assert any("1 undecided pairs left out: case0" in note for note in body["notes"])


GUARDED = {
    "lost_success": ({}, {}, "yn", "ny"),
    "new_violation": ({}, {"violations": ("wrong_status",)}, "nn", "ny"),
    "new_truncation": ({}, {"truncated": True}, "nn", "ny"),
    "new_failed_check": ({"failed_checks": ["a"]}, {"failed_checks": ["a", "b"]}, "nn", "ny"),
}


@pytest.mark.parametrize("guard", GUARDED)
def test_each_guard_names_its_case(guard: str) -> None:
    """A candidate with a higher mean is not eligible while one case breaks a guard, and the case is named."""
    before, after, base, candidate = GUARDED[guard]
    arms = (
        arm("base", outcomes(base + "nnn", case0=before)),
        arm("one", outcomes(candidate + "yyy", case0=after)),
    )
    body = derive_comparison(arms[0], [arms[1]], judge_qualified=True)
    broken = {name: cases for name, cases in body["candidates"][0]["guards"].items() if cases}
    assert broken == {guard: ["case0"]}
    assert not body["candidates"][0]["eligible"]
    assert body["recommendation"] == "baseline"


def test_what_both_arms_break_is_not_new() -> None:
    """A violation, truncation or failed check that the baseline has too breaks no guard."""
    mark = {"violations": ("x",), "truncated": True, "failed_checks": ["a"]}
    found = guards(
        pairs(outcomes("n", case0=mark), outcomes("n", case0=mark)), judge_qualified=True
    )
    assert not any(found.values())


def test_an_unqualified_judge_is_shown_but_not_counted() -> None:
    """Its verdicts enter no table and no guard; what code found in the same answers still does."""
    said = {
        "kind": "dialogue",
        "failed_checks": ["resolution.x"],
        "judged_checks": ["resolution.x"],
    }
    coded = said | {"failed_checks": ["accuracy.figures", "resolution.x"], "flipped": True}
    base = outcomes("yyn", case0={"kind": "dialogue"}, case1={"kind": "dialogue", "flipped": False})
    candidate = outcomes("nny", case0=said, case1=coded)
    arms = arm("base", base), [arm("one", candidate)]
    doubted = derive_comparison(*arms, judge_qualified=False)
    trusted = derive_comparison(*arms, judge_qualified=True)
    assert sum(doubted["candidates"][0]["paired"].values()) == 1
    assert doubted["candidates"][0]["guards"]["lost_success"] == []
    assert doubted["candidates"][0]["guards"]["new_failed_check"] == ["case1"]
    assert doubted["notes"][1] == "judge not qualified: 2 dialogue cases shown, not counted"
    assert "0 of 1 baseline answers" in doubted["notes"][2]
    assert trusted["candidates"][0]["guards"]["lost_success"] == ["case0", "case1"]
    assert trusted["candidates"][0]["guards"]["new_failed_check"] == ["case0", "case1"]


def test_nothing_decided_is_nothing_to_compare() -> None:
    """Without a counted pair there is no figure, not a figure of zero."""
    with pytest.raises(UsageError) as caught:
        compare("??", "yy")
    assert caught.value.code == "NOTHING_TO_COMPARE"


def test_ranking_is_guards_then_rate_then_score_then_step() -> None:
    """A candidate that lost a case ranks last whatever its mean; equals are settled by the earlier step."""
    body = compare("ynnnn", "nyyyy", "yynnn", "ynynn")
    assert [found["evaluation"][7] for found in body["candidates"]] == ["c", "d", "b"]
    low, high = (
        arm(name, outcomes("yn", case1={"score": score}), step=step)
        for name, score, step in (("one", "0.25", 1), ("two", "0.75", 9))
    )
    body = derive_comparison(arm("base", outcomes("nn")), [low, high], judge_qualified=False)
    assert [found["evaluation"][7] for found in body["candidates"]] == ["c", "b"]


def test_an_equal_candidate_is_not_recommended() -> None:
    """The baseline stays unless something is better in success rate, or equal and better in score."""
    body = compare("yn", "yn")
    assert (body["recommendation"], body["recommended"]) == ("baseline", "sha256:" + "a" * 64)
    assert not body["candidates"][0]["eligible"]


def test_one_seed_is_descriptive() -> None:
    """One seed is always descriptive; several are unless a reason is given."""
    assert compare("n", "y")["descriptive"]
    assert "one training seed" in compare("n", "y")["notes"][0]
    assert not compare("n", "y", seeds=6)["descriptive"]
    looked = compare("n", "y", seeds=6, reasons=["second look at this test set"])
    assert looked["descriptive"]
    assert "second look at this test set" in looked["notes"]


def test_the_body_is_a_record() -> None:
    """The body, baselines and a hundred named cases included, is a valid `comparison.made`."""
    body = compare("y" * 100, "n" * 100, baselines={"record_ignored": 0.5, "best_constant": 0.25})
    ComparisonMade.model_validate(body)
    assert encode(body)
    lost = body["candidates"][0]["guards"]["lost_success"]
    assert (len(lost), lost[-1]) == (64, "and 37 more")
    assert list(body["baselines"]) == ["best_constant", "record_ignored"]
    assert body["baselines"]["record_ignored"] == "0.5"


def test_the_comparison_is_deterministic() -> None:
    """Other orders of cases and candidates give the same bytes but for the order of named cases."""
    one, two = (
        arm(name, outcomes(text), step=1) for name, text in (("one", "yyn"), ("two", "yny"))
    )
    base = arm("base", outcomes("ynn"))
    there, back = (
        derive_comparison(base, arms, judge_qualified=False) for arms in ([one, two], [two, one])
    )
    assert encode(there) == encode(back)
