"""The trainer's loss is the planned objective, in value and in gradient, on batches that a real run reads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the train extra")

from rl_run import RlRun, settings

from runners.train.rl_config import PRESETS
from verifiers.learning.objectives import Completion, policy_loss

TOLERANCE = 1e-5
MIXED = {
    "unclipped": {"clip": "none", "clip_low": 0.0, "aggregation": "sequence_sum_mean"},
    "base reference": {"objective": "grpo", "reference": "adapter_off"},
    "two slices": {"objective": "gspo", "steps_per_generation": 2, "group_size": 3},
    "leave one out": {"objective": "dapo", "advantage_centre": "leave_one_out"},
}


class Watched:
    """A run whose passes are kept: what went into each loss, the loss, the gradient by each log-probability."""

    def __init__(self, run):
        self.trainer = run.built()
        self.steps = []
        forward, step = (
            self.trainer._get_per_token_logps_and_entropies,
            self.trainer.training_step,
        )

        def keeping(*arguments, **options):
            found = forward(*arguments, **options)
            if found[0].requires_grad:
                found[0].retain_grad()
                self.live = found[0]
            return found

        def stepping(*arguments, **options):
            loss = step(*arguments, **options)
            self.steps.append((self.trainer.current, self.live, float(loss)))
            return loss

        self.trainer._get_per_token_logps_and_entropies = keeping
        self.trainer.training_step = stepping
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn of one another
            self.trainer.train()


def completions(batch, live):
    """What the definition reads of a batch."""
    made = []
    for row, length in enumerate(batch["completion_mask"].sum(-1).tolist()):
        named = {
            "new": live.detach(),
            "old": batch["old_per_token_logps"],
            "reference": batch["ref_per_token_logps"],
        }
        arrays = {
            # rounding may take a log-probability of a certain token above 0 by a hair
            name: np.minimum(value[row, :length].double().numpy(), 0.0)
            for name, value in named.items()
        }
        made.append(Completion(advantage=float(batch["advantages"][row]), **arrays))
    return made


@pytest.mark.parametrize(
    "change",
    [*({"objective": name} for name in PRESETS), *MIXED.values()],
    ids=[*PRESETS, *MIXED],
)
def test_the_trainers_loss_is_the_planned_objective(tiny_model, tmp_path, change):
    """Value and gradient agree with the pure definition within 1e-5, before and after the policy has moved."""
    of = settings(steps=4, learning_rate=0.05, **change)
    run = RlRun(tiny_model, tmp_path, of)
    watched = Watched(run)
    assert len(watched.steps) == 4
    ratios = []
    for batch, live, loss in watched.steps:
        defined = policy_loss(completions(batch, live), of.loss())
        assert loss == pytest.approx(defined.value, abs=TOLERANCE)
        for row, slope in enumerate(defined.gradients):
            given = live.grad[row, : slope.size].double().numpy()
            assert given == pytest.approx(slope, abs=TOLERANCE)
        ratios.append(max(float(np.abs(ratio - 1).max()) for ratio in defined.ratios))
        assert any(item.advantage for item in completions(batch, live))
    assert max(ratios) > 0.01  # the policy did move, so the clip and the level had something to do


def test_the_figures_are_those_of_the_definition(tiny_model, tmp_path):
    """Clipped share, ratios and divergence of a record are what the definition gives on the same batch."""
    of = settings(steps=2, learning_rate=0.2, num_iterations=2)
    run = RlRun(tiny_model, tmp_path, of)
    batch, live, _ = Watched(run).steps[1]
    said = run.of("update")[1]["figures"]
    defined = policy_loss(completions(batch, live), of.loss())
    ratios = np.concatenate(defined.ratios)
    assert float(said["clipped"]) == pytest.approx(defined.clipped, abs=TOLERANCE)
    assert float(said["clipped"]) > 0
    assert float(said["ratio_mean"]) == pytest.approx(ratios.mean(), rel=1e-4)
    assert float(said["ratio_max"]) == pytest.approx(ratios.max(), rel=1e-4)
    assert float(said["masked"]) == 0.0
