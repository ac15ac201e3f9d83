"""The demo's parts: its shell, its flipped byte, and a summary that says what was and was not shown."""

from __future__ import annotations

import shutil

import pytest

from ledger.digests import sha256
from ledger.errors import UsageError
from runners.demo.commands import Shell
from runners.demo.flip import flip_one_byte
from runners.demo.recovery import Recovered
from runners.demo.story import _Story, run_demo

STATE = sha256(b"a state")
RECOVERED = Recovered(
    run=sha256(b"a run"),
    checkpoint=sha256(b"a checkpoint"),
    updates=6,
    saved_at=3,
    killed_at=4,
    redone=[[4, STATE, STATE]],
    executed_again=1,
    tree=sha256(b"a tree"),
)


@pytest.mark.slow
def test_a_flipped_byte_is_found_at_its_record(person, tmp_path):
    """One byte of one record changed past the guards of a copy: verify names that very record; exit 1."""
    copy = shutil.copytree(person.ledger, tmp_path / "copy")
    seq = flip_one_byte(copy)
    answer = person.types("verify", "--ledger", copy, "--workers", 1)
    assert answer.code == 1
    assert answer.result["findings"][0]["seq"] == seq
    assert any(item["code"] == "TRIGGER_MISSING" for item in answer.result["warnings"])
    assert person.types("verify", "--workers", 1).result["verdict"] == "verified"


def test_the_demo_wants_a_new_folder(tmp_path):
    """A folder with something in it is left as it is."""
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UsageError, match="LEDGER_EXISTS"):
        run_demo(tmp_path, None, print)
    assert [item.name for item in tmp_path.iterdir()] == ["mine"]


def test_the_demo_wants_steps_enough_to_break_off_half_way(tmp_path):
    """Fewer than four steps have no half after a checkpoint; nothing is begun."""
    with pytest.raises(UsageError, match="DEMO_FAILED"):
        run_demo(tmp_path / "new", 3, print)
    assert not (tmp_path / "new").exists()


def test_the_shell_prints_what_it_runs_and_keeps_out_of_the_users_folders(tmp_path, monkeypatch):
    """Each command is shown as one could type it; keys and state lie in the demo's folder."""
    monkeypatch.setenv("EVIDENCE_KEY", "/not/mine.pem")
    said: list[str] = []
    shell = Shell(tmp_path, said.append)
    answer = shell.run("init", str(tmp_path / "ledger"), "--origin", "example.com/x y", expect=(2,))
    assert answer["error"]["code"] == "USAGE"
    assert said[-1] == f"$ evidence init {tmp_path / 'ledger'} --origin 'example.com/x y'"
    shell.run("init", str(tmp_path / "ledger"), "--origin", "example.com/x")
    assert {item.name for item in tmp_path.iterdir()} == {"ledger", "config", "state"}
    assert [name for name, _ in shell.took_s] == [f"init {tmp_path / 'ledger'}"] * 2
    with pytest.raises(
        UsageError, match=r"DEMO_FAILED: evidence init .* ended with 2: LEDGER_EXISTS"
    ):
        shell.run("init", str(tmp_path / "ledger"), "--origin", "example.com/x")


@pytest.mark.parametrize(
    ("paired", "p", "ignored", "words"),
    [
        pytest.param((10, 30, 1, 4), "0.001", "0.5", ["beats", "beats", "beats"], id="better than all"),
        pytest.param((10, 3, 1, 31), "0.6", "0.5", ["does not beat"] * 3, id="better than none"),
        pytest.param((10, 20, 0, 15), "0.001", "0.9", ["beats", "beats", "does not beat"], id="record ignored"),
    ],
)  # fmt: skip
def test_the_summary_says_plainly_what_was_beaten(tmp_path, paired, p, ignored, words):
    """A line for each answerer that stands beside the score, won or not."""
    story = _Story(Shell(tmp_path, print), None)
    names = ("both", "candidate_only", "baseline_only", "neither")
    story.comparison = {
        "candidates": [{"paired": dict(zip(names, paired, strict=True)), "mcnemar_p": p}],
        "baselines": {"best_constant": "0.3", "record_ignored": ignored},
    }
    story.recovered = RECOVERED
    story.result |= {"updates": 6, "verified": "verified", "flipped": {"code": "X", "found": 1}}
    summary = story.summary()
    assert "run killed at step 4, resumed from its checkpoint at step 3" in summary
    assert "lost updates redone: 1, all with the same digests" in summary
    lines = [line for line in summary if line.startswith("the adapter ")]
    assert [line.removeprefix("the adapter ").partition(" the ")[0] for line in lines] == words
    assert list(story.result["beats"].values()) == [word == "beats" for word in words]
