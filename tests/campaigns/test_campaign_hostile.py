"""The campaign of crafted files: its slice holds, and a careless program is caught by each of its rules."""

from __future__ import annotations

import sys

import pytest
from campaigns import hostile, hostile_child
from campaigns.hostile_child import Attack, Ended
from campaigns.hostile_place import Kept, Place
from campaigns.report import Settings


def settings(folder, **changes):
    """How the tests run the campaign."""
    plain = {"seed": 1, "full": False, "folder": folder, "workers": 2, "progress": lambda *_: None}
    return Settings(**{**plain, **changes})


@pytest.mark.slow
def test_slice_holds_and_reaches_every_group_of_attacks(tmp_path):
    """The slice finds nothing, its unspoilt controls go through, and each group of attacks was tried."""
    outcome = hostile.run(settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == hostile.SLICE_CASES
    tried = {name.split()[0] for name in outcome.counts if not name.startswith("control")}
    assert tried == set(hostile.GROUPS)
    assert {f"control {name}: acceptable" for name in hostile.CONTROLS} <= set(outcome.counts)


@pytest.mark.slow
def test_a_program_that_takes_everything_is_caught(tmp_path, monkeypatch):
    """A program that accepts whatever it is given makes the campaign fail."""
    real = hostile.Base

    def base(folder):
        made = real(folder)
        monkeypatch.setattr(hostile_child, "PROGRAM", (sys.executable, "-c", ""))
        return made

    monkeypatch.setattr(hostile, "Base", base)
    case = hostile.names().index(("models", "unpickled"))
    outcome = hostile.run(settings(tmp_path, case=case))
    assert [item for item in outcome.failures if "hostile input was accepted" in item]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("raise ValueError(1)", "a traceback"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import sys; sys.exit('error: one\\nerror: two')", "2 errors instead of one"),
        ("import sys; sys.exit('error: error: x')", "the word error stands twice"),
        ("import sys; sys.exit(2)", "0 errors instead of one"),
        ("import sys; print('\\x1b[2J'); sys.exit('error: x')", "raw characters on stdout"),
        ("import sys; sys.exit('error: \\u202ex')", "raw characters on stderr"),
        (
            "import sys; sys.stdout.buffer.write(b'\\xff'); sys.exit('error: x')",
            "stdout is no UTF-8",
        ),
        ("import sys; sys.exit('error: ' + 'x' * 100_000)", "bytes on stderr"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9"),
        ("bytearray(4 << 30)", "a traceback"),
        ("import sys; sys.exit('error: out of memory')", "the bound on memory"),
    ],
)
def test_each_rule_of_the_output_is_kept_up(script, found, tmp_path, monkeypatch):
    """A process that breaks one rule of exit code, error or output is told apart by that rule."""
    monkeypatch.setattr(hostile_child, "PROGRAM", (sys.executable, "-c", script))
    attack = Attack(())
    problems = hostile_child.problems(attack, hostile_child.call(attack, tmp_path))
    assert any(found in item for item in problems), problems


def test_a_clear_error_is_no_problem(tmp_path, monkeypatch):
    """One line that begins with `error:` and exit code 1 or 2 is what the rules ask for."""
    script = "import sys; print('error: no [USAGE]', file=sys.stderr); sys.exit(2)"
    monkeypatch.setattr(hostile_child, "PROGRAM", (sys.executable, "-c", script))
    attack = Attack(())
    assert hostile_child.problems(attack, hostile_child.call(attack, tmp_path)) == []


def test_what_is_written_outside_or_left_half_written_is_found(tmp_path):
    """A file that appears outside, and a temporary one that stays, are both named."""
    place = Place(tmp_path)
    for folder in ("outside", "tmp", "ledger/blobs", "home"):
        (tmp_path / folder).mkdir(parents=True)
    attack = Attack(())
    kept = Kept.of(place, attack)
    refused = Ended(2, b"", b"")
    assert kept.problems(place, refused, attack) == []
    (place.outside / "new").write_bytes(b"x")
    (place.ledger / "blobs/.new-1").write_bytes(b"x")
    assert kept.problems(place, refused, attack) == [
        "outside was changed",
        "left half-written: .new-1",
    ]
