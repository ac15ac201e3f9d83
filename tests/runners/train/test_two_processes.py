"""Two processes train one adapter: the numbers of one process, both states in the record, and a resumption to the last byte."""

from __future__ import annotations

import importlib.util
import re

import pytest
from campaigns.sft_world import SETTINGS as WORLD_SETTINGS
from campaigns.sft_world import make_world
from sft_run import Run, changed
from tiny import torch

from ledger.canonical import parse_real
from runners.train.config import SftSettings
from runners.train.plans import SftConfig, prepare_sft
from runners.train.reexecute import reexecute, updates_of
from runners.train.supervisor import launch_sft, newest_checkpoint, resume_sft
from verifiers.learning.learner_state import PARTS
from verifiers.verify import Options, verify

pytestmark = [pytest.mark.train, pytest.mark.slow]

STEPS = 3


def weights(folder):
    """The adapter's tensors of a run's last checkpoint."""
    files = pytest.importorskip("safetensors.torch")
    (path,) = folder.glob(f"out/checkpoint-{STEPS:06d}/adapter_model.safetensors")
    return files.load_file(path)


def random_states(folder):
    """The generators of a run's last checkpoint."""
    files = pytest.importorskip("safetensors.torch")
    return files.load_file(folder / "out" / f"checkpoint-{STEPS:06d}" / "random.safetensors")


def logged(run):
    """The loss of each step as the library writes it into the log."""
    found = re.findall(r"'loss': '?([0-9.e-]+)", (run.folder / "log").read_text())
    assert len(found) == STEPS
    return [float(text) for text in found]


@pytest.mark.parametrize("loss", ["labelled", "stock"])
def test_two_processes_give_the_numbers_of_one(tiny_model, tmp_path, loss):
    """Step by step the same rows, and to rounding the loss, the norm and the weights of one with twice the accumulation."""
    shape = {"steps": STEPS, "save_steps": 0, "loss": loss}
    alone = Run(tiny_model, tmp_path / "one", changed(accumulation=4, **shape)).apart()
    two = Run(tiny_model, tmp_path / "two", changed(accumulation=2, processes=2, **shape))
    two.apart(processes=2)
    assert two.ended.outcome == "completed", (two.ended, (two.folder / "log").read_text())
    assert two.of("start")[0]["processes"] == 2
    assert two.of("start")[0]["state"] == alone.of("start")[0]["state"]
    for ours, theirs in zip(two.of("batch"), alone.of("batch"), strict=True):
        for name in ("step", "micro_batches", "trainable_tokens", "tokens"):
            assert ours[name] == theirs[name]
    for ours, theirs in zip(two.of("update"), alone.of("update"), strict=True):
        assert ours["learning_rate"] == theirs["learning_rate"]
        assert ours["figures"] == theirs["figures"]
        for name in ("loss", "gradient_norm"):
            assert parse_real(ours[name]) == pytest.approx(parse_real(theirs[name]), rel=1e-4)
        assert ours["ranks"] == [{"rank": rank, "after": ours["after"]} for rank in (0, 1)]
    assert logged(two) == pytest.approx(logged(alone), rel=1e-3)
    states = random_states(two.folder)
    assert not torch.equal(states["torch"], states["rank.1.torch"])
    theirs = weights(alone.folder)
    for name, tensor in weights(two.folder).items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A ledger with a plan for two processes, with dropout, nothing launched."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra")
    made = make_world(tmp_path_factory.mktemp("two") / "world")
    settings = {**WORLD_SETTINGS, "accumulation": 1, "processes": 2, "steps": STEPS, "seed": 8}
    with made.opened() as ledger:
        one = ledger.get(made.plan)
        config = SftConfig(
            str(one.ref("split")), str(one.ref("model")), SftSettings.from_values(settings)
        )
        prepared = prepare_sft(ledger, config, made.shelf)
        plan = ledger.append("plan.prepared", prepared.body, prepared.refs)
    return type(made)(made.folder, made.shelf, plan.id)


def files(checkpoint):
    """A checkpoint's files by digest."""
    return {item["path"]: item["digest"] for item in checkpoint.body["files"]}


def test_a_resumption_of_two_ends_in_the_same_bytes(world, tmp_path):
    """Stopped after its first step and resumed: the undisturbed run's last checkpoint, file by file, both ranks in it."""
    whole, broken = world.copied(tmp_path / "whole"), world.copied(tmp_path / "broken")
    with whole.opened() as ledger:
        undisturbed = launch_sft(ledger, ledger.get(world.plan), world.shelf, lambda *_: None)
        assert undisturbed.ended.body["outcome"] == "completed", undisturbed.log.read_text()
    seen = []
    with broken.opened() as ledger:
        stopped = launch_sft(
            ledger,
            ledger.get(world.plan),
            world.shelf,
            lambda event, _: seen.append(event),
            lambda: "update" in seen,
        )
        assert stopped.ended.body["outcome"] == "stopped"
        checkpoint = newest_checkpoint(ledger, stopped.run)
        assert checkpoint.body["completeness"] == dict.fromkeys(PARTS, True)
        done = resume_sft(ledger, stopped.run, checkpoint, world.shelf, lambda *_: None)
        assert done.ended.body["outcome"] == "completed"
        assert files(done.checkpoint) == files(undisturbed.checkpoint)
        updates = updates_of(ledger, done.run)
        for update in updates:
            after = update.body["after"]["value"]
            assert update.body["ranks"] == [{"rank": rank, "after": after} for rank in (0, 1)]
        batches = ledger.referrers(done.run.id, "run", "batch.built")
        assert {item.body["datums"] for item in batches} == {2 * WORLD_SETTINGS["batch_size"]}
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        again = reexecute(ledger, updates, world.shelf, scratch)
        assert (len(again.updates), again.disagreements, again.changed) == (STEPS, [], [])
    report = verify(broken.ledger, Options(level="blobs", workers=1))
    assert (report.verdict, report.findings) == ("verified", [])
