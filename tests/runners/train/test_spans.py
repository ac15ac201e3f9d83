"""Which tokens of a rendered row are the assistant's, and which rows a template cannot be trusted with."""

from __future__ import annotations

import chat_templates as t
import pytest

from ledger.errors import EvidenceError
from runners.train.rendering import Rendering
from runners.train.spans import locate
from runners.train.tokens import IGNORED, encode_row, load_tokenizer, prompt_ids

END = "<|im_end|>"


@pytest.fixture
def tokenizer(tiny_model):
    """The tiny model's tokenizer, whose template a test may change."""
    return load_tokenizer(tiny_model)


def learned(tokenizer, template, messages, tools=None):
    """The text of the labelled tokens, turn by turn."""
    tokenizer.chat_template = template
    row = encode_row(tokenizer, "d", messages, 4096, tools)
    parts, before = [], False
    for token, label in zip(row.ids, row.labels, strict=True):
        if label != IGNORED:
            parts = parts if before else [*parts, []]
            parts[-1].append(token)
        before = label != IGNORED
    return [tokenizer.decode(part) for part in parts]


CALL = '<call>{"name": "cancel_order", "arguments": {"order_id": "#W7", "reason": "a \\"gift\\""}}</call>'
SHORT_CALL = '<call>{"name": "cancel_order", "arguments": {"order_id": "#W7"}}</call>'
PARAMETERS = '{"name": "cancel_order", "parameters": {"order_id": "#W7", "reason": "a \\"gift\\""}}'
ONE, TWO = f"Which order?{END}", f"It is cancelled.{END}"


@pytest.mark.parametrize(
    ("template", "messages", "tools", "expected"),
    [
        pytest.param(t.CHATML, t.SEVERAL, None, [f"{ONE}\n", f"{TWO}\n"], id="appending"),
        pytest.param(t.CHATML_TOOLS, t.SEVERAL, None, [f"{ONE}\n", f"{TWO}\n"], id="tools unused"),
        pytest.param(
            t.CHATML_TOOLS, t.CALLING, [t.TOOL], [f"{CALL}{END}\n", f"{TWO}\n"], id="a call and its result",
        ),
        pytest.param(
            t.CHATML_TOOLS, t.TWO_CALLS, [t.TOOL],
            [
                f"{SHORT_CALL}{SHORT_CALL.replace('#W7', '#W8')}{END}\n",
                f"One is cancelled.{END}\n",
            ],
            id="two calls at once",
        ),
        pytest.param(t.HEADERS, t.SEVERAL, None, [ONE, TWO], id="headers"),
        pytest.param(t.HEADERS, t.CALLING, [t.TOOL], [f"{PARAMETERS}{END}", TWO], id="headers with tools"),
        pytest.param(t.ENDS_EVERY_RENDERING, t.SEVERAL, None, [f"{ONE}\n", f"{TWO}\n{END}"], id="an end of text behind every rendering"),
        pytest.param(t.MARKED, t.SEVERAL, None, [ONE, TWO], id="markers decide"),
        pytest.param(t.MARKED_WITHOUT_END, t.SEVERAL, None, ["Which order?", "It is cancelled."], id="markers without the end"),
        pytest.param(t.MARKED_WITH_OPENING, t.SEVERAL, None, [f"{ONE}\n", f"{TWO}\n"], id="markers that begin in the opening"),
        pytest.param(t.MARKED_LAST_ONLY, t.SIMPLE, None, [f"{ONE}\n"], id="one turn, and that is marked"),
        pytest.param(t.STRIPS_EARLIER_THOUGHT, t.THOUGHT, None, [f"{ONE}\n", f"<think>pending</think>{TWO}\n"], id="thought in the last turn"),
        pytest.param(t.STRIPS_EARLIER_THOUGHT, t.SEVERAL, None, [f"{ONE}\n", f"{TWO}\n"], id="no thought to strip"),
    ],
)  # fmt: skip
def test_what_is_learned(tokenizer, template, messages, tools, expected):
    """Every turn of the assistant with its calls and its end is learned, and nothing else."""
    assert learned(tokenizer, template, messages, tools) == expected


