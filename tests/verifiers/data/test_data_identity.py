"""The levels at which two rows are the same."""

from __future__ import annotations

import pytest
from desk_world import CANCEL, chat_row, desk_case
from hypothesis import given
from hypothesis import strategies as st

from verifiers.data.identity import (
    content_digest,
    dataset_identity,
    masked,
    normalised,
    row_digest,
    row_text,
    words,
)

SAME_NORMALISED = [
    ("case", "Hello World", "hello WORLD"),
    ("white space", " Hello\t\n World ", "Hello World"),
    ("width", "\uff28ello\uff0c\u3000\uff37orld\uff01", "Hello, World!"),
    ("quotes", "it\u2019s \u201cfine\u201d", 'it\'s "fine"'),
    ("dashes", "a \u2013 b \u2014 c", "a - b - c"),
    ("composition", "caf\u00e9", "cafe\u0301"),
    ("ligatures", "\ufb01ne", "fine"),
    ("sharp s", "STRASSE", "stra\u00dfe"),
    ("nothing to see", "he\u200bllo", "hello"),
]
SAME_MASKED = [
    ("ids", "cancel order #W123 now", "cancel order #W999 now"),
    ("amounts", "refund 12.50 to me", "refund $7 to me"),
    ("addresses", "write to ann@example.com please", "write to bob@example.org please"),
    ("links", "see https://a.example/x ok", "see www.b.example ok"),
    ("punctuation", "stop, please!", "stop please"),
    ("digits of another script", "pay \u0661\u0662 now", "pay 3 now"),
    ("an id that is there or not", "cancel order 17 now", "cancel order now"),
]


@pytest.mark.parametrize(
    ("one", "other"), [c[1:] for c in SAME_NORMALISED], ids=[c[0] for c in SAME_NORMALISED]
)
def test_texts_that_are_normalised_alike(one, other):
    """Differences of form vanish when a text is normalised."""
    assert one != other
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"), [c[1:] for c in SAME_MASKED], ids=[c[0] for c in SAME_MASKED]
)
def test_texts_that_are_masked_alike(one, other):
    """Differences of ids and figures vanish when a normalised text is masked, and not before."""
    assert normalised(one) != normalised(other)
    assert masked(normalised(one)) == masked(normalised(other))


@pytest.mark.parametrize("other", ["cancel the orders", "cancel order", "order the cancel"])
def test_other_words_stay_other(other):
    """Masking keeps words and their order apart."""
    assert masked(normalised("cancel the order")) != masked(normalised(other))


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing(text):
    """A masked text is its own masked form."""
    once = masked(normalised(text))
    assert masked(once) == once
    assert words(once) == once.split()


def test_row_digests_do_not_depend_on_the_order_of_keys():
    """The digest is that of the value; the content digest leaves the id out."""
    one, other = chat_row("a"), dict(reversed(chat_row("a").items()))
    assert row_digest(one) == row_digest(other)
    assert row_digest(one) != row_digest(chat_row("b"))
    assert content_digest(one) == content_digest(chat_row("b"))
    assert dataset_identity(["x", "y"]) == dataset_identity(["y", "x"])


def test_a_row_as_text():
    """The input is what comes before the last turn, without instructions; the answer is the last turn."""
    text = row_text(chat_row(question="Why?", answer="So."))
    assert (text.input, text.answer) == ("user: Why?", "So.")


def test_a_case_compares_with_the_chat_row_of_the_same_decision():
    """A desk case has the text of a chat row that asks the same and answers with the expected call."""
    row = chat_row(question="Please.", answer=CANCEL.text())
    assert row_text(desk_case()) == row_text(row)


def test_tool_calls_are_part_of_the_text():
    """Two answers that differ in their tool call only are different answers."""
    texts = []
    for name in ("find", "list"):
        call = {"id": "c", "function": {"name": name, "arguments": {}}}
        turns = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
        texts.append(row_text({"messages": turns}))
    assert texts[0].input == texts[1].input
    assert texts[0].answer != texts[1].answer


def test_a_dialogue_case_is_its_question_and_reference():
    """The reference answer is a dialogue case's answer."""
    case = {"kind": "dialogue", "messages": [{"role": "user", "content": "x"}], "reference": "r"}
    assert (row_text(case).input, row_text(case).answer) == ("user: x", "r")


def test_masking_a_long_word_takes_no_longer_than_reading_it():
    """A word of a hundred thousand letters is masked at once: the walk over words is linear."""
    text = "a" * 100_000 + " order 42"
    assert masked(text) == "a" * 100_000 + " order"
