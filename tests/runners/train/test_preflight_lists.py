"""Rows that are cut or dropped are told apart, counted and named before a run (public reports 18 and 19)."""

from __future__ import annotations

import chat_templates as t
import pytest
from tiny import rows, write_rows

from ledger.errors import EvidenceError, UsageError
from runners.train.config import SftSettings
from runners.train.preflight import check_encoding, encode_rows, preflight
from runners.train.tokens import ChatRow, load_tokenizer

SHORT = [
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Hello there, dear customer."},
]
LONG_PROMPT = [{"role": "user", "content": "Cancel it. " * 60}, SHORT[1]]
TWO_ANSWERS = [
    *SHORT,
    {"role": "user", "content": "And?"},
    {"role": "assistant", "content": "Nothing. " * 40},
]


@pytest.fixture
def tokenizer(tiny_model):
    """The tiny model's tokenizer, whose template a test may change."""
    return load_tokenizer(tiny_model)


def reasons(tokenizer, *given, limit=64):
    """Reason by row, for a trainable row and those given."""
    made = [ChatRow("control", SHORT), *given]
    return {item.row: item.reason for item in encode_rows(tokenizer, made, limit).listed}


def test_losing_some_labels_is_not_losing_all(tokenizer):
    """A row that keeps an answer is read and listed; one that keeps none is dropped and listed; others are not listed."""
    found = reasons(tokenizer, ChatRow("some", TWO_ANSWERS), ChatRow("all", LONG_PROMPT))
    assert found == {"some": "labels_cut", "all": "no_label_left"}


def test_losing_no_label_is_told_apart(tokenizer):
    """What is cut behind the last answer is no label."""
    tokenizer.chat_template = t.MARKED.replace(
        "{% if add_generation_prompt", "{% if not add_generation_prompt %}{{ '<|endoftext|>' * 90 }}{% endif %}{% if add_generation_prompt"
    )  # fmt: skip
    assert reasons(tokenizer) == {"control": "truncated"}


def test_a_list_says_what_is_lost(tokenizer):
    """Tokens, labels and lost labels add up to those of the whole row."""
    whole = encode_rows(tokenizer, [ChatRow("some", TWO_ANSWERS, None, "t-1")], 4096)
    cut = encode_rows(tokenizer, [ChatRow("some", TWO_ANSWERS, None, "t-1")], 64)
    (item,) = cut.listed
    assert (item.name, item.tokens, item.labels) == (
        "t-1",
        len(whole.rows[0].ids),
        whole.rows[0].trainable,
    )
    assert item.labels - item.lost == cut.rows[0].trainable
    assert item.as_json()["id"] == "t-1"


def test_rows_that_a_template_cannot_render_are_dropped_by_reason(tokenizer):
    """One row that is rendered otherwise in the whole, one that is refused and one with tools unseen: three reasons."""
    tokenizer.chat_template = t.STRIPS_EARLIER_THOUGHT.replace(
        "{% for m in messages %}", "{% for m in messages %}{% if 'NEVER' in m['content'] %}{{ raise_exception('never') }}{% endif %}"
    )  # fmt: skip
    found = reasons(
        tokenizer,
        ChatRow("thought", t.THOUGHT_EARLY),
        ChatRow("refused", [{"role": "user", "content": "NEVER"}, SHORT[1]]),
        ChatRow("tools", SHORT, [t.TOOL]),
        limit=400,
    )
    assert found == {
        "thought": "template_not_prefix",
        "refused": "template_failed",
        "tools": "template_drops",
    }


def test_where_every_row_is_lost_the_run_is_refused_with_the_reasons(tokenizer):
    """The error counts the reasons, names the first row, and its hint mends the most frequent one."""
    tokenizer.chat_template = t.MARKED_NOWHERE
    given = [ChatRow(f"sha256:{number}", SHORT, None, f"row-{number}") for number in range(3)]
    with pytest.raises(UsageError, match=r"template_mask 3; the first, row-0: turn 1") as caught:
        encode_rows(tokenizer, given, 64)
    assert caught.value.code == "ROW_UNTRAINABLE"
    assert "markers" in caught.value.hint


@pytest.mark.parametrize(
    ("messages", "limit", "template"),
    [
        pytest.param(LONG_PROMPT, 64, t.CHATML, id="18: a prompt longer than the limit"),
        pytest.param(SHORT, 64, t.MARKED_NOWHERE, id="19: a mask of nothing"),
        pytest.param(SHORT, 64, t.MARKED_EVERYTHING, id="19: a mask of everything"),
        pytest.param(t.SEVERAL, 64, t.MARKED_LAST_ONLY, id="19: a mask of the last turn"),
    ],
)
def test_a_reported_pain_is_refused(tokenizer, messages, limit, template):
    """What trained on nothing, or on the customer's words, without a word said, does not start."""
    tokenizer.chat_template = template
    with pytest.raises(UsageError) as caught:
        encode_rows(tokenizer, [ChatRow("d", messages)], limit)
    assert caught.value.code == "ROW_UNTRAINABLE"


@pytest.mark.parametrize(
    ("messages", "limit", "template"),
    [
        pytest.param(LONG_PROMPT, 2048, t.CHATML, id="18: a limit that leaves the answer"),
        pytest.param(SHORT, 64, t.CHATML, id="19: no markers, spans found by prefix"),
        pytest.param(t.SEVERAL, 64, t.MARKED, id="19: markers around every turn"),
    ],
)
def test_a_reported_pain_corrected_is_trained_on(tokenizer, messages, limit, template):
    """The same rows with a limit or a template that fits: every answer is learned and nothing is listed."""
    tokenizer.chat_template = template
    found = encode_rows(tokenizer, [ChatRow("d", messages)], limit)
    assert found.rows[0].trainable > 0
    assert found.listed == ()
    said = tokenizer.decode([label for label in found.rows[0].labels if label >= 0])
    for message in messages:
        assert (message["content"] in said) == (message["role"] == "assistant")


def test_markers_that_leave_the_end_out_are_counted(tiny_model, tmp_path):
    """Such rows are trained on, and the figures say how many there are."""
    path = write_rows(tmp_path / "rows.jsonl", rows(3))
    template = tmp_path / "t.jinja"
    settings = SftSettings(steps=2, batch_size=2, max_length=400)
    for text, expected in ((t.MARKED_WITHOUT_END, 3), (t.MARKED, 0)):
        template.write_text(text)
        assert preflight(tiny_model, path, settings, template)["unended"] == expected


def test_the_encoding_has_a_digest(tokenizer):
    """Other labels under the same tokens are another encoding, which a run that planned on the first refuses."""
    tokenizer.chat_template = t.MARKED
    planned = encode_rows(tokenizer, [ChatRow("d", SHORT)], 64)
    check_encoding(planned, planned.digest)
    check_encoding(planned, None)
    tokenizer.chat_template = t.MARKED_WITHOUT_END
    other = encode_rows(tokenizer, [ChatRow("d", SHORT)], 64)
    assert other.rows[0].ids == planned.rows[0].ids
    with pytest.raises(EvidenceError) as caught:
        check_encoding(other, planned.digest)
    assert (caught.value.code, caught.value.expected) == ("ENCODING_DIFFERS", planned.digest)
