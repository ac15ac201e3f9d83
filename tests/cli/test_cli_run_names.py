"""Whoever names a plan where a run belongs is told so, and hints name the run that the call is about."""

from __future__ import annotations

import json

import pytest
from world import World

from runners.cli.main import main


@pytest.fixture
def world() -> World:
    """A world with a run, and the plan that it was launched from."""
    made = World()
    made.add("run.launched")
    return made


def error(capsys, *words):
    """The error that a command answers."""
    main([*map(str, words), "--json"])
    return json.loads(capsys.readouterr().out)["error"]


def test_a_plan_s_id_where_a_run_belongs(world, tmp_path, capsys):
    """The answer says that it is a plan, and the next command names the plan's run."""
    run, folder = world.newest("run.launched"), world.write(tmp_path / "l")
    plan = run.ref("plan")
    found = error(capsys, "run", "wait", plan[7:19], "--ledger", folder)
    assert found["code"] == "REF_KIND"
    assert found["message"] == f"{plan[7:19]} is a plan; its run is {run.id[7:19]}"
    assert found["hint"] == f"name the run: evidence run wait {run.id[7:19]}"


def test_a_plan_that_nobody_launched(tmp_path, capsys):
    """There is no run to name; the next command launches it."""
    world = World()
    plan = world.add("plan.prepared")
    folder = world.write(tmp_path / "l")
    found = error(capsys, "run", "wait", plan.id, "--ledger", folder)
    assert found["message"] == f"{plan.id[7:19]} is a plan, and was never launched"
    assert found["hint"] == f"launch it: evidence run launch {plan.id[7:19]} --wait"


def test_a_run_without_a_log_says_where_to_look(world, tmp_path, capsys):
    """It was launched on another machine: the hint names that machine."""
    run, folder = world.newest("run.launched"), world.write(tmp_path / "l")
    found = error(capsys, "run", "logs", run.id, "--ledger", folder)
    assert found["code"] == "INPUT_MISSING"
    assert f"ran on {run.body['host']}" in found["hint"]
