"""The scripts that we show do what is said of them: those of the examples, and that of the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_job import QUESTIONS, WORDINGS, Person, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.train]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/own-script.md"
BLOCK = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"^(?:from runners|.*LedgerCallback|ledger = )", re.MULTILINE)


def chat(asked: str, told: str) -> dict[str, object]:
    """A row with one question and its answer."""
    return {
        "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]
    }


def pair(asked: str) -> dict[str, object]:
    """A row with a better and a worse answer, as plain texts."""
    return {"prompt": asked, "chosen": "We see to it.", "rejected": "No."}


ROWS = {"sft": [chat(text, "We see to it.") for text in WORDINGS], "dpo": [*map(pair, WORDINGS)]}


@pytest.fixture
def writer(tmp_path, monkeypatch) -> Person:
    """Somebody with a new ledger, in a folder of their own."""
    person = Person(tmp_path)
    for name in ("EVIDENCE_KEY", "EVIDENCE_KEY_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in person.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return person


def runs(person: Person, *words: object) -> str:
    """Run a script as the person would; what it printed."""
    environment = {**person.environment(), "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False,
        cwd=person.folder, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("method", sorted(ROWS))
def test_an_example_puts_its_run_on_record(writer, tiny_model, method):
    """The script trains, prints its run, and the ledger verifies with its blobs; the plan names the script's digest."""
    writer.gets("init", writer.ledger, "--origin", "example.com/own")
    rows = write_lines(writer.folder / "rows.jsonl", ROWS[method])
    held_out = write_lines(writer.folder / "apart.jsonl", [chat(q, "Soon.") for q in QUESTIONS])
    script = ROOT / f"examples/own_script_{method}.py"
    said = runs(writer, script, tiny_model, rows, held_out, writer.ledger)
    assert "completed" in said
    verdict = writer.verify().result
    assert verdict["verdict"] == "verified"
    with writer.opens() as ledger:
        (plan,) = ledger.of_kind("plan.prepared")
        assert plan.body["method"] == method
        assert "script" in plan.body["code"]
        assert len(ledger.of_kind("update.acknowledged")) == 4
        assert len(ledger.of_kind("checkpoint.published")) == 2


def test_the_page_runs_as_it_says(writer, tiny_model, monkeypatch):
    """Files are saved, commands are typed in order, and each ends well."""
    monkeypatch.delenv("EVIDENCE_LEDGER")
    commands = []
    for language, name, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if name:
            (writer.folder / name).write_text(text, encoding="utf-8")
        if language == "console":
            commands += [line[2:] for line in text.splitlines()]
    assert len(commands) == 8
    for command in commands:
        words = command.replace("MODEL", str(tiny_model)).split()
        if words[0] == "python":
            runs(writer, *words[1:])
        else:
            answer = writer.types(*words[1:])
            assert answer.code == 0, json.dumps(answer.object)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("own_script_*.py")))
def test_three_lines_of_a_script_are_ours(path):
    """An import and an adoption; the rest is what the script was before, but for the line that prints."""
    assert len(OURS.findall(path.read_text(encoding="utf-8"))) <= 3
