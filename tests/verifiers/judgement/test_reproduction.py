"""When a re-run agrees: token by token, word by word, log-probabilities within a rounding."""

from __future__ import annotations

import pytest

from verifiers.judgement.judging import json_line, likelihood_line
from verifiers.judgement.reproduction import judged_differs, transcript_differs

ANSWER = {
    "prompt_digest": "sha256:p",
    "token_ids": [5, 6],
    "text": "no",
    "truncated": False,
    "stop": "eos",
}


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({}, []),
        ({"token_ids": [5, 7]}, ["token_ids"]),
        ({"text": "yes"}, ["text"]),
        ({"prompt_digest": "sha256:q"}, ["prompt_digest"]),
        ({"truncated": True, "stop": "length"}, ["truncated", "stop"]),
    ],
)
def test_an_answer_is_compared_field_by_field(change: dict, differs: list[str]) -> None:
    """Another token, word, prompt or end is named."""
    assert transcript_differs({**ANSWER, **change}, ANSWER) == differs
    assert transcript_differs(None, ANSWER) == ["line"]


def scored(total: float, tokens: int = 10) -> dict:
    """A likelihood line with one part."""
    return likelihood_line("a", "reply", {"reply_alone": (total, tokens)})


def test_a_log_probability_may_differ_by_a_rounding() -> None:
    """A thousandth of a nat for each token is a rounding, more is another number."""
    assert judged_differs(scored(-20.0), scored(-20.009)) == []
    assert judged_differs(scored(-20.0), scored(-20.011)) == ["reply_alone"]
    assert judged_differs(scored(-20.0), scored(-20.0, 11)) == ["reply_alone"]


def test_words_must_be_equal() -> None:
    """Another verdict, an attempt more, another reply or a line that one side lacks differ."""
    line = json_line("a", "reply", ["GRID: C"])
    assert judged_differs(line, json_line("a", "reply", ["GRID: C"])) == []
    assert judged_differs(line, json_line("a", "reply", ["GRID: C", "yes"])) == ["attempts"]
    assert judged_differs(line, json_line("a", "other", ["GRID: C"])) == ["reply_digest"]
    assert judged_differs(line, None) == ["line"]
    assert judged_differs(None, None) == []
    assert judged_differs(line, scored(-1.0)) == ["attempts", "parts"]


@pytest.mark.parametrize("spoilt", ["nan", "", None, 3])
def test_a_record_without_a_number_does_not_agree(spoilt: object) -> None:
    """What a stranger wrote in the place of a number is a difference and no crash."""
    line = scored(-20.0)
    line["parts"]["reply_alone"]["logprob_sum"] = spoilt
    assert judged_differs(line, scored(-20.0)) == ["reply_alone"]
