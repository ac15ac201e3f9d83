"""A chat template before it runs: what of its text is refused, and what day it is told."""

from __future__ import annotations

from datetime import date

import chat_templates as t
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from ledger.errors import EvidenceError, UsageError
from runners.train.template_clock import with_clock
from runners.train.templates import (
    MAX_TEMPLATE_BYTES,
    in_effect,
    model_template,
    read_template,
    template_text,
)

BLOCKS = Environment(trim_blocks=True, lstrip_blocks=True)  # as the library has them


@pytest.mark.parametrize(
    "text", [t.CHATML, t.CHATML_TOOLS, t.HEADERS, t.MARKED, "{{ m.random }}", "lipsum"]
)
def test_a_plain_template_stays_as_it_is(text):
    """What neither asks for the date nor draws at random is used as written, with or without a day."""
    assert in_effect(text) == in_effect(text, "2026-03-01") == text


@pytest.mark.parametrize(
    "text",
    ["{{ [1, 2] | random }}", "{{ lipsum(1) }}", "{{ [[1], [2]] | map('random') }}", '{{ x|map("random") }}'],
)  # fmt: skip
def test_a_template_that_draws_at_random_is_refused(text):
    """The same row would be another one the next time."""
    with pytest.raises(EvidenceError) as caught:
        in_effect(text, "2026-03-01")
    assert caught.value.code == "TEMPLATE_UNSTABLE"


def test_a_template_that_asks_for_the_date_needs_a_day():
    """Without a day it is refused, with the setting that mends it; with one it renders that day, today or not."""
    with pytest.raises(UsageError) as caught:
        in_effect(t.DATED)
    assert (caught.value.code, caught.value.field) == ("TEMPLATE_UNSTABLE", "template_date")
    assert 'template_date = "' in caught.value.hint
    shown = BLOCKS.from_string(in_effect(t.DATED, "2024-07-06")).render(messages=[])
    assert shown == "Today: 06 Jul 2024\n"


FORMATS = [
    "%d %b %Y",
    "%Y-%m-%d",
    "%A, %B %-d, %Y",
    "%a %d/%m/%y",
    "%j %U %W %u %w %G %V",
    "%H:%M:%S %p %I",
    "%F %D",
]


@settings(max_examples=40)
@given(st.dates(date(1990, 1, 1), date(2099, 12, 31)), st.sampled_from(FORMATS))
def test_the_day_is_written_as_the_library_writes_it(day, form):
    """Every directive gives what `strftime` gives for midnight of that day."""
    text = "{{ strftime_now('" + form + "') }}"
    assert BLOCKS.from_string(with_clock(text, day)).render() == day.strftime(form)


@pytest.mark.parametrize(
    "text",
    ["\n  {% if true %}\n x\n  {% endif %}", "  {% if true %}a{% endif %}", "plain", "\n\nb"],
)
def test_the_line_of_the_day_adds_nothing(text):
    """What a template renders is the same with the line before it, white space at its beginning included."""
    expected = BLOCKS.from_string(text).render()
    assert BLOCKS.from_string(with_clock(text, date(2026, 3, 1))).render() == expected


def test_a_macro_of_the_template_is_told_the_day_too():
    """A question for the date inside a macro is answered like one outside."""
    text = "{% macro head() %}{{ strftime_now('%Y') }}{% endmacro %}{{ head() }}"
    assert BLOCKS.from_string(in_effect(text, "2031-01-02")).render() == "2031"


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"\xff\xfe", "UTF-8"), (b"x" * (MAX_TEMPLATE_BYTES + 1), "bytes")],
    ids=["not UTF-8", "too large"],
)
def test_bytes_that_are_no_template(data, word):
    """What cannot be text, or is larger than any template, is refused before anything reads it."""
    with pytest.raises(EvidenceError, match=word) as caught:
        template_text(data)
    assert caught.value.code == "TEMPLATE_INVALID"


def test_a_text_that_cannot_be_read_names_its_line():
    """What is no template's language is refused with the line."""
    with pytest.raises(EvidenceError, match="line 2") as caught:
        in_effect("\n{{ 'open }}")
    assert caught.value.code == "TEMPLATE_INVALID"


def test_a_template_file_that_is_not_there(tmp_path):
    """The path is named, and the setting that names it."""
    with pytest.raises(UsageError, match=r"absent\.jinja") as caught:
        read_template(tmp_path / "absent.jinja")
    assert (caught.value.code, caught.value.field) == ("INPUT_MISSING", "chat_template")


def test_a_link_is_no_template_file(tmp_path):
    """A link could lead to anything on the machine."""
    (tmp_path / "a.jinja").symlink_to("/etc/hostname")
    with pytest.raises(EvidenceError) as caught:
        read_template(tmp_path / "a.jinja")
    assert caught.value.code == "UNSAFE_PATH"


@pytest.mark.parametrize(
    ("config", "expected"),
    [('{"chat_template": "{{ 1 }}"}', "{{ 1 }}"), ("{}", None), ('{"chat_template": [{"name": "a", "template": "b"}]}', None)],
    ids=["one", "none", "several"],
)  # fmt: skip
def test_a_model_needs_one_template_of_its_own(tmp_path, config, expected):
    """One template in the tokenizer's configuration is the model's; none, or several, is an error that says how to give one."""
    (tmp_path / "tokenizer_config.json").write_text(config)
    if expected is not None:
        assert model_template(tmp_path, "m") == expected
        return
    with pytest.raises(UsageError) as caught:
        model_template(tmp_path, "m")
    assert (caught.value.code, caught.value.field) == ("TEMPLATE_MISSING", "chat_template")
    assert "chat_template = FILE" in caught.value.hint
