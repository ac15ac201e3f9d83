"""A run that goes on under another plan ends in the bytes of the run that nobody stopped, and is executed again from there."""

from __future__ import annotations

import importlib.util

import pytest
from campaigns.sft_world import SETTINGS, make_world

from runners.train.config import SftSettings
from runners.train.plans import Descent, config_of, prepare_sft, record_plan
from runners.train.reexecute import reexecute, updates_of
from runners.train.supervisor import launch_sft

pytestmark = [pytest.mark.train, pytest.mark.slow]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A ledger with a plan of two epochs, nothing launched."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra")
    return make_world(tmp_path_factory.mktemp("heir") / "world")


def files(checkpoint):
    """A checkpoint's files by digest."""
    return {item["path"]: item["digest"] for item in checkpoint.body["files"]}


def test_an_heir_ends_in_the_same_bytes(world, tmp_path):
    """Stopped after its third step and gone on with exactly: the last checkpoint is the undisturbed run's, file by file."""
    whole, broken = world.copied(tmp_path / "whole"), world.copied(tmp_path / "broken")
    with whole.opened() as ledger:
        undisturbed = launch_sft(ledger, ledger.get(world.plan), world.shelf, lambda *_: None)
    seen = []
    with broken.opened() as ledger:
        plan = ledger.get(world.plan)
        stopped = launch_sft(
            ledger,
            plan,
            world.shelf,
            lambda event, _: seen.append(event),
            lambda: seen.count("update") >= 3,
        )
        assert stopped.ended.body["outcome"] == "stopped"
        descent = Descent(parent=stopped.checkpoint, exact=True)
        prepared = prepare_sft(ledger, config_of(plan), world.shelf, descent)
        heir = record_plan(ledger, prepared)
        done = launch_sft(ledger, heir, world.shelf, lambda *_: None)
        assert done.ended.body["outcome"] == "completed"
        assert files(done.checkpoint) == files(undisturbed.checkpoint)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        again = reexecute(ledger, updates_of(ledger, done.run), world.shelf, scratch)
    begun = stopped.checkpoint.body["step"]
    steps = SftSettings.from_values(plan.body["settings"]).steps
    assert (again.steps, again.disagreements) == (steps - begun, [])
    assert plan.body["settings"]["lora_dropout"] == str(SETTINGS["lora_dropout"])
