"""One outcome line a case, from raw inputs."""

from __future__ import annotations

import pytest
from judgement_rows import (
    REFUSAL,
    RIGHT,
    desk_case,
    dialogue_case,
    protocol,
    raw_pass,
    rubric_data,
    transcript,
)

from ledger.canonical import encode
from ledger.errors import EvidenceError
from ledger.records.evaluation import EvaluationCompleted
from verifiers.judgement.outcomes import derive_evaluation, derive_verdicts

DENIAL = "Order W7 was a final sale, so there is no money back."
GRANT = "Good news, refund approved for W7!"
INVENTED = "Order W7 was a final sale, so you pay 25 more."

DESK = {"judging": None, "passes": [], "rubric": None}


def judge(reply: str, forward: float | None, backward: float | None, *, truncated: bool = False):
    """The outcome line and counts of one dialogue whose passes have these margins; None leaves one out."""
    passes = [
        raw_pass(order, {"d": (reply, margin)})
        for order, margin in (("forward", forward), ("reversed", backward))
        if margin is not None
    ]
    lines, counts = derive_evaluation(
        protocol(),
        [dialogue_case("d")],
        [transcript("d", reply, truncated=truncated)],
        passes,
        rubric_data(),
    )
    return lines[0], counts


def test_desk_cases_are_executed() -> None:
    """The right call succeeds, the same call on a shipped order is a violation, prose is a failure."""
    cases = [desk_case("a"), desk_case("b", status="delivered", family="refusal"), desk_case("c")]
    answers = [transcript("a", RIGHT), transcript("b", RIGHT), transcript("c", "I cancelled it.")]
    lines, counts = derive_evaluation(DESK, cases, answers)
    assert [(line["success"], line["violations"]) for line in lines] == [
        (True, []),
        (False, ["wrong_status"]),
        (False, []),
    ]
    assert lines[0]["detail"]["prompt_digest"] == answers[0]["prompt_digest"]
    assert counts == {
        "cases": 3,
        "success": 1,
        "failure": 2,
        "undecided": 0,
        "violations": 1,
        "truncated": 0,
        "families": {"cancel": [1, 2], "refusal": [0, 1]},
        "flips": None,
        "diagnostic": ["desk"],
    }


def test_a_twin_is_right_by_its_record() -> None:
    """The same request has another right answer once the order has left."""
    cases = [desk_case("a"), desk_case("b", status="delivered")]
    lines, _ = derive_evaluation(DESK, cases, [transcript("a", REFUSAL), transcript("b", REFUSAL)])
    assert [line["success"] for line in lines] == [False, True]


def test_a_cut_answer_never_succeeds() -> None:
    """Truncation turns a success into a failure, for both kinds of case, and is counted."""
    lines, counts = derive_evaluation(
        DESK, [desk_case("a")], [transcript("a", RIGHT, truncated=True)]
    )
    assert (lines[0]["success"], counts["truncated"]) == (False, 1)
    assert judge(DENIAL, 1.0, 1.0, truncated=True)[0]["success"] is False
    assert judge(DENIAL, None, 1.0, truncated=True)[0]["success"] is None


def test_a_missing_transcript_is_a_named_non_score() -> None:
    """Planned = success + failure + undecided, and the case without an answer says why."""
    lines, counts = derive_evaluation(
        DESK, [desk_case("a"), desk_case("b")], [transcript("b", RIGHT)]
    )
    assert (lines[0]["success"], lines[0]["detail"]["reason"]) == (None, "no_transcript")
    assert counts["cases"] == counts["success"] + counts["failure"] + counts["undecided"] == 2


def test_a_case_that_could_not_be_asked_is_undecided() -> None:
    """Where no prompt could be made nothing is held against the model: no failure and no truncation."""
    unasked = {**transcript("a", ""), "stop": "unasked"}
    lines, counts = derive_evaluation(DESK, [desk_case("a")], [unasked])
    assert (lines[0]["success"], lines[0]["detail"]["reason"]) == (None, "unasked")
    assert (counts["undecided"], counts["failure"], counts["truncated"]) == (1, 0, 0)


