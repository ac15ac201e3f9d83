"""The demo's broken run: really killed, really recovered, and a story that is not so is not told."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ledger.book import Ledger
from ledger.digests import inventory, tree_digest
from ledger.errors import UsageError
from runners.demo import breaking, recovery, story
from runners.demo.breaking import kill, watch
from runners.demo.commands import Shell
from runners.demo.recovery import LEAST_STEPS, lost_updates, save_steps
from runners.demo.story import STEPS, _Story
from runners.train.processes import start_token

STEPS_HERE = 100
SMALL = {"batch_size": "4", "lora_rank": "4", "max_length": "256", "threads": "1", "seed": "97"}


@pytest.mark.parametrize("steps", [LEAST_STEPS, 5, 6, 7, 40, STEPS])
def test_the_kill_comes_after_the_checkpoint_and_before_the_end(steps):
    """However few steps there are: a checkpoint, then at least one update to lose, then at least one that never was."""
    assert 1 <= save_steps(steps) < save_steps(steps) + lost_updates(steps) < steps
    assert lost_updates(steps) >= 1


@pytest.mark.slow
def test_the_run_is_killed_and_comes_back_to_the_last_bit(person, monkeypatch):
    """The chapter as told: unconfirmed, found dead, resumed, redone with equal digests, rebuilt; all of it verifies."""
    monkeypatch.setattr(story, "SETTINGS", SMALL)
    monkeypatch.setattr(breaking, "POLL_S", 0.02)
    said: list[str] = []
    shell = Shell(person.folder, said.append)
    told = _Story(shell, STEPS_HERE)
    told.split, told.model = person.ids["split"], person.ids["model"]
    told._write_config()
    told.train()
    found = told.recovered
    assert found.saved_at == STEPS_HERE // 2 < found.killed_at < STEPS_HERE
    assert [step for step, _, _ in found.redone] == [
        *range(found.saved_at + 1, found.killed_at + 1)
    ]
    assert all(lost == again for _, lost, again in found.redone)
    assert (found.updates, found.executed_again) == (STEPS_HERE, len(found.redone))
    commands = [line.split()[2:4] for line in said if line.startswith("$ evidence ")]
    assert commands == [
        ["plan", "sft"], ["run", "launch"], ["run", "status"], ["run", "reconcile"], ["run", "resume"],
        ["query", commands[5][1]], ["checkpoint", "reexecute"], ["checkpoint", "recover"], ["checkpoint", "list"],
    ]  # fmt: skip
    assert sum(line.endswith("   equal") for line in said) == len(found.redone)
    assert not list((person.ledger / "work").glob(f"{found.run[7:23]}*"))
    assert tree_digest(inventory(person.folder / "recovered")) == found.tree
    assert person.verify().result["verdict"] == "verified"
    stays_honest(shell, monkeypatch)


def stays_honest(shell: Shell, monkeypatch) -> None:
    """Where the digests beside one another are not equal, the demo fails instead of telling it."""
    other = recovery.BESIDE.replace("redone.after_value", "redone.before_value")
    monkeypatch.setattr(recovery, "BESIDE", other)
    with pytest.raises(UsageError, match="DEMO_FAILED: the updates redone are not those"):
        recovery._Telling(shell, lambda _: None)._beside()


@pytest.mark.slow
def test_a_run_that_is_over_is_not_killed(person):
    """Nothing is killed by a number that a later process may have, and nobody waits for what cannot come."""
    with Ledger.read(person.ledger) as ledger:
        claim = ledger.get(person.ids["run"])
    with pytest.raises(UsageError, match="DEMO_FAILED"):
        kill(claim)
    with pytest.raises(UsageError, match="DEMO_FAILED: the run completed before"):
        watch(person.ledger, person.ids["run"], 1, lambda _: None)


def test_a_process_that_nobody_waited_for_is_gone():
    """Killed and still in the table, as in a container without an init: it works no more, so it is found dead."""
    with subprocess.Popen(["/bin/true"]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert start_token(process.pid) == "gone"
