"""The page about campaigns names classes and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from campaigns import tamper_file, tamper_memory
from campaigns.registry import CAMPAIGNS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/campaigns/README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+)\. [^|]*\| ([^|]*) \|$", PAGE, re.MULTILINE)
TESTS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")}


def test_every_attack_has_its_row():
    """The thirty-five attacks are there, in order, each with a class, a test or the reason why there is none."""
    assert [int(number) for number, _ in ROWS] == list(range(1, 36))
    for _, cell in ROWS:
        assert re.search(r"`[^`]+`|not covered", cell)


def test_classes_named_are_tried():
    """Each class that the table names is one of the campaigns', `…` standing for any ending."""
    classes = [*tamper_memory.ATTACKS, *tamper_file.CHANGES]
    named = [name for _, cell in ROWS for name in re.findall(r"`([a-z ]+: [^`]*)`", cell)]
    assert len(named) > 30
    for name in named:
        begins = name.removesuffix("…").rstrip()
        assert [
            item for item in classes if item == name or (name != begins and item.startswith(begins))
        ], name


def test_tests_named_exist():
    """Each test that the table names is in the file it names, or in the one named before it."""
    for _, cell in ROWS:
        file = ""
        for name in re.findall(r"`(test_[a-z_0-9.:]+)`", cell):
            *files, last = name.split("::")
            if last in TESTS:
                continue  # a whole file
            file = files[0] if files else file
            assert f"def {last}(" in TESTS[file], name


def test_every_campaign_of_tampering_is_listed():
    """Both campaigns can be started by name."""
    assert {"tamper-memory", "tamper-file"} <= set(CAMPAIGNS)
    assert CAMPAIGNS["tamper-file"].load() is tamper_file.run
    assert CAMPAIGNS["tamper-memory"].load() is tamper_memory.run