DIALOGUES = {
    "both passes": ((DENIAL, 0.4, 0.2), True, [], []),
    "one direction": ((DENIAL, 0.4, -0.2), False, ["resolution.supports_reference"], []),
    "neither": ((DENIAL, -0.4, -0.2), False, ["resolution.supports_reference"], []),
    "granted": ((GRANT, 0.4, 0.2), False, ["policy.must_avoid"], ["policy.must_avoid"]),
    "invented": ((INVENTED, 0.4, 0.2), False, ["accuracy.figures"], []),
    "repeated": ((f"{DENIAL} {DENIAL}", 0.4, 0.2), False, ["non_repetition.reply"], []),
    "a pass missing": ((DENIAL, 0.4, None), None, [], []),
    "granted and missing": ((GRANT, None, 0.2), None, ["policy.must_avoid"], ["policy.must_avoid"]),
    "empty": (("  ", None, None), False, ["resolution.empty"], []),
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogues(name: str) -> None:
    """A dialogue needs both passes and each required code check; code's findings stand if undecided."""
    answer, success, failed, violations = DIALOGUES[name]
    line, counts = judge(*answer)
    assert line["success"] is success
    assert line["detail"]["failed_checks"] == failed
    assert line["violations"] == violations
    assert counts["diagnostic"] == ["fixed_dialogue"]


def test_code_and_judge_are_told_apart() -> None:
    """What only the judge says is listed apart, with margins, score and flips."""
    line, counts = judge(DENIAL, 0.5, -0.25)
    assert line["detail"]["judged_checks"] == ["resolution.supports_reference"]
    assert line["detail"]["margins"] == ["0.5", "-0.25"]
    assert line["detail"]["score"] == repr(5 / 6)
    assert counts["flips"] == [1, 1]
    assert judge(DENIAL, None, None)[1]["flips"] == [0, 0]


def test_too_long_is_not_required() -> None:
    """The length check lowers the score but is no required check."""
    words = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(130))
    line, _ = judge(words, 0.5, 0.5)
    assert line["success"] is True
    assert line["detail"]["score"] == repr(5 / 6)


def test_the_counts_are_the_body_of_a_record() -> None:
    """The counts, with the outcomes blob, are a valid `evaluation.completed`; lines are canonical JSON."""
    cases = [desk_case("a"), dialogue_case("d")]
    answers = [transcript("a", RIGHT), transcript("d", DENIAL)]
    passes = [raw_pass(order, {"d": (DENIAL, 0.1)}) for order in ("forward", "reversed")]
    lines, counts = derive_evaluation(protocol(), cases, answers, passes, rubric_data())
    assert [line["success"] for line in lines] == [True, True]
    blob = {"digest": "sha256:" + "0" * 64, "size": 1, "media_type": "application/jsonl"}
    EvaluationCompleted.model_validate({**counts, "outcomes": blob})
    assert encode(lines)


def test_verdict_lines_of_a_pass() -> None:
    """A pass has one verdict line an answer, and says how many are undecided."""
    cases = [desk_case("a"), dialogue_case("d"), dialogue_case("e"), dialogue_case("f")]
    answers = [
        transcript("a", RIGHT),
        transcript("d", DENIAL),
        transcript("e", DENIAL),
        transcript("f", " "),
    ]
    raw = raw_pass("forward", {"d": (DENIAL, 0.5)})
    lines, undecided = derive_verdicts(cases, answers, raw, rubric_data())
    assert [(line["case"], line["satisfied"], line["reason"]) for line in lines] == [
        ("d", True, None),
        ("e", None, "no_line"),
    ]
    assert undecided == 1


