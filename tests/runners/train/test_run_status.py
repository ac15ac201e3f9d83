"""How a run stands after the ledger was restored from a backup."""

from __future__ import annotations

import platform

import pytest
import samples
from world import Draft, World

from ledger.book import Ledger
from runners.train.status import run_status
from runners.train.supervisor import start_token


@pytest.fixture
def world() -> World:
    """A world with a run of this machine, whose process lives: the first one."""
    made = World()
    draft = made.draft("run.launched")
    process = 1
    here = {"host": platform.node(), "process": process, "start_token": start_token(process)}
    made.admit(Draft(draft.kind, {**draft.body, **here}, draft.refs))
    return made


def stands(world: World, folder) -> tuple[str, str]:
    """State and detail of the newest run, read from a folder."""
    run = world.newest("run.launched")
    with Ledger.read(world.write(folder)) as ledger:
        found = run_status(ledger, ledger.get(run.id))
    return found.state, found.detail


def test_a_run_that_was_open_at_a_restore_is_unconfirmed_even_where_its_process_lives(
    world, tmp_path
):
    """A living process is not called running: the ledger refuses whatever it would record next."""
    assert stands(world, tmp_path / "before")[0] == "running"
    restored = world.add("ledger.restored")
    state, detail = stands(world, tmp_path / "after")
    assert (state, str(restored.seq) in detail) == ("unconfirmed", True)


@pytest.mark.parametrize(("found", "state"), [("alive", "unconfirmed"), ("dead", "dead")])
def test_an_unconfirmed_run_stays_so_until_it_is_found_dead(world, tmp_path, found, state):
    """The list says what the ledger holds: only a reconciliation that found it dead ends the doubt."""
    run = world.newest("run.launched")
    world.add("ledger.restored")
    body = samples.body("run.reconciled", found=found)
    world.admit(Draft("run.reconciled", body, {"run": run.id}))
    assert stands(world, tmp_path / "l")[0] == state


def test_a_run_launched_after_a_restore_is_not_touched_by_it(tmp_path):
    """A restore speaks of runs that were open before it."""
    world = World()
    world.add("ledger.restored")
    world.add("run.launched")
    assert "restored" not in stands(world, tmp_path / "l")[1]


def test_a_run_that_ended_before_a_restore_keeps_its_end(world, tmp_path):
    """An end that is still in the ledger stands."""
    world.add("run.ended")
    world.add("ledger.restored")
    assert stands(world, tmp_path / "l")[0] == "stopped"
