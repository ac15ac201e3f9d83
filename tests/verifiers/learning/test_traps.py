"""Traps of reinforcement settings: each framework's settings that have one, and the same corrected."""

from __future__ import annotations

import pytest

from verifiers.learning.traps import TRAPS, masked_from, shared_seeds, traps_in

PLAN = {
    "clip": "ppo", "clip_high": "1.2", "num_iterations": 2, "steps_per_generation": 1,
    "top_p": "1.0", "top_k": 0, "min_p": "0.0",
}  # fmt: skip
ACTOR, ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
OURS = {"num_iterations": 2}
VERL_CISPO = {ACTOR + "policy_loss.loss_mode": "cispo"}
GRPO_VERL = {"algorithm.adv_estimator": "grpo"}
OPEN_MASK = {"enable_vllm_is_correction": True}

FIXTURES = [
    # trap, framework, settings that have it, settings that have none
    (1, "trl", {**OURS, "loss_type": "cispo"}, {**OURS, "loss_type": "cispo", "epsilon_high": 5.0}),
    (1, "trl", {**OURS, "loss_type": "cispo", "epsilon_high": 0.2}, {**OURS, "loss_type": "dapo"}),
    (1, "evidence", {**PLAN, "clip": "cispo", "clip_high": "0.2"}, {**PLAN, "clip": "cispo", "clip_high": "5.0"}),
    (2, "trl", {**OURS, "use_vllm": True}, {**OURS, "use_vllm": True, "max_completion_length": 91}),
    (2, "trl", {**OURS, "use_vllm": True, "max_completion_length": 92}, {**OURS, "use_vllm": True, "vllm_importance_sampling_mode": "token_truncate"}),
    (2, "trl", {**OURS, "use_vllm": True, "vllm_importance_sampling_cap": 3.0}, {**OURS, "use_vllm": True, "vllm_importance_sampling_clip_max": 50.0}),
    (3, "trl", {**OURS, "use_vllm": True, "max_completion_length": 64, "top_p": 0.8}, {**OURS, "use_vllm": True, "max_completion_length": 64, "top_p": 1.0}),
    (3, "trl", {**OURS, "use_vllm": True, "max_completion_length": 64, "top_k": 20}, {**OURS, "top_k": 20}),
    (3, "trl", {**OURS, "use_vllm": True, "max_completion_length": 64, "min_p": 0.1}, {**OURS, "use_vllm": True, "max_completion_length": 64, "min_p": None}),
    (3, "verl", {ROLLOUT + "top_p": 0.9, ROLLOUT + "calculate_log_probs": True}, {ROLLOUT + "top_p": 1.0, ROLLOUT + "top_k": -1, ROLLOUT + "calculate_log_probs": True}),
    (3, "vllm", {"logprobs_mode": "processed_logprobs", "top_p": 0.8}, {"logprobs_mode": "processed_logprobs"}),
    (3, "evidence", {**PLAN, "top_p": "0.95"}, PLAN),
    (4, "vllm", {"temperature": 0.7}, {"temperature": 0.7, "logprobs_mode": "processed_logprobs"}),
    (5, "verl", GRPO_VERL, {**GRPO_VERL, ROLLOUT + "n": 8}),
    (6, "openrlhf", {"dynamic_filtering": True, "dynamic_filtering_reward_range": (0, 1)}, {"dynamic_filtering": False}),
    (7, "verl", {**VERL_CISPO, ACTOR + "clip_ratio_low": 10, ACTOR + "clip_ratio_high": 0.2}, {**VERL_CISPO, ACTOR + "clip_ratio_low": 1.0, ACTOR + "clip_ratio_high": 4.0}),
    (7, "verl", VERL_CISPO, {ACTOR + "clip_ratio_low": 0.2}),
    (8, "trl", {**OURS, "importance_sampling_level": "sequence"}, {**OURS, "importance_sampling_level": "sequence", "loss_type": "grpo"}),
    (9, "openrlhf", {**OPEN_MASK, "vllm_is_correction_type": "seq-mask-tis"}, {**OPEN_MASK, "vllm_is_correction_type": "icepop"}),
    (10, "trl", {}, {"num_iterations": 2}),
    (10, "trl", {"gradient_accumulation_steps": 4, "steps_per_generation": 4}, {"gradient_accumulation_steps": 4, "steps_per_generation": 8}),
    (10, "evidence", {**PLAN, "num_iterations": 1}, {**PLAN, "num_iterations": 1, "steps_per_generation": 2}),
    (11, "river", {"seeds": [42, 43]}, {"seeds": [42, 50]}),
    (11, "river", {"seeds": [47, 42], "group_size": 8}, {"seeds": [47, 42], "group_size": 4}),
    (12, "verl", {ACTOR + "kl_loss_type": "k3+"}, {ACTOR + "kl_loss_type": "low_var_kl"}),
    (13, "river", {"loss": "cispo", "clip_low_threshold": 0.8, "eps_max": 6.0}, {"loss": "cispo", "eps_max": 6.0}),
    (13, "tinker", {"loss": "cispo", "eps_max": 6.0}, {"loss": "cispo", "clip_high_threshold": 4.0}),
    (14, "trl", {"metric_for_best_model": "loss"}, {"num_iterations": 2, "metric_for_best_model": "loss"}),
    (15, "tinker", {"targets": "unshifted"}, {"targets": "shifted"}),
    (15, "river", {"targets": "shifted"}, {"targets": "unshifted"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "framework", "failing", "corrected"),
    FIXTURES,
    ids=[f"{n}-{row[0]}-{row[1]}" for n, row in enumerate(FIXTURES)],
)
def test_a_trap_is_found_in_settings_alone(number, framework, failing, corrected):
    """The settings that have the trap are told so, and the corrected ones are told of none."""
    assert number in {item.number for item in traps_in(framework, failing)}
    assert traps_in(framework, corrected) == []


def test_every_trap_is_shown():
    """Each entry of the table has a fixture, and all fifteen numbers are there."""
    assert {(item.number, item.framework) for item in TRAPS} == {row[:2] for row in FIXTURES}
    assert {item.number for item in TRAPS} == set(range(1, 16))


def test_a_trap_says_what_will_happen():
    """A trap names the setting and one consequence, as a clause without a full stop."""
    for item in TRAPS:
        assert item.field
        assert item.says[0].islower()
        assert not item.says.endswith(".")


@pytest.mark.parametrize(("gap_nats", "tokens"), [(0.012, 92), (0.005, 220)])
def test_from_where_on_completions_are_dropped(gap_nats, tokens):
    """At three and a gap that was reported, from 92 tokens on; at five thousandths of a nat from 220 on."""
    assert masked_from(3.0, gap_nats) == tokens


@pytest.mark.parametrize(("first", "second", "share"), [(42, 43, 0.875), (42, 47, 0.375), (42, 50, 0.0)])  # fmt: skip
def test_consecutive_seeds_are_no_replicates(first, second, share):
    """With groups of eight, runs of seeds 42 and 43 share seven in eight of their samplers' seeds."""
    assert shared_seeds(first, second, groups=100, members=8) == share