def test_a_pass_over_another_reply_does_not_count() -> None:
    """Raw output about another text than the transcript's leaves the case undecided."""
    passes = [raw_pass(order, {"d": (GRANT, 0.5)}) for order in ("forward", "reversed")]
    lines, _ = derive_evaluation(
        protocol(), [dialogue_case("d")], [transcript("d", DENIAL)], passes, rubric_data()
    )
    assert (lines[0]["success"], lines[0]["detail"]["reason"]) == (None, "other_reply")


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (None, "CASE_BROKEN"),
        ({"kind": []}, "CASE_BROKEN"),
        (desk_case("a") | {"kind": "quiz"}, "CASE_BROKEN"),
        (desk_case("a") | {"family": None}, "CASE_BROKEN"),
        (desk_case("b"), "CASE_BROKEN"),
        (dialogue_case("a") | {"must_avoid": [7]}, "CASE_BROKEN"),
        (dialogue_case("a") | {"messages": ["hello"]}, "CASE_BROKEN"),
        (desk_case("a") | {"expected": {"tool": "transfer", "arguments": {}}}, "CASE_DISAGREES"),
    ],
    ids=["null", "kind list", "kind", "family", "twice", "phrase", "turn", "expected"],
)
def test_broken_cases_are_refused(case, code) -> None:
    """A row that is no case, stands twice or was given another answer is one clear error."""
    with pytest.raises(EvidenceError) as caught:
        derive_evaluation(DESK, [desk_case("b"), case], [transcript("a", RIGHT)])
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([transcript("z", RIGHT)], "TRANSCRIPT_UNPLANNED"),
        ([transcript("a", RIGHT)] * 2, "TRANSCRIPT_UNPLANNED"),
        ([transcript("a", RIGHT) | {"text": None}], "TRANSCRIPT_MALFORMED"),
        ([transcript("a", RIGHT) | {"truncated": 0}], "TRANSCRIPT_MALFORMED"),
        ([{"case": "a", "text": RIGHT, "truncated": False}], "TRANSCRIPT_MALFORMED"),
        (["a"], "TRANSCRIPT_MALFORMED"),
    ],
    ids=["unknown", "twice", "no text", "truncated", "no prompt", "no object"],
)
def test_broken_transcripts_are_refused(answers, code) -> None:
    """An answer to nothing planned, a second answer, or a malformed one is one clear error."""
    with pytest.raises(EvidenceError) as caught:
        derive_evaluation(DESK, [desk_case("a")], answers)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("body", "data", "passes", "code"),
    [
        (protocol(), None, [], "RUBRIC_MISMATCH"),
        (protocol() | {"rubric": None}, rubric_data(), [], "RUBRIC_MISMATCH"),
        (protocol() | {"judging": "json"}, rubric_data(), [], "RUBRIC_MISMATCH"),
        (protocol(), rubric_data() | {"max_words": 10}, [], "RUBRIC_MISMATCH"),
        (protocol(), rubric_data(), [raw_pass("forward", {})] * 2, "JUDGE_PASS_MIXED"),
        (protocol() | {"passes": []}, rubric_data(), [raw_pass("forward", {})], "JUDGE_PASS_MIXED"),
    ],
    ids=[
        "no rubric",
        "unnamed",
        "asked otherwise",
        "other rubric",
        "one order twice",
        "unplanned kind",
    ],
)
def test_judging_other_than_planned_is_refused(body, data, passes, code) -> None:
    """Another rubric, another way of asking, a doubled or unplanned pass is one clear error."""
    with pytest.raises(EvidenceError) as caught:
        derive_evaluation(body, [dialogue_case("d")], [transcript("d", DENIAL)], passes, data)
    assert caught.value.code == code


def test_a_pass_over_desk_cases_is_refused() -> None:
    """Where nothing is judged, no judge's pass can count."""
    with pytest.raises(EvidenceError) as caught:
        derive_evaluation(DESK, [desk_case("a")], [], [raw_pass("forward", {})])
    assert caught.value.code == "JUDGE_PASS_MIXED"
