"""What a row of somebody's data set is on record, whatever the library put beside it."""

from __future__ import annotations

import pytest

from ledger.errors import UsageError
from runners.train.adopted_rows import POSITION, adopted_rows
from verifiers.data.identity import row_digest


class Tokens:
    """A tokenizer as far as it is asked."""

    eos_token = "<end>"

    def decode(self, ids, **_):
        """Ids as letters."""
        return "".join(chr(97 + item) for item in ids)


USER, ANSWER = {"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}
CHAT = {"messages": [USER, ANSWER]}
TOKENS = {"input_ids": [1, 2], "labels": [-100, 2], POSITION: 0}

SAME = [
    pytest.param({**CHAT, **TOKENS}, CHAT, id="tokens are left out"),
    pytest.param({**CHAT, "tools": None, "id": None}, CHAT, id="nulls of a table"),
    pytest.param(
        {"messages": [{**USER, "tool_calls": None}, ANSWER]}, CHAT, id="nulls within a turn"
    ),
    pytest.param({"prompt": "Where?", "completion": "Here.<end>"}, CHAT, id="an end token"),
    pytest.param(
        {**CHAT, "score": 3, "source": "a"},
        {**CHAT, "metadata": {"score": 3, "source": "a"}},
        id="columns of nobody",
    ),
    pytest.param({**CHAT, "id": 7}, {**CHAT, "metadata": {"id": 7}}, id="an id that is a number"),
    pytest.param({**CHAT, "customer_id": "ann"}, {**CHAT, "customer_id": "ann"}, id="an entity"),
    pytest.param(
        {**CHAT, "customer_id": 7}, {**CHAT, "metadata": {"customer_id": 7}}, id="a numbered entity"
    ),
    pytest.param({**CHAT, "tools": "[]"}, {**CHAT, "tools": []}, id="tools as text"),
    pytest.param(TOKENS, {"kind": "text", "text": "bc"}, id="tokens only"),
]


@pytest.mark.parametrize(("given", "row"), SAME)
def test_a_row_is_what_the_user_gave(given, row):
    """The library's columns and a table's nulls are no part of it; what no row has goes to its metadata."""
    found = adopted_rows([given], Tokens())
    assert found.digests == (row_digest(row),)
    assert found.decoded is (row.get("kind") == "text")


def test_a_prompt_that_was_put_before_both_answers_is_taken_off():
    """The reward trainer joins prompt and answer in the columns it was given."""
    pair = {"prompt": [USER], "chosen": [ANSWER], "rejected": [{**ANSWER, "content": "No."}]}
    joined = {**pair, "chosen": [USER, *pair["chosen"]], "rejected": [USER, *pair["rejected"]]}
    for given in (pair, joined):
        found = adopted_rows([given], Tokens(), joined=True)
        assert found.digests == (row_digest({**pair, "kind": "preference"}),)


def test_equal_rows_share_a_name():
    """A data set may repeat a row: both places have the same digest."""
    found = adopted_rows([CHAT, CHAT], Tokens())
    assert found.digests[0] == found.digests[1]
    assert found.jsonl().count(b"\n") == 2


REFUSED = [
    pytest.param({"question": "Where?"}, "ADOPTION_REFUSED", "its columns question", id="no row"),
    pytest.param({**CHAT, "size": {1j}}, "ADOPTION_REFUSED", "no JSON", id="no JSON"),
    pytest.param({"messages": [USER]}, "ADOPTION_REFUSED", "wrong_end", id="no answer"),
    pytest.param({**CHAT, "split": "dev"}, "HELD_OUT_ROW", "held out", id="held out"),
    pytest.param(
        {**CHAT, "metadata": {"split": "dev"}}, "HELD_OUT_ROW", "held out", id="in its metadata"
    ),
]


@pytest.mark.parametrize(("given", "code", "words"), REFUSED)
def test_a_row_that_cannot_go_on_record_is_named(given, code, words):
    """The error has the row's place and the reason."""
    with pytest.raises(UsageError) as refusal:
        adopted_rows([CHAT, given], Tokens())
    assert refusal.value.code == code
    assert refusal.value.field == "train_dataset[1]"
    assert words in refusal.value.message


def test_rows_for_evaluation_may_say_that_they_are():
    """Held-out rows are read as such where they are not for training."""
    assert len(adopted_rows([{**CHAT, "split": "dev"}], Tokens(), keep_held_out=True).digests) == 1
