"""The policy losses of group-relative learning against golden numbers and against their own differences."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ledger.errors import EvidenceError
from verifiers.learning.advantages import AdvantageRule, advantages, is_constant, soft_overlong
from verifiers.learning.corrections import Correction, effective_share, weights
from verifiers.learning.objectives import Completion, Objective, policy_loss

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "vectors/rl_golden.json").read_text(encoding="utf-8")
)
EXACT = {"rtol": 0, "atol": 1e-12}
OLD = [np.array([-1.0, -0.5]), np.array([-0.7, -1.2, -0.3])]
NEW = [np.array([-0.8, -0.9]), np.array([-0.6, -1.5, -0.25])]
SAMPLED = [np.array([-1.1, -0.4]), np.array([-0.7, -2.0, -0.3])]
BATCH = [Completion(new, old, gain) for new, old, gain in zip(NEW, OLD, (1.0, -1.0), strict=True)]

RULES = {
    "dr_grpo / tinker-cookbook (center only)": AdvantageRule(scale="none"),
    "trl scale_rewards=group (ddof1, eps 1e-4)": AdvantageRule(),
    "verl grpo (ddof1, eps 1e-6)": AdvantageRule(epsilon=1e-6),
    "openrlhf group_norm (ddof1, eps 1e-9)": AdvantageRule(epsilon=1e-9),
    "river GroupCentered(standardize=True) (ddof0, max(std,1e-8))": AdvantageRule(
        ddof=0, epsilon=1e-8, guard="floor"
    ),
    "rloo": AdvantageRule(baseline="others", scale="none"),
}
PPO = Objective()
CISPO = Objective(clip="cispo", low=0.0, high=4.0, aggregation="sum")
VALUES = {
    "ppo(0.2,0.2) seq-mean-token-mean": PPO,
    "ppo(0.2,0.2) token-mean": replace(PPO, aggregation="token_mean"),
    "ppo(0.2,0.2) dr (sum/(B*maxlen))": replace(PPO, aggregation="constant", divisor=4),
    "ppo(0.2,0.2) sum": replace(PPO, aggregation="sum"),
    "ppo(0.2,0.2) seq-mean-token-sum": replace(PPO, aggregation="sequence_sum_mean"),
    "dapo clip-higher (0.2,0.28) token-mean": Objective(high=1.28, aggregation="token_mean"),
    "gspo loss mean": Objective(level="sequence", low=1 - 3e-4, high=1 + 4e-4),
    "cispo tinker default [0,4] sum": CISPO,
    "cispo tinker default [0,4] token-mean": replace(CISPO, aggregation="token_mean"),
    "cispo river eps_max=6 [0,6] sum": replace(CISPO, high=6.0),
    "cispo trl epsilon_high=5 (max only) sum": replace(CISPO, high=5.0),
    "cispo trl DEFAULT epsilon_high=None->0.2 (max 0.2) sum": replace(CISPO, high=0.2),
    "cispo verl DEFAULT clip_ratio 0.2 [0.8,1.2] sum": replace(CISPO, low=0.8, high=1.2),
    "cispo verl example script clip_low=10,high=0.2 [-9,1.2] sum": replace(
        CISPO, low=-9.0, high=1.2
    ),
}
CORRECTIONS = {
    "TIS token cap 2.0": Correction(),
    "MIS token mask >2.0": Correction(rule="mask"),
    "IcePop [0.5,2.0]": Correction(rule="mask", low=0.5),
    "rollout ratio old/rollout": Correction(high=np.inf),
}


@pytest.mark.parametrize("name", RULES)
def test_advantages_are_the_golden_ones(name):
    """Each rule gives the advantages that were computed for it by hand."""
    golden = GOLDEN["adv"]
    np.testing.assert_allclose(advantages(golden["rewards"], RULES[name]), golden[name], **EXACT)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 1 / 3])
def test_a_constant_group_says_nothing(rule, reward):
    """Equal rewards give advantages of exactly zero, also where their mean is not exactly they."""
    assert is_constant([reward] * 7)
    assert advantages([reward] * 7, rule).tolist() == [0.0] * 7


@pytest.mark.parametrize(
    ("rewards", "code"),
    [([1.0], "GROUP_SIZE"), ([], "GROUP_SIZE"), ([1.0, float("nan")], "NOT_A_REAL")],
)
def test_a_group_without_a_baseline_is_refused(rewards, code):
    """A group of one never takes its reward for its advantage, and NaN is no reward."""
    with pytest.raises(EvidenceError) as refused:
        advantages(rewards, AdvantageRule())
    assert refused.value.code == code


@pytest.mark.parametrize("name", VALUES)
def test_losses_are_the_golden_ones(name):
    """Each objective gives the loss that was computed for it by hand."""
    assert policy_loss(BATCH, VALUES[name]).value == pytest.approx(GOLDEN[name], rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("ppo_clip_0.2_tok", PPO),
        ("dapo tok", Objective(high=1.28)),
        ("gspo per-seq loss (3e-4,4e-4)", VALUES["gspo loss mean"]),
    ],
)
def test_token_losses_are_the_golden_ones(name, objective):
    """Before aggregation, too: a token's loss, or its sequence's."""
    for mine, golden in zip(policy_loss(BATCH, objective).tokens, GOLDEN[name], strict=True):
        np.testing.assert_allclose(mine, np.broadcast_to(golden, mine.shape), **EXACT)


@pytest.mark.parametrize("name", [name for name in GOLDEN if "dL/dlogp" in name])
def test_cispo_gradients_are_the_golden_ones(name):
    """No token loses its gradient: it is the bounded ratio times the advantage."""
    objective = VALUES[name.replace("dL/dlogp(sum)", "sum")]
    for mine, golden in zip(policy_loss(BATCH, objective).gradients, GOLDEN[name], strict=True):
        np.testing.assert_allclose(mine, golden, **EXACT)


AGGREGATIONS = ("token_mean", "sequence_mean", "sequence_sum_mean", "constant", "sum")


@pytest.mark.parametrize(
    ("level", "clip", "aggregation", "penalty"),
    list(product(("token", "sequence"), ("ppo", "none"), AGGREGATIONS, ("none", "k1", "k2", "k3"))),
)
def test_gradients_are_the_differences_of_the_value(level, clip, aggregation, penalty):
    """The gradient agrees with central differences, with weights, a penalty and a bound on the loss too."""
    objective = Objective(
        level, clip, 0.9, 1.1, 1.3, aggregation, divisor=9, penalty=penalty, coefficient=0.3
    )
    source = np.random.default_rng(7)
    batch = [
        Completion(
            *(-source.random((2, size)) - 0.1), gain, -source.random(size), source.random(size)
        )
        for size, gain in ((2, 1.0), (5, -0.7), (3, 0.4), (4, -1.2))
    ]
    found, step = policy_loss(batch, objective), 1e-6
    for row, item in enumerate(batch):
        for place in range(item.new.size):
            ends = []
            for sign in (1, -1):
                moved = item.new.copy()
                moved[place] += sign * step
                shifted = [*batch[:row], replace(item, new=moved), *batch[row + 1 :]]
                ends.append(policy_loss(shifted, objective).value)
            slope = (ends[0] - ends[1]) / (2 * step)
            assert found.gradients[row][place] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_one_inner_update_cannot_tell_the_objectives_apart():
    """Where old and new are the same no bound acts, and every level and clip has the same gradient."""
    same = [replace(item, old=item.new) for item in BATCH]
    first, *others = (
        policy_loss(same, Objective(level, clip, 0.8, 1.2))
        for level, clip in product(("token", "sequence"), ("ppo", "cispo", "none"))
    )
    for other in others:
        assert other.clipped == first.clipped == 0.0
        for mine, theirs in zip(first.gradients, other.gradients, strict=True):
            np.testing.assert_allclose(mine, theirs, **EXACT)


@pytest.mark.parametrize(("penalty", "golden"), [("k1", "k1"), ("k2", "k2"), ("k3", "k3")])
def test_penalties_are_the_golden_ones(penalty, golden):
    """Each estimator of the divergence gives its golden values on one completion without an advantage."""
    item = Completion(NEW[0], OLD[0], 0.0, reference=OLD[0])
    found = policy_loss([item], Objective(penalty=penalty, coefficient=1.0))
    np.testing.assert_allclose(found.tokens[0], GOLDEN[golden], **EXACT)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_corrections_are_the_golden_ones(name):
    """Weights for the gap between sampler and learner are those computed by hand."""
    for old, sampled, golden in zip(OLD, SAMPLED, GOLDEN[name], strict=True):
        np.testing.assert_allclose(weights(old, sampled, CORRECTIONS[name]), golden, **EXACT)


@pytest.mark.parametrize(
    ("level", "name"), [("product", "seq ratio (prod)"), ("mean", "geo ratio")]
)
def test_corrections_of_a_whole_completion_are_the_golden_ones(level, name):
    """A completion's ratio is the product of its tokens', or their geometric mean."""
    rule = Correction(level=level, high=np.inf)
    found = [weights(old, sampled, rule) for old, sampled in zip(OLD, SAMPLED, strict=True)]
    for mine, golden in zip(found, GOLDEN[name], strict=True):
        np.testing.assert_allclose(mine, np.full_like(mine, golden), **EXACT)


def test_the_effective_share_is_the_golden_one():
    """Weights as uneven as these are worth 86 of 100 equal ones; no weight at all is worth none."""
    ratios = np.concatenate(
        [
            weights(old, sampled, Correction(high=np.inf))
            for old, sampled in zip(OLD, SAMPLED, strict=True)
        ]
    )
    assert effective_share(ratios) == pytest.approx(GOLDEN["ESS frac"], rel=0, abs=1e-12)
    assert effective_share(np.zeros(3)) == 0.0


@pytest.mark.parametrize(
    ("length", "limit", "buffer", "penalty"),
    [
        (18_432, 20_480, 4_096, -0.5),
        (16_384, 20_480, 4_096, 0.0),
        (20_481, 20_480, 4_096, -1.0),
        (4, 4, 2, -1.0),
    ],
)
def test_long_completions_are_penalised_softly(length, limit, buffer, penalty):
    """Nothing before the buffer, all of it at the limit, a straight line between."""
    assert soft_overlong(length, limit, buffer) == penalty


WRONG = {
    "positive": Completion(np.array([0.1, -0.9]), OLD[0], 1.0),
    "not finite": Completion(NEW[0], np.array([-1.0, -np.inf]), 1.0),
    "misaligned": Completion(NEW[0], OLD[1], 1.0),
    "empty": Completion(np.array([]), np.array([]), 1.0),
    "no reference": Completion(NEW[0], OLD[0], 1.0),
}


@pytest.mark.parametrize("item", WRONG.values(), ids=WRONG)
def test_what_is_no_log_probability_is_refused(item):
    """Nothing is padded, dropped or taken for zero."""
    with pytest.raises(EvidenceError) as refused:
        policy_loss([item], Objective(penalty="k3", coefficient=0.1))
    assert refused.value.code == "LOGPROBS_WRONG"


def test_a_divisor_that_is_shorter_than_a_completion_is_refused():
    """The constant divisor is the longest completion that the plan allows, so none is longer."""
    with pytest.raises(EvidenceError) as refused:
        policy_loss(BATCH, Objective(aggregation="constant", divisor=2))
    assert (refused.value.code, refused.value.field) == ("LOGPROBS_WRONG", "divisor")
