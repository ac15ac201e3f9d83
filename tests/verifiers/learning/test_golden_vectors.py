"""Every golden number of the policy losses is derived again: ratios, weights, gradients, estimators, penalties, advantages.

`test_objectives.py` names the objectives; here every entry of the file has a derivation, and no entry is without one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from verifiers.learning.advantages import AdvantageRule, advantages, soft_overlong
from verifiers.learning.corrections import Correction, effective_share, weights
from verifiers.learning.objectives import Completion, Objective, policy_loss

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "vectors/rl_golden.json").read_text(encoding="utf-8")
)
OLD = [np.array([-1.0, -0.5]), np.array([-0.7, -1.2, -0.3])]
NEW = [np.array([-0.8, -0.9]), np.array([-0.6, -1.5, -0.25])]
SAMPLED = [np.array([-1.1, -0.4]), np.array([-0.7, -2.0, -0.3])]
BATCH = [Completion(new, old, gain) for new, old, gain in zip(NEW, OLD, (1.0, -1.0), strict=True)]
PPO = Objective()
GSPO = Objective(level="sequence", low=1 - 3e-4, high=1 + 4e-4)
CISPO = Objective(clip="cispo", low=0.0, high=4.0, aggregation="sum")
BOUNDS = {
    "cispo tinker default [0,4]": (0.0, 4.0),
    "cispo river eps_max=6 [0,6]": (0.0, 6.0),
    "cispo trl epsilon_high=5 (max only)": (0.0, 5.0),
    "cispo trl DEFAULT epsilon_high=None->0.2 (max 0.2)": (0.0, 0.2),
    "cispo verl DEFAULT clip_ratio 0.2 [0.8,1.2]": (0.8, 1.2),
    "cispo verl example script clip_low=10,high=0.2 [-9,1.2]": (-9.0, 1.2),
}


def listed(values):
    """Arrays as lists."""
    return [np.asarray(item).tolist() for item in values]


def loss(objective):
    """The value of the batch."""
    return policy_loss(BATCH, objective).value


def weighed(correction):
    """What a correction weighs the tokens with."""
    return [weights(old, sampled, correction) for old, sampled in zip(OLD, SAMPLED, strict=True)]


def whole(level):
    """The ratio of each completion as a whole."""
    return [float(item[0]) for item in weighed(Correction(level=level, high=np.inf))]


def rules():
    """The advantages of the file's rewards under each rule, and what they are made of."""
    rewards = GOLDEN["adv"]["rewards"]
    named = {
        "dr_grpo / tinker-cookbook (center only)": AdvantageRule(scale="none"),
        "trl scale_rewards=group (ddof1, eps 1e-4)": AdvantageRule(),
        "verl grpo (ddof1, eps 1e-6)": AdvantageRule(epsilon=1e-6),
        "openrlhf group_norm (ddof1, eps 1e-9)": AdvantageRule(epsilon=1e-9),
        "river GroupCentered(standardize=True) (ddof0, max(std,1e-8))": AdvantageRule(
            ddof=0, epsilon=1e-8, guard="floor"
        ),
        "rloo": AdvantageRule(baseline="others", scale="none"),
    }
    found = {name: advantages(rewards, rule).tolist() for name, rule in named.items()}
    spread = {f"std_ddof{ddof}": float(np.std(rewards, ddof=ddof)) for ddof in (0, 1)}
    return {**found, **spread, "rewards": rewards, "mean": float(np.mean(rewards))}


def penalty(name):
    """An estimator's value at the tokens of the first completion, against the old policy as the reference."""
    item = Completion(NEW[0], OLD[0], 0.0, reference=OLD[0])
    return policy_loss([item], Objective(penalty=name, coefficient=1.0)).tokens[0].tolist()


