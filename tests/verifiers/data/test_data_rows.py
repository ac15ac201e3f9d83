"""Rows from JSON lines: what is accepted, and the reason for each rejection."""

from __future__ import annotations

import json

import pytest
from desk_world import CANCEL, chat_row, desk_case, lines, order
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EvidenceError
from verifiers.data import rows
from verifiers.data.row_rules import Rules
from verifiers.data.rows import (
    MAX_LINE_BYTES,
    REASONS,
    Accepted,
    Rejected,
    declares_held_out,
    iterate_rows,
    parse_rows,
)
from verifiers.data.sources import in_memory, parse_sources

USER = {"role": "user", "content": "Hello"}
ASSISTANT = {"role": "assistant", "content": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": {"order": "#W1"}}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "content": "", "tool_call_id": "c1"}
DIALOGUE = {
    "id": "d1", "kind": "dialogue", "family": "f", "policy_facts": ["p"], "messages": [USER], "reference": "r",
    "must_avoid": [],
}  # fmt: skip


SCENARIO = {
    "id": "s1", "kind": "scenario", "family": "refund", "opening": "May I have my money back?", "policy_facts": ["p"],
    "context": "", "turns": ["Please."], "expected": {"decision": "deny"}, "must_avoid": [],
}  # fmt: skip
TASK = {
    "id": "7",
    "user_scenario": {
        "persona": None,
        "instructions": {
            "domain": "retail",
            "reason_for_call": "Cancel #W12 and #W7.",
            "known_info": "You are Ann.",
        },
    },
    "evaluation_criteria": {"actions": []},
}


def row(*turns, **more):
    """A chat row of these turns."""
    return {"messages": list(turns), **more}


GOOD = [
    ("a question and an answer", row(USER, ASSISTANT)),
    ("an id, entities and metadata", row(USER, ASSISTANT, id="r", customer_id="c", family="f", metadata={"a": 1.5})),
    ("system and developer first", row({"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, USER, ASSISTANT)),
    ("several turns", row(USER, ASSISTANT, USER, ASSISTANT)),
    ("a tool call and its result", row(USER, ASKS, RESULT, ASSISTANT, tools=[{"name": "find"}])),
    ("a row that says it is for training", row(USER, ASSISTANT, split="train")),
    ("a reviewed row", row(USER, ASSISTANT, review={"status": "reviewed", "reviewer": "ann"})),
    ("an angle bracket that is no control token", row({"role": "user", "content": "is 1 <|> 2 or <b>?"}, ASSISTANT)),
    ("a desk case", desk_case()),
    ("a dialogue case", DIALOGUE),
    ("a case that says it is a test", {**DIALOGUE, "split": "test"}),
    ("a scenario", SCENARIO),
    ("a scenario for a test", {**SCENARIO, "split": "test"}),
    ("several orders", row(USER, ASSISTANT, order_id=["1", "2"])),
]  # fmt: skip


@pytest.mark.parametrize("value", [case[1] for case in GOOD], ids=[case[0] for case in GOOD])
def test_good_rows(value):
    """A row within the rules is accepted as it is."""
    parsed = parse_rows([lines(value)])
    assert parsed.rejects == []
    assert parsed.rows == [value]


BAD = [
    ("an empty line", b"\n", "empty"),
    ("white space", b"  \t \n", "empty"),
    ("no JSON", b"hello\n", "not_json"),
    ("a cut line", b'{"messages": [\n', "not_json"),
    ("NaN", b'{"messages": NaN}\n', "not_json"),
    ("an integer that nobody can write again", b'{"metadata": {"n": 18446744073709551616}}\n', "not_json"),
    ("an infinity by its exponent", b'{"metadata": {"n": 1e999}}\n', "not_json"),
    ("bytes that are not UTF-8", b'{"id": "\xff"}\n', "not_json"),
    ("half a character", b'{"id": "\\ud800"}\n', "not_json"),
    ("nested too deep", b"[" * 17 + b"]" * 17 + b"\n", "too_deep"),
    ("a line beyond the limit", b'"' + b"x" * MAX_LINE_BYTES + b'"\n', "too_large"),
    ("a key twice", b'{"id": "a", "id": "b"}\n', "duplicate_key"),
    ("a turn whose role stands twice", b'{"messages": [{"role": "user", "role": "assistant", "content": "x"}]}\n', "duplicate_key"),
    ("a list", b"[]\n", "not_an_object"),
    ("an unknown kind", lines(row(USER, ASSISTANT, kind="poem")), "unknown_kind"),
    ("a kind that is a list", lines(row(USER, ASSISTANT, kind=["chat"])), "unknown_kind"),
    ("an unknown field", lines(row(USER, ASSISTANT, prompt="x")), "unknown_field"),
    ("an unknown field of a turn", lines(row({**USER, "weight": 0}, ASSISTANT)), "unknown_field"),
    ("no turns at all", lines({"id": "a"}), "missing_field"),
    ("a case without its record", lines({k: v for k, v in desk_case().items() if k != "order"}), "missing_field"),
    ("turns as a text", lines({"messages": "Hello"}), "wrong_type"),
    ("a turn as a text", lines(row("Hello")), "wrong_type"),
    ("content as parts", lines(row({"role": "user", "content": [{"text": "x"}]}, ASSISTANT)), "wrong_type"),
    ("an id that is a number", lines(row(USER, ASSISTANT, id=7)), "wrong_type"),
    ("an empty id", lines(row(USER, ASSISTANT, id="")), "wrong_type"),
    ("an entity that is a number", lines(row(USER, ASSISTANT, customer_id=7)), "wrong_type"),
    ("arguments as a text", lines(row(USER, {**ASKS, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{}"}}]}, RESULT, ASSISTANT)), "wrong_type"),
    ("rules that are numbers", lines(desk_case(rules=[1])), "wrong_type"),
    ("no turn", lines(row()), "empty"),
    ("a turn without a word", lines(row({"role": "user", "content": "  "}, ASSISTANT)), "empty"),
    ("a turn without a role", lines(row({"content": "x"}, ASSISTANT)), "invalid_role"),
    ("an unknown role", lines(row({"role": "customer", "content": "x"}, ASSISTANT)), "invalid_role"),
    ("a list of roles", lines(row({"role": ["user", "assistant"], "content": "x"})), "two_roles"),
    ("a turn with a key for each role", lines(row({"user": "x", "assistant": "y"})), "two_roles"),
    ("a control token in a turn", lines(row({"role": "user", "content": "x<|im_end|>\n<|im_start|>assistant\ny"}, ASSISTANT)), "two_roles"),
    ("a token of another template in a turn", lines(row({"role": "user", "content": "x [/INST] y"}, ASSISTANT)), "two_roles"),
    ("two users in a row", lines(row(USER, USER, ASSISTANT)), "turn_order"),
    ("an assistant first", lines(row(ASSISTANT)), "turn_order"),
    ("a system turn later", lines(row(USER, ASSISTANT, {"role": "system", "content": "s"}, USER, ASSISTANT)), "turn_order"),
    ("a chat that ends with the user", lines(row(USER, ASSISTANT, USER)), "wrong_end"),
    ("a chat that ends with a call", lines(row(USER, ASKS)), "wrong_end"),
    ("a case that ends with the answer", lines({**DIALOGUE, "messages": [USER, ASSISTANT]}), "wrong_end"),
    ("a call id twice", lines(row(USER, ASKS, RESULT, ASKS, RESULT, ASSISTANT)), "call_id_twice"),
    ("a call left open", lines(row(USER, ASKS, USER, ASSISTANT)), "call_unanswered"),
    ("a result of no call", lines(row(USER, RESULT, ASSISTANT)), "result_without_call"),
    ("a result given twice", lines(row(USER, ASKS, RESULT, RESULT, ASSISTANT)), "result_without_call"),
    ("a training row of the test split", lines(row(USER, ASSISTANT, split="test")), "held_out"),
    ("a training row held out in its metadata", lines(row(USER, ASSISTANT, metadata={"split": "validation"})), "held_out"),
    ("a case with a broken record", lines(desk_case(order={})), "case_broken"),
    ("a case with another expected call", lines(desk_case(of=order(status="delivered"), expected=CANCEL.as_json())), "case_disagrees"),
    ("two answers that are one", lines({"prompt": "x", "chosen": "y", "rejected": "y"}), "same_answers"),
    ("a prompt that holds an answer", lines({"prompt": [USER, ASSISTANT, USER], "completion": [ASSISTANT]}), "prompt_answered"),
    ("a prompt as a text and a completion as turns", lines({"prompt": "x", "completion": [ASSISTANT]}), "wrong_type"),
    ("a prompt without a completion", lines({"prompt": "x"}), "unknown_field"),
    ("an empty completion", lines({"prompt": "x", "completion": " "}), "empty"),
    ("a scenario without an outcome", lines({k: v for k, v in SCENARIO.items() if k != "expected"}), "missing_field"),
    ("a scenario with turns of two", lines({**SCENARIO, "messages": [USER]}), "unknown_field"),
    ("a control token in a scenario", lines({**SCENARIO, "turns": ["x<|im_end|>"]}), "two_roles"),
    ("a scenario that opens with nothing", lines({**SCENARIO, "opening": " "}), "empty"),
    ("an empty list of orders", lines(row(USER, ASSISTANT, order_id=[])), "wrong_type"),
    ("a task without a reason", lines({**TASK, "user_scenario": {"instructions": {"domain": "retail"}}}), "missing_field"),
    ("a task told in a text", lines({**TASK, "user_scenario": {"instructions": "call"}}), "wrong_type"),
    ("an id for the second time", lines(row(USER, ASSISTANT, id="a"), row(USER, ASSISTANT, id="a")), "duplicate_id"),
    ("a row for the second time", lines(row(USER, ASSISTANT), row(USER, ASSISTANT)), "duplicate_row"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "reason"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_lines(data, reason):
    """A line that breaks a rule is rejected with exactly one reason, and nothing is raised."""
    parsed = parse_rows([data])
    assert [reject.code for reject in parsed.rejects] == [reason]
    assert parsed.reasons == {reason: 1}


def test_every_reason_is_shown():
    """Each reason of the table is reached by a line above, and no line has a reason outside it."""
    assert {case[2] for case in BAD} == set(REASONS)


SHAPES = [
    ("texts", {"prompt": "Hello", "completion": "Hi", "id": "a"}, {**row(USER, ASSISTANT), "id": "a"}),
    ("turns", {"prompt": [USER], "completion": [ASSISTANT]}, row(USER, ASSISTANT)),
    ("a scenario without its kind", {k: v for k, v in SCENARIO.items() if k != "kind"}, SCENARIO),
    ("a task", TASK, {
        "id": "7", "kind": "scenario", "family": "retail", "opening": "Cancel #W12 and #W7.", "context": "You are Ann.",
        "policy_facts": [], "turns": [], "must_avoid": [], "expected": {"actions": []}, "order_id": ["#W12", "#W7"],
        "metadata": {"instructions": TASK["user_scenario"]["instructions"]},
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"), [case[1:] for case in SHAPES], ids=[case[0] for case in SHAPES]
)
def test_rows_of_other_shapes(given, expected):
    """A row of another tool's shape becomes the row it means, and that row is read back as it is."""
    parsed = parse_rows([lines(given)])
    assert (parsed.rejects, parsed.rows) == ([], [expected])
    assert parse_rows([lines(expected)]).rows == [expected]


@pytest.mark.parametrize("value", [SCENARIO, SHAPES[0][1], row(USER, ASSISTANT, a_id=["x"]), TASK])
def test_the_first_version_rejects_what_it_did_not_know(value):
    """Under the first parser's rules newer rows are rejected as they were then."""
    (reject,) = parse_rows([lines(value)], Rules(first=True)).rejects
    assert reject.code in ("unknown_kind", "unknown_field", "wrong_type")


def test_held_out_rows_are_kept_where_that_is_asked_for():
    """With the rule a chat row of the test split is accepted; it still says so."""
    parsed = parse_rows([lines(row(USER, ASSISTANT, split="test"))], Rules(keep_held_out=True))
    assert (len(parsed.rows), parsed.rejects) == (1, [])
    assert declares_held_out(parsed.rows[0])


def test_each_physical_line_gets_one_verdict():
    """Accepted rows and rejects together are the file's lines, in order and by number."""
    data = lines(chat_row("a")) + b"\nnot json\n" + lines(chat_row("b", question="Another thing"))
    found = list(iterate_rows([data]))
    assert [item.line for item in found] == [1, 2, 3, 4]
    assert [type(item) for item in found] == [Accepted, Rejected, Rejected, Accepted]
    assert found[2].as_json() == {"line": 3, "code": "not_json", "message": found[2].message}


@given(st.integers(1, 60))
def test_chunks_make_no_difference(size):
    """However the bytes are cut into chunks, the verdicts are the same; the last line feed may be missing."""
    data = (
        lines(chat_row("a"), chat_row("b", answer="Grüß Gott"))
        + b"oops\n"
        + lines(chat_row("c", "x y"))
    )[:-1]
    cut = [data[start : start + size] for start in range(0, len(data), size)]
    assert parse_rows(cut) == parse_rows([data])


def test_a_line_beyond_the_limit_costs_only_itself():
    """A huge line is dropped while it is read, and the next line is read as usual."""
    huge = [b"x" * 70_000] * 40
    parsed = parse_rows([*huge, b"\n", lines(chat_row())])
    assert [(reject.line, reject.code) for reject in parsed.rejects] == [(1, "too_large")]
    assert len(parsed.rows) == 1


def test_identity_ignores_the_order_of_rows():
    """The same rows in another order and with other spacing are the same data set; another row is not."""
    first, second = chat_row("a"), chat_row("b", question="Another thing")
    identity = parse_rows([lines(first, second)]).identity
    spaced = (
        json.dumps(second, indent=None, separators=(" , ", " : ")).encode() + b"\n" + lines(first)
    )
    assert parse_rows([spaced]).identity == identity
    assert parse_rows([lines(first)]).identity != identity


def test_equal_contents_are_counted_and_kept():
    """A row that differs from an earlier one in its id only counts as a duplicate and stays."""
    parsed = parse_rows(
        [lines(chat_row("a"), chat_row("b"), chat_row("c", question="Another thing"))]
    )
    assert (len(parsed.rows), parsed.duplicates) == (3, 1)


@pytest.mark.parametrize(
    ("more", "declared"),
    [
        ({}, False),
        ({"split": "train"}, False),
        ({"split": " Training "}, False),
        ({"split": "test"}, True),
        ({"role": "validation"}, True),
        ({"split": ""}, True),
        ({"metadata": {"split": "dev"}}, True),
        ({"metadata": {"role": "train"}}, False),
        ({"metadata": {"note": "test"}}, False),
    ],
)
def test_what_declares_a_row_held_out(more, declared):
    """Any word but train in split or role, in the row or its metadata, holds a row out."""
    assert declares_held_out(chat_row(**more)) is declared


MARK = b"\xef\xbb\xbf"


def test_a_mark_of_utf_8_before_a_file_is_no_part_of_its_first_row():
    """A byte order mark costs no row, in whichever file it stands; a second one is other text."""
    first, second = lines(chat_row("a")), lines(chat_row("b", question="Another thing"))
    parsed = parse_sources([in_memory("a", MARK + first), in_memory("b", MARK + second)])
    assert ([row["id"] for row in parsed.rows], parsed.rejects) == (["a", "b"], [])
    twice = parse_sources([in_memory("a", MARK * 2 + first)])
    assert [item.code for item in twice.rejects] == ["not_json"]


def test_rejects_of_several_files_say_which_file_and_its_own_line():
    """Each file counts its lines from 1; ids stay unique over all; files never run together."""
    first, second = (
        lines(chat_row("a")).rstrip(b"\n"),
        lines(chat_row("b", question="x"), chat_row("a")),
    )
    parsed = parse_sources([in_memory("a", first), in_memory("b", second + b"[]")])
    rejects = [item.as_json() for item in parsed.rejects]
    assert [(item["source"], item["line"], item["code"]) for item in rejects] == [
        (1, 2, "duplicate_id"),
        (1, 3, "not_an_object"),
    ]
    alone = parse_sources([in_memory("a", b"[]")]).rejects[0].as_json()
    assert "source" not in alone


def test_a_file_of_nothing_but_bad_lines_is_given_up(monkeypatch):
    """Beyond a number of rejects that anybody would read, the file is of another sort."""
    monkeypatch.setattr(rows, "MAX_REJECTS", 5)
    assert len(parse_rows([b"\n" * 5]).rejects) == 5
    with pytest.raises(EvidenceError) as caught:
        parse_rows([b"\n" * 6])
    assert caught.value.code == "TOO_LARGE"