@pytest.mark.parametrize(
    ("template", "messages", "tools", "code"),
    [
        pytest.param(t.STRIPS_EARLIER_THOUGHT, t.THOUGHT_EARLY, None, "TEMPLATE_NOT_PREFIX", id="strips earlier thought"),
        pytest.param(t.DROPS_EARLIER_ANSWERS, t.SEVERAL, None, "TEMPLATE_NOT_PREFIX", id="drops earlier answers"),
        pytest.param(t.COUNTS_TURNS, t.SEVERAL, None, "TEMPLATE_NOT_PREFIX", id="counts the turns first"),
        pytest.param(t.COUNTS_AND_ENDS, t.SEVERAL, None, "TEMPLATE_NOT_PREFIX", id="counts the turns and ends every rendering"),
        pytest.param(t.OPENS_OTHERWISE, t.SEVERAL, None, "TEMPLATE_NOT_PREFIX", id="opens otherwise than it closes"),
        pytest.param(t.STRIPS_ALL_THOUGHT, t.THOUGHT, None, "TEMPLATE_DROPS", id="strips all thought"),
        pytest.param(t.LATE_USER, t.SIMPLE, None, "TEMPLATE_DROPS", id="shows the user after the opening"),
        pytest.param(t.OVERLOOKS_SYSTEM, t.SIMPLE, None, "TEMPLATE_DROPS", id="overlooks the system turn"),
        pytest.param(t.CHATML, t.SEVERAL, [t.TOOL], "TEMPLATE_DROPS", id="overlooks tools"),
        pytest.param(t.CHATML.replace("m['content']", "(m['content'] or '')"), t.CALLING, None, "TEMPLATE_DROPS", id="overlooks calls"),
        pytest.param(
            t.CHATML_TOOLS.replace("m.tool_calls or []", "(m.tool_calls or [])[:1]"), t.TWO_CALLS, [t.TOOL], "TEMPLATE_DROPS",
            id="shows the first call only",
        ),
        pytest.param(t.CHATML_TOOLS.replace("call.function.arguments}", "{}}"), t.CALLING, [t.TOOL], "TEMPLATE_DROPS", id="overlooks arguments"),
        pytest.param(t.CHATML, t.CALLING, None, "TEMPLATE_FAILED", id="no content to add"),
        pytest.param(t.NO_SYSTEM, t.SIMPLE, None, "TEMPLATE_FAILED", id="refuses a system turn"),
        pytest.param(t.HEADERS, t.TWO_CALLS, [t.TOOL], "TEMPLATE_FAILED", id="refuses two calls"),
        pytest.param("{% for m in messages %}", t.SIMPLE, None, "TEMPLATE_FAILED", id="no end of a loop"),
        pytest.param(t.MARKED_LAST_ONLY, t.SEVERAL, None, "TEMPLATE_MASK", id="marks the last turn only"),
        pytest.param(t.MARKED_NOWHERE, t.SIMPLE, None, "TEMPLATE_MASK", id="marks nothing"),
        pytest.param(t.MARKED_EVERYTHING, t.SIMPLE, None, "TEMPLATE_MASK", id="marks everything"),
        pytest.param(t.MARKED_BEGINNING, t.SIMPLE, None, "TEMPLATE_MASK", id="marks the beginning of a turn"),
        pytest.param(t.MARKED_LATE, t.SIMPLE, None, "TEMPLATE_MASK", id="marks the end of a turn"),
    ],
)  # fmt: skip
def test_what_is_refused(tokenizer, template, messages, tools, code):
    """Where it is not sure which tokens are the assistant's, or a part of the row is not shown, the row is refused."""
    with pytest.raises(EvidenceError) as caught:
        learned(tokenizer, template, messages, tools)
    assert caught.value.code == code


def test_a_template_says_why_it_refuses(tokenizer):
    """What a template raises stands in the message, shortened."""
    with pytest.raises(EvidenceError, match="'one call at a time'"):
        learned(tokenizer, t.HEADERS, t.TWO_CALLS, [t.TOOL])


def test_an_end_that_is_not_marked_is_noted(tokenizer):
    """Markers without the closing token give labels, and the row says that its end is not learned."""
    for template, unended in ((t.MARKED, False), (t.MARKED_WITHOUT_END, True), (t.CHATML, False)):
        tokenizer.chat_template = template
        assert locate(Rendering(tokenizer), t.SEVERAL).unended is unended


def test_a_name_in_the_text_is_no_tool(tokenizer):
    """A tool that only the system turn speaks of is not shown, though its name stands in the rendering."""
    spoken = [{"role": "system", "content": "Use cancel_order."}, *t.SIMPLE[1:]]
    with pytest.raises(EvidenceError) as caught:
        learned(tokenizer, t.CHATML, spoken, [t.TOOL])
    assert caught.value.code == "TEMPLATE_DROPS"


def test_tools_have_one_order_of_fields(tokenizer):
    """A ledger's rows have their fields sorted; the model sees tools in the order that templates are written for."""
    tokenizer.chat_template = t.CHATML_TOOLS
    function = t.TOOL["function"]
    sorted_tool = {"function": dict(sorted(function.items())), "type": "function"}
    shown = [
        Rendering(tokenizer, [tool]).text(t.SIMPLE, opened=True) for tool in (t.TOOL, sorted_tool)
    ]
    assert shown[0] == shown[1]
    assert '{"type": "function", "function": {"name": "cancel_order", "description"' in shown[0]


def test_a_prompt_with_tools_is_what_was_trained_on(tokenizer):
    """Before each answer stand exactly the tokens of the prompt that an evaluation with these turns and tools shows."""
    tokenizer.chat_template = t.CHATML_TOOLS
    row = encode_row(tokenizer, "d", t.CALLING, 4096, [t.TOOL])
    for turn, message in enumerate(t.CALLING):
        if message["role"] == "assistant":
            prompt = prompt_ids(tokenizer, t.CALLING[:turn], [t.TOOL])
            assert list(row.ids[: len(prompt)]) == prompt
            assert (row.labels[len(prompt) - 1], row.labels[len(prompt)]) == (
                IGNORED,
                row.ids[len(prompt)],
            )
