"""Reading a model's text as one tool call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EvidenceError
from verifiers.rewards.desk_calls import TOOLS, Call, NoCall, call, parse_call, read_call

CANCEL = '{"tool":"cancel","reason":"no longer needed"}'

NO_CALLS = [
    ("prose that claims an action", "I have cancelled your order.", "not_json"),
    ("prose before the call", f"Sure! {CANCEL}", "not_json"),
    ("prose after the call", f"{CANCEL} Done.", "not_json"),
    ("two calls", f"{CANCEL}\n{CANCEL}", "not_json"),
    ("cut off", CANCEL[:-2], "not_json"),
    ("nothing", "", "not_json"),
    ("NaN", '{"tool":"cancel","reason":NaN}', "not_json"),
    ("one key twice", '{"tool":"refuse","tool":"cancel","reason":"no longer needed"}', "not_json"),
    ("nested too deep", '{"tool":[[[[1]]]]}', "not_json"),
    ("a list", f"[{CANCEL}]", "not_an_object"),
    ("a string", '"cancel"', "not_an_object"),
    ("a number", "7", "not_an_object"),
    ("no tool", '{"reason":"no longer needed"}', "unknown_tool"),
    ("another tool", '{"tool":"delete"}', "unknown_tool"),
    ("a tool that is a list", '{"tool":["cancel"]}', "unknown_tool"),
    ("an argument missing", '{"tool":"cancel"}', "wrong_arguments"),
    ("an argument too many", '{"tool":"transfer","to":"you"}', "wrong_arguments"),
    ("an argument of another tool", '{"tool":"cancel","method":"paypal"}', "wrong_arguments"),
    ("a number as argument", '{"tool":"cancel","reason":1}', "wrong_arguments"),
    ("an empty argument", '{"tool":"cancel","reason":""}', "wrong_arguments"),
    ("a long argument", '{"tool":"cancel","reason":"' + "x" * 201 + '"}', "wrong_arguments"),
    ("a very long text", " " * 2001, "too_long"),
]


@pytest.mark.parametrize(
    ("text", "reason"), [case[1:] for case in NO_CALLS], ids=[c[0] for c in NO_CALLS]
)
def test_what_is_no_call(text, reason):
    """A text that is not exactly one well-formed call is no call, and the reason is named."""
    assert parse_call(text) == NoCall(reason)


def test_half_a_character_is_no_call():
    """Half a character is refused as an escape, and is no reason of the policy's as it is."""
    assert parse_call('{"tool":"cancel","reason":"\\ud800"}') == NoCall("not_json")
    assert parse_call('{"tool":"cancel","reason":"\ud800"}') == call("cancel", reason="?")


@pytest.mark.parametrize(
    "text",
    [
        CANCEL,
        f"  {CANCEL}\n",
        f"```json\n{CANCEL}\n```",
        f"```\n{CANCEL}\n```",
        '{ "reason" : "no longer needed", "tool" : "cancel" }',
    ],
    ids=["plain", "white space", "json fence", "bare fence", "other order"],
)
def test_forms_of_one_call(text):
    """White space, order of keys and one fence make no difference to a call."""
    assert parse_call(text) == call("cancel", reason="no longer needed")


@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_a_call_survives_its_own_text(tool, data):
    """What a call writes is read back as the same call."""
    words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
    made = call(tool, **{name: data.draw(words) for name in TOOLS[tool]})
    assert parse_call(made.text()) == made
    assert read_call(made.as_json()) == made


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text):
    """No text makes the parser raise."""
    assert isinstance(parse_call(text), Call | NoCall)


def test_deep_brackets_raise_nothing():
    """Brackets up to the length limit are refused without a recursion error."""
    assert parse_call("[" * 2000) == NoCall("not_json")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"tool": "cancel"},
        {"tool": "x", "arguments": {}},
        {"tool": "cancel", "arguments": []},
    ],
    ids=["none", "empty", "no arguments", "no such tool", "arguments as a list"],
)
def test_a_broken_call_in_a_case(value):
    """A case's call that is none is CASE_BROKEN."""
    with pytest.raises(EvidenceError) as caught:
        read_call(value)
    assert caught.value.code == "CASE_BROKEN"
