"""Every command of the quickstart is run, in order, and ends as the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_job import Person

from runners.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BRACKETS = re.compile(r"\[exit (\d+)\]")
MODEL = "--package smollm2"
NOT_RUN = {"sh"}  # what was installed before the page begins


@dataclass(frozen=True)
class Step:
    """A command with the exit code that the page gives it."""

    command: str
    code: int


def blocks() -> list[tuple[str, str, str]]:
    """Language, file name and text of every fenced block."""
    return [
        (match[1], match[2] or "", match[3]) for match in BLOCK.finditer(PAGE.read_text("utf-8"))
    ]


def steps(text: str) -> list[Step]:
    """The commands of a console block."""
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:], 0))
        else:
            brackets = BRACKETS.fullmatch(line)
            assert brackets is not None, line
            found[-1] = Step(found[-1].command, int(brackets[1]))
    return found


def run(command: str) -> int:
    """Run a command: ours in this process, any other by a shell."""
    if command.startswith("evidence "):
        return main(shlex.split(command)[1:])
    return subprocess.run(["bash", "-c", command], check=False).returncode


@pytest.mark.slow
def test_every_command_ends_as_the_page_says(tiny_model, tmp_path, monkeypatch, capfd):
    """A newcomer who types the page from top to bottom meets no surprise; only the model is a smaller one."""
    for name, value in Person(tmp_path / "home").environment().items():
        monkeypatch.setenv(name, value)
    for name in ("EVIDENCE_LEDGER", "EVIDENCE_KEY", "EVIDENCE_KEY_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    ran = 0
    for language, name, text in blocks():
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif language not in NOT_RUN:
            assert language == "console"
            for step in steps(text):
                code = run(step.command.replace(MODEL, str(tiny_model)))
                out, err = capfd.readouterr()
                assert code == step.code, f"{step.command}\n{out}\n{err}"
                ran += 1
    assert ran > 20


def test_the_page_names_the_model_that_the_test_replaces():
    """The one substitution stands in the page once, so nothing else is replaced."""
    assert PAGE.read_text("utf-8").count(MODEL) == 1