def derived():
    """Every entry of the file, derived."""
    sequence = policy_loss(BATCH, GSPO)
    found = {
        "adv": rules(),
        "ratio": listed(policy_loss(BATCH, PPO).ratios),
        "ppo_clip_0.2_tok": listed(policy_loss(BATCH, PPO).tokens),
        "ppo(0.2,0.2) seq-mean-token-mean": loss(PPO),
        "ppo(0.2,0.2) token-mean": loss(replace(PPO, aggregation="token_mean")),
        "ppo(0.2,0.2) dr (sum/(B*maxlen))": loss(replace(PPO, aggregation="constant", divisor=4)),
        "ppo(0.2,0.2) sum": loss(replace(PPO, aggregation="sum")),
        "ppo(0.2,0.2) seq-mean-token-sum": loss(replace(PPO, aggregation="sequence_sum_mean")),
        "dapo clip-higher (0.2,0.28) token-mean": loss(
            Objective(high=1.28, aggregation="token_mean")
        ),
        "dapo tok": listed(policy_loss(BATCH, Objective(high=1.28)).tokens),
        "gspo s_i": [float(item[0]) for item in sequence.ratios],
        "gspo per-seq loss (3e-4,4e-4)": [float(item[0]) for item in sequence.tokens],
        "gspo loss mean": sequence.value,
        "rollout ratio old/rollout": listed(weighed(Correction(high=np.inf))),
        "TIS token cap 2.0": listed(weighed(Correction())),
        "MIS token mask >2.0": listed(weighed(Correction(rule="mask"))),
        "IcePop [0.5,2.0]": listed(weighed(Correction(rule="mask", low=0.5))),
        "seq ratio (prod)": whole("product"),
        "geo ratio": whole("mean"),
        "TRL default sequence_mask C=3": [
            float(item[0]) for item in weighed(Correction(level="product", rule="mask", high=3.0))
        ],
        "kl lp-ref": (NEW[0] - OLD[0]).tolist(),
        **{name: penalty(name) for name in ("k1", "k2", "k3")},
        "overlong verl: resp 20480 max, buf 4096, factor1, len=18432": soft_overlong(
            18_432, 20_480, 4_096
        ),
        "ESS frac": effective_share(np.concatenate(weighed(Correction(high=np.inf)))),
    }
    for name, (low, high) in BOUNDS.items():
        bounded = replace(CISPO, low=low, high=high)
        found[f"{name} sum"] = loss(bounded)
        found[f"{name} token-mean"] = loss(replace(bounded, aggregation="token_mean"))
        found[f"{name} dL/dlogp(sum)"] = listed(policy_loss(BATCH, bounded).gradients)
    return found


DERIVED = derived()


def numbers(value):
    """Every number of an entry, in order."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    return [x for item in value for x in numbers(item)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_entry_is_derived_again(name):
    """Each number of the entry comes out within 1e-12, in float64."""
    np.testing.assert_allclose(numbers(DERIVED[name]), numbers(GOLDEN[name]), rtol=0, atol=1e-12)


def test_no_golden_entry_is_left_out():
    """The file and the derivations name the same entries, and well over sixty numbers are held against each other."""
    assert DERIVED.keys() == GOLDEN.keys()
    assert DERIVED["adv"].keys() == GOLDEN["adv"].keys()
    assert sum(len(numbers(value)) for value in GOLDEN.values()) >= 60


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("aggregation", ["sum", "token_mean", "sequence_mean"])
def test_cispo_gradients_are_those_of_a_weight_that_is_held_still(bounds, aggregation):
    """With the bounded ratio fixed at the point, central differences of weight times log-probability give the gradient."""
    objective = replace(CISPO, low=bounds[0], high=bounds[1], aggregation=aggregation)
    found = policy_loss(BATCH, objective)
    held = [np.clip(ratio, *bounds) for ratio in found.ratios]

    def value(news):
        """The loss with the weights held still, aggregated as the objective does it."""
        losses = [-w * item.advantage * new for w, item, new in zip(held, BATCH, news, strict=True)]
        if aggregation == "sequence_mean":
            return float(np.mean([item.mean() for item in losses]))
        total = float(np.concatenate(losses).sum())
        return total if aggregation == "sum" else total / sum(item.size for item in losses)

    step = 1e-6
    for row, new in enumerate(NEW):
        for place in range(new.size):
            ends = []
            for sign in (1, -1):
                moved = [item.copy() for item in NEW]
                moved[row][place] += sign * step
                ends.append(value(moved))
            slope = (ends[0] - ends[1]) / (2 * step)
            assert found.gradients[row][place] == pytest.approx(slope, rel=1e-6, abs=1e-9)
