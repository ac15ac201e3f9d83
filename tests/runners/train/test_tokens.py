"""Rows to tokens and labels, and the order in which steps read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import SYSTEM, rows, write_lines, write_rows

from ledger.errors import EvidenceError, UsageError
from runners.train.config import SftSettings
from runners.train.order import micro_batches
from runners.train.preflight import encode_rows, preflight, read_rows
from runners.train.tokens import IGNORED, EncodedRow, encode_row, load_tokenizer, prompt_ids

SEVERAL_TURNS = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "Cancel it."},
    {"role": "assistant", "content": "Which order?"},
    {"role": "user", "content": "Order: 2 items."},
    {"role": "assistant", "content": '{"tool":"cancel"}'},
]


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    """The tiny model's tokenizer."""
    return load_tokenizer(tiny_model)


def learned(tokenizer, row):
    """The text of the labelled tokens."""
    return tokenizer.decode([label for label in row.labels if label != IGNORED])


def test_every_assistant_turn_and_nothing_else_is_learned(tokenizer):
    """The labels are the words of all assistant turns with their end-of-turn tokens."""
    row = encode_row(tokenizer, "d", SEVERAL_TURNS, 512)
    assert learned(tokenizer, row) == 'Which order?<|im_end|>\n{"tool":"cancel"}<|im_end|>\n'
    assert len(row.ids) == len(row.labels)
    assert not row.truncated


def test_the_prompt_is_what_evaluation_shows(tokenizer):
    """The tokens before the first label are exactly the prompt that a case with these turns gets."""
    messages = rows(1)[0]["messages"]
    row = encode_row(tokenizer, "d", messages, 512)
    first = next(index for index, label in enumerate(row.labels) if label != IGNORED)
    assert list(row.ids[:first]) == prompt_ids(tokenizer, messages[:-1])


def test_ids_are_those_of_the_library(tokenizer):
    """The ids are the ones that the library's own chat rendering gives."""
    row = encode_row(tokenizer, "d", SEVERAL_TURNS, 512)
    assert list(row.ids) == tokenizer.apply_chat_template(
        SEVERAL_TURNS, tokenize=True, return_dict=False
    )


@pytest.mark.parametrize("limit", [8, 40, 60])
def test_truncation_cuts_ids_and_labels_alike(tokenizer, limit):
    """A row beyond the limit keeps its opening, says so, and counts only what is left."""
    whole = encode_row(tokenizer, "d", SEVERAL_TURNS, 512)
    cut = encode_row(tokenizer, "d", SEVERAL_TURNS, limit)
    assert cut.truncated
    assert (cut.ids, cut.labels) == (whole.ids[:limit], whole.labels[:limit])
    assert cut.trainable == sum(label != IGNORED for label in whole.labels[1:limit])


@pytest.mark.parametrize(
    "template",
    [
        pytest.param(
            "{% for m in messages %}{% if m['role'] != 'assistant' or loop.last %}{{ m['role'] + m['content'] }}{% endif %}{% endfor %}",
            id="drops earlier answers",
        ),
        pytest.param(
            "{{ messages | length }}{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}",
            id="counts the turns first",
        ),
        pytest.param(
            "{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}{% if add_generation_prompt %}ready{% endif %}",
            id="opens a turn otherwise than it closes one",
        ),
    ],
)
def test_templates_that_do_not_append_are_refused(tiny_model, template):
    """Where a turn is rendered differently in the whole, no span is guessed."""
    other = load_tokenizer(tiny_model)
    other.chat_template = template
    with pytest.raises(EvidenceError) as caught:
        encode_row(other, "d", SEVERAL_TURNS, 512)
    assert caught.value.code == "TEMPLATE_NOT_PREFIX"


def test_preflight_counts_rows(tiny_model, tmp_path):
    """Preflight says how many rows are cut, how many lose every answer and how much is left."""
    made = rows(4)
    made[0]["messages"][1]["content"] = "Cancel it. " * 100
    path = write_rows(tmp_path / "rows.jsonl", made)
    found = preflight(tiny_model, path, SftSettings(steps=3, batch_size=2, max_length=150))
    assert found["rows"] == {"input": 4, "effective": 3, "truncated": 0, "dropped": 1}
    first = json.loads(path.read_text().splitlines()[0])
    (listed,) = found["listed"]
    assert (listed["row"], listed["reason"]) == (first["row"], "no_label_left")
    assert (found["datums"], found["epochs"]) == (6, "2.00")
    assert found["tokens"]["longest"] <= 150
    assert 0 < found["tokens"]["trainable"] < found["tokens"]["total"]


def test_no_trainable_row_is_refused(tokenizer):
    """A run in which the loss would count nothing is refused before it starts."""
    plain = [("d", row["messages"]) for row in rows(3)]
    with pytest.raises(UsageError) as caught:
        encode_rows(tokenizer, plain, 8)
    assert caught.value.code == "ROW_UNTRAINABLE"


@pytest.mark.parametrize(
    "value",
    [{"messages": []}, {"messages": "hello"}, {"messages": [{"role": "user"}]}, {"text": "x"}],
    ids=["no turn", "no list", "no content", "no messages"],
)
def test_lines_that_are_no_rows(tmp_path, value):
    """A line without turns is refused with its number."""
    path = write_lines(tmp_path / "rows.jsonl", [rows(1)[0], value])
    with pytest.raises(EvidenceError, match="line 2"):
        read_rows(path)


def fake(digest, group="g", length=4):
    """An encoded row whose content does not matter."""
    return EncodedRow(str(digest), tuple(range(length)), (IGNORED, *range(1, length)), group, False)


ROWS = st.lists(st.sampled_from("abc"), min_size=1, max_size=30).map(
    lambda groups: [fake(index, group) for index, group in enumerate(groups)]
)


@given(
    ROWS,
    st.integers(1, 6),
    st.sampled_from(["random", "grouped"]),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_each_row_once_an_epoch(made, batch, order, block, seed):
    """Batches are full, and every row is read once before any is read again."""
    steps = 3 * len(made)
    settings = SftSettings(steps=steps, batch_size=batch, order=order, block_rows=block, seed=seed)
    batches = micro_batches(made, settings)
    assert [len(each) for each in batches] == [batch] * steps
    read = [position for each in batches for position in each]
    for start in range(0, len(read) - len(made) + 1, len(made)):
        assert sorted(read[start : start + len(made)]) == list(range(len(made)))


@given(ROWS, st.sampled_from(["random", "grouped"]))
def test_order_is_a_function_of_the_seed(made, order):
    """The same seed gives the same batches; where there is a choice, another seed gives others."""
    settings = {"steps": 5, "batch_size": 4, "order": order}
    first = micro_batches(made, SftSettings(**settings, seed=1))
    assert first == micro_batches(made, SftSettings(**settings, seed=1))
    others = [micro_batches(made, SftSettings(**settings, seed=seed)) for seed in range(2, 12)]
    assert len(made) < 3 or any(other != first for other in others)


def test_blocks_share_their_opening():
    """With groups that fill their blocks, every block of every batch is of one group."""
    made = [fake(f"{group}{number}", group) for group in "abc" for number in range(8)]
    settings = SftSettings(steps=6, batch_size=8, order="grouped", block_rows=4)
    for batch in micro_batches(made, settings):
        assert len({made[position].group for position in batch[:4]}) == 1
        assert len({made[position].group for position in batch[4:]}) == 1


def test_no_row_no_run():
    """Without a row there is no order, and the error says so."""
    with pytest.raises(UsageError) as caught:
        micro_batches([], SftSettings())
    assert caught.value.code == "ROW_UNTRAINABLE"
