"""The campaign against runs: its slice holds with every class of interruption, and half a recovery is reported."""

from __future__ import annotations

import importlib.util

import pytest
from campaigns import sft_kill
from campaigns.interrupted import Interruption
from campaigns.report import Settings
from campaigns.sft_world import make_world

from runners.train import supervisor

pytestmark = [pytest.mark.slow, pytest.mark.train]
FORGETFUL = "tests.runners.children.forgetful"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A ledger with a plan, shared: every run is made in a copy."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra")
    return make_world(tmp_path_factory.mktemp("sft-kill") / "world")


def settings(folder, case=None):
    """The slice, or one case of it."""
    return Settings(1, full=False, folder=folder, workers=1, progress=lambda *_: None, case=case)


def test_the_slice_holds(world, tmp_path):
    """A killed child, a supervisor killed during the recovery, a stop: all end in the undisturbed run's bytes."""
    outcome = sft_kill.run_on(world, settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == len(sft_kill.SLICE)
    assert outcome.counts == {
        "undisturbed run verified": 1,
        "child killed while saved": 1,
        "supervisor killed while loading": 1,
        "killed again before it had ended": 1,
        "run stopped while saved": 1,
    }


def test_random_states_left_out_are_reported(world, tmp_path, monkeypatch):
    """A child that goes on with other random states comes to other weights, and the campaign says so."""
    monkeypatch.setattr(supervisor, "CHILD", FORGETFUL)
    monkeypatch.setattr(sft_kill, "SLICE", ((Interruption("child", "saved", 0.0),),))
    outcome = sft_kill.run_on(world, settings(tmp_path, case=0))
    assert outcome.cases == 1
    assert all(line.startswith("case 0: ") for line in outcome.failures)
    assert any("adapter_model.safetensors" in line for line in outcome.failures)


def test_random_cases_come_from_the_seed(tmp_path):
    """The same case is the same interruptions, and every victim and phase comes up among them."""
    plans = [sft_kill._plan(settings(tmp_path), case) for case in range(2, 60)]
    assert plans == [sft_kill._plan(settings(tmp_path), case) for case in range(2, 60)]
    struck = [strike for plan in plans for strike in plan]
    assert {strike.victim for strike in struck} == {"child", "supervisor", "request"}
    assert {strike.phase for strike in struck} == {"loading", "training", "saved"}
    assert any(len(plan) > 1 for plan in plans)
