"""Rows for tuning beside conversations: preferences, feedback, texts; what they are, and since which parser."""

from __future__ import annotations

import json

import pytest

from ledger.errors import UsageError
from verifiers.data.grouping import group_rows
from verifiers.data.identity import first_request, row_bytes, row_text
from verifiers.data.leakage import audit
from verifiers.data.row_rules import Rules
from verifiers.data.rows import parse_rows
from verifiers.data.sources import in_memory, parse_sources
from verifiers.data.splits import Split, row_digest, split_by_list

ASKED = "Where is the parcel with my lamp?"
USER = {"role": "user", "content": ASKED}
GOOD = {"role": "assistant", "content": "It left our store this morning."}
BAD = {"role": "assistant", "content": "No idea."}
PAIR = {"kind": "preference", "prompt": [USER], "chosen": [GOOD], "rejected": [BAD]}
LIKED = {"kind": "feedback", "prompt": [USER], "completion": [GOOD], "label": True}
CHAT = {"messages": [USER, GOOD]}


def parsed(*rows, rules=None):
    """What the parser makes of some rows."""
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return parse_rows([data]) if rules is None else parse_rows([data], rules)


SHAPES = [
    pytest.param(
        {"prompt": ASKED, "chosen": GOOD["content"], "rejected": BAD["content"]}, PAIR, id="texts"
    ),
    pytest.param({"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]}, PAIR, id="turns"),
    pytest.param({"chosen": [USER, GOOD], "rejected": [USER, BAD]}, PAIR, id="conversations"),
    pytest.param(PAIR, PAIR, id="a preference"),
    pytest.param(
        {"prompt": ASKED, "completion": GOOD["content"], "label": True}, LIKED, id="liked"
    ),
    pytest.param(LIKED, LIKED, id="feedback"),
    pytest.param({"text": "A text."}, {"kind": "text", "text": "A text."}, id="a text"),
]


@pytest.mark.parametrize(("given", "row"), SHAPES)
def test_a_shape_becomes_the_row_of_its_kind(given, row):
    """Rows as other tools write them become one form, and that form stays as it is when it is read again."""
    (once,) = parsed(given).rows
    assert once == row
    assert row_bytes(parsed(once).rows[0]) == row_bytes(once)


REFUSED = [
    pytest.param(
        {"prompt": ASKED, "chosen": "Yes.", "rejected": "Yes."}, "same_answers", id="same"
    ),
    pytest.param({"chosen": "Yes.", "rejected": "No."}, "missing_field", id="no prompt"),
    pytest.param({"prompt": ASKED, "chosen": 7, "rejected": "No."}, "wrong_type", id="a number"),
    pytest.param({"prompt": ASKED, "chosen": "", "rejected": "No."}, "empty", id="no answer"),
    pytest.param({**PAIR, "prompt": [USER, GOOD]}, "wrong_end", id="a prompt with its answer"),
    pytest.param({**PAIR, "rejected": [USER]}, "turn_order", id="an answer by the user"),
    pytest.param({**PAIR, "rejected": []}, "wrong_end", id="no turn"),
    pytest.param({**PAIR, "score": 3}, "unknown_field", id="a column of nobody"),
    pytest.param({**PAIR, "split": "test"}, "held_out", id="held out"),
    pytest.param({**LIKED, "label": "yes"}, "wrong_type", id="a label in words"),
    pytest.param({**LIKED, "split": "test"}, "held_out", id="feedback held out"),
    pytest.param({"text": "  "}, "empty", id="an empty text"),
    pytest.param({"text": "a", "split": "test"}, "held_out", id="a text held out"),
]


@pytest.mark.parametrize(("given", "reason"), REFUSED)
def test_a_row_that_is_none_is_rejected_with_its_reason(given, reason):
    """What the library would train on without a word is named."""
    assert parsed(given).reasons == {reason: 1}


@pytest.mark.parametrize("given", [PAIR, LIKED, {"kind": "text", "text": "a"}, {"text": "a"}])
@pytest.mark.parametrize("rules", [Rules(tuning=False), Rules(first=True, tuning=False)])
def test_earlier_parsers_know_none_of_them(given, rules):
    """Data sets on record keep their rejects: rows/1 and rows/2 read none of these."""
    found = parsed(given, rules=rules)
    assert found.rows == []
    assert set(found.reasons) <= {"unknown_kind", "missing_field", "unknown_field"}


def test_what_earlier_parsers_say_of_an_unknown_kind_has_not_changed():
    """The message is part of the rejects on record."""
    (reject,) = parsed(PAIR, rules=Rules(tuning=False)).rejects
    assert reject.message.endswith("is none of chat, desk, dialogue, scenario")


def test_a_pair_reads_as_the_conversation_that_it_prefers():
    """Input, answer and first request are those of a chat row with the chosen answer."""
    for row in (PAIR, LIKED):
        assert row_text(row) == row_text(CHAT)
        assert first_request(row) == ASKED
    assert row_text({"kind": "text", "text": "A text."}).input == "A text."


def test_a_pair_shares_its_prompt_with_other_rows():
    """Grouped by request, a pair, feedback and a conversation on the same prompt have one role."""
    assert len(group_rows([PAIR, LIKED, CHAT], ["text:request"])) == 1


def test_a_held_out_prompt_is_found_among_pairs():
    """An audit sees the same question, whether its chosen answer is the same or another."""
    held_out = {"messages": [USER, BAD]}
    roles = {row_digest(PAIR): "train", row_digest(held_out): "test", row_digest(CHAT): "test"}
    found = audit([PAIR, held_out, CHAT], roles, [])
    assert (found.levels["exact"], found.levels["annotation"]) == (1, 1)


def test_a_split_gives_no_held_out_pair_to_training():
    """A pair that declares itself held out is refused by the split, as a conversation is."""
    rows = [{**PAIR, "split": "test"}, CHAT]
    roles = {row_digest(rows[0]): "train", row_digest(CHAT): "test"}
    with pytest.raises(UsageError) as refusal:
        split_by_list(rows, (), roles, needed=("train", "test"))
    assert refusal.value.code == "HELD_OUT_ROW"
    assert Split(roles, 2).roles == {"train": 1, "test": 1}


def test_files_are_parsed_as_their_parser_did():
    """The same bytes give other rows under the second version and the third."""
    file = in_memory("pairs.jsonl", json.dumps(PAIR).encode())
    assert len(parse_sources([file]).rows) == 1
    assert parse_sources([file], tuning=False).rows == []
