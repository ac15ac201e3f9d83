"""The page of ten questions: every command on it runs, and answers with the columns that it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ten-questions.md"
_STANDS_FOR = {
    "CHECKPOINT": "checkpoint.published",
    "RUN": "run.launched",
    "SOURCE": "source.ingested",
    "PLAN": "plan.prepared",
}
QUESTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def commands(text: str) -> list[str]:
    """The command lines in a piece of the page."""
    blocks = re.findall(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def words(line: str, world) -> list[str]:
    """A command's words after the program's name, ids in the place of what stands for them."""
    program, *rest = shlex.split(line)
    assert program == "evidence"
    found = []
    for word in rest:
        name, equals, value = word.rpartition("=")
        kind = _STANDS_FOR.get(value)
        found.append(word if kind is None else f"{name}{equals}{world.newest(kind).id}")
    return found


def test_there_are_ten_questions():
    """Ten headings, each a question with a command."""
    assert len(QUESTIONS) == 10
    for number, text in enumerate(QUESTIONS, 1):
        assert text.startswith(f"{number}. ")
        assert text.splitlines()[0].endswith("?")
        assert commands(text)


@pytest.mark.parametrize("text", QUESTIONS, ids=[item.split(".")[0] for item in QUESTIONS])
def test_a_question_is_answered_as_the_page_says(text, full, full_world):
    """Each command succeeds; a named question has the columns that stand under it, in their order."""
    for line in commands(text):
        called = full.json(*words(line, full_world))
        if line == "evidence verify":
            assert called.answer["command"] == "verify"
            continue
        assert called.code == 0, called.out
        if line.startswith("evidence query"):
            said = re.search(r"^Columns: (.*)\.$", text, flags=re.MULTILINE)
            assert said is not None
            assert called.result["columns"] == re.findall(r"`([a-z_]+)`", said.group(1))
            assert called.result["as_of"]["size"] == len(full_world.records)
