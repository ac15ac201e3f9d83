"""A reinforcement run goes on exactly from any step: within a generation, at its end, over an epoch's boundary."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("torch", reason="needs the train extra")

from rl_run import RlRun, settings
from sft_run import going_on

from ledger.errors import EvidenceError

SHAPE = {
    "steps": 8, "group_size": 3, "groups_per_batch": 6, "num_iterations": 2, "steps_per_generation": 2,
    "save_steps": 1, "learning_rate": 0.05, "schedule": "linear",
}  # fmt: skip
COMPARED = ("before", "after", "loss", "gradient_norm", "learning_rate")


@pytest.fixture(scope="module", params=["grpo", "cispo"])
def undisturbed(request, tiny_model, tmp_path_factory):
    """A run over an epoch's boundary, with a checkpoint after each step."""
    folder = tmp_path_factory.mktemp(f"rl-{request.param}")
    run = RlRun(tiny_model, folder, settings(**SHAPE, objective=request.param))
    assert run.here()["outcome"] == "completed"
    asked = sum(len(event["groups"]) for event in run.of("groups"))
    assert asked > 10  # tasks: the second epoch has begun
    return run


def resumed(run, tiny_model, folder, step, *, journal):
    """The run gone on with from a step's checkpoint, in a place of its own."""
    start = going_on(run.folder / "out" / f"checkpoint-{step:06d}")
    other = RlRun(tiny_model, folder, settings(**SHAPE, objective=objective(run)), start=start)
    if journal:
        shutil.copytree(run.folder / "journal", folder / "journal")
    assert other.here()["outcome"] == "completed"
    return other


def objective(run):
    """The name of a run's objective."""
    return run.job["settings"]["objective"]


def said(run, name, first):
    """What a run said from a step on, without its own numbering and places."""
    left_out = {"n", "path"}
    return [
        {field: value for field, value in event.items() if field not in left_out}
        for event in run.of(name)
        if event["step"] > first
    ]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        3,
        4,
        pytest.param(5, marks=pytest.mark.slow),
        pytest.param(7, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("journal", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_going_on_gives_the_same_bits(undisturbed, tiny_model, tmp_path, step, journal):
    """Batches, states, losses and checkpoints after a resumption are those of the run that was not disturbed."""
    other = resumed(undisturbed, tiny_model, tmp_path / "again", step, journal=journal)
    for name in ("batch", "checkpoint"):
        assert said(other, name, step) == said(undisturbed, name, step)
    for mine, theirs in zip(
        said(other, "update", step), said(undisturbed, "update", step), strict=True
    ):
        assert [mine[field] for field in COMPARED] == [theirs[field] for field in COMPARED]
    last = "out/checkpoint-000008"
    for path in (undisturbed.folder / last).iterdir():
        assert path.read_bytes() == (other.folder / last / path.name).read_bytes(), path.name


def test_what_the_journal_has_is_not_sampled_again(undisturbed, tiny_model, tmp_path, monkeypatch):
    """A generation that was sampled before the crash is read from the journal: nothing is asked of the model."""
    monkeypatch.setattr("runners.train.generations.sample", None)
    other = resumed(undisturbed, tiny_model, tmp_path / "again", 4, journal=True)
    assert other.of("update")[-1]["after"] == undisturbed.of("update")[-1]["after"]


def test_a_checkpoint_without_its_completions_is_refused(undisturbed, tiny_model, tmp_path):
    """Where the completions that steps to come read are not those saved, the run does not go on."""
    folder = tmp_path / "checkpoint-000003"
    shutil.copytree(undisturbed.folder / "out" / folder.name, folder)
    at_the_boundary = undisturbed.folder / "out" / "checkpoint-000004"
    shutil.copyfile(at_the_boundary / "rollouts.safetensors", folder / "rollouts.safetensors")
    run = RlRun(tiny_model, tmp_path / "again", settings(**SHAPE), start=going_on(folder))
    with pytest.raises(EvidenceError) as caught:
        run.here()
    assert caught.value.code == "STATE_DIFFERS"
    assert run.of("update") == []
