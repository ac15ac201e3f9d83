"""Traps of reinforcement settings, found in a settings object alone: before anything runs, whoever's trainer it is.

The same name stands for other constants in other frameworks, and some settings cancel each other without a word. Each trap
says what the settings will do, not what their author meant. Settings are those of the framework, by its own names, with
nothing filled in: where a default is the trap, it is found by what is absent.

    trl        a `GRPOConfig` as an object                 huggingface/trl f2cd577
    verl       a configuration's keys, joined by points    verl-project/verl 1dda039
    openrlhf   command-line options, underscores in them   OpenRLHF/OpenRLHF 3c3be62
    tinker     loss name and its configuration             tinker 0.38.0
    river      a training request's fields                 river-client 0.16.0
    vllm       the engine's `logprobs_mode` beside the sampling parameters of a request
    evidence   a plan's own settings
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Framework = Literal["trl", "verl", "openrlhf", "tinker", "river", "vllm", "evidence"]
Settings = Mapping[str, Any]

TRL_GAP_NATS = 0.012
"""A gap a token between sampler and learner that was reported in public (huggingface/trl#4772)."""
RIVER_GROUP, RIVER_MEMBER, RIVER_INDEX = 1_000_003, 1, 104_729
"""What River's sampler seeds are made with: group, member, index of the sample."""


@dataclass(frozen=True)
class Trap:
    """One trap: its number in the table of the specification, where it lies, and what it leads to.

    Attributes:
        number: 1 to 15.
        framework: whose settings.
        field: the setting at fault.
        says: what will happen, in one sentence.
        found: whether these settings have it.
    """

    number: int
    framework: Framework
    field: str
    says: str
    found: Callable[[Settings], bool]


def traps_in(framework: Framework, settings: Settings) -> list[Trap]:
    """Every trap that a framework's settings have, in the order of the table."""
    return [item for item in TRAPS if item.framework == framework and item.found(settings)]


def masked_from(limit: float, gap_nats: float) -> int:
    """From how many tokens on a completion is dropped whole, where each token is off by so many nats.

    Args:
        limit: the largest ratio of a whole completion that is kept.
        gap_nats: mean difference of a token's log-probabilities, positive.
    """
    return math.floor(math.log(limit) / gap_nats) + 1


def shared_seeds(first: int, second: int, groups: int, members: int) -> float:
    """The share of sampler seeds that two runs of River have in common, of one sample each member.

    Args:
        first: seed of a run.
        second: seed of the other.
        groups: how many groups either samples.
        members: of each group.
    """
    mine, theirs = (set(_river_seeds(seed, groups, members)) for seed in (first, second))
    return len(mine & theirs) / len(mine)


def _river_seeds(seed: int, groups: int, members: int) -> Iterator[int]:
    for group in range(groups):
        for member in range(members):
            yield (seed + group * RIVER_GROUP + member * RIVER_MEMBER) % 2**31


# --- TRL --------------------------------------------------------------------------------------------


def _cispo_unset(settings: Settings) -> bool:
    high = settings.get("epsilon_high")
    return settings.get("loss_type") == "cispo" and (high is None or float(high) < 1)


def _corrected(settings: Settings) -> bool:
    """Whether the sampler's log-probabilities are held against the learner's."""
    named = settings.get("vllm_importance_sampling_correction", True)
    return bool(settings.get("use_vllm") and named)


def _sequence_mask(settings: Settings) -> bool:
    mode = settings.get("vllm_importance_sampling_mode", "sequence_mask")
    highest = settings.get("vllm_importance_sampling_clip_max", 3.0)
    cap = float(settings.get("vllm_importance_sampling_cap") or highest)
    length = int(settings.get("max_completion_length", 256))
    masked = mode == "sequence_mask" and length >= masked_from(cap, TRL_GAP_NATS)
    return _corrected(settings) and masked


def _narrowed(settings: Settings) -> bool:
    """Whether fewer tokens may be sampled than there are."""
    return (
        float(settings.get("top_p", 1.0)) < 1.0
        or int(settings.get("top_k") or 0) > 0
        or float(settings.get("min_p") or 0.0) > 0
    )


def _support(settings: Settings) -> bool:
    return _corrected(settings) and _narrowed(settings)


def _sequence_summed(settings: Settings) -> bool:
    level = settings.get("importance_sampling_level", "token")
    return bool(level == "sequence" and settings.get("loss_type", "dapo") != "grpo")


def _inert(settings: Settings) -> bool:
    """One optimizer step a generation: old and new are the same weights, and the ratio is 1."""
    accumulation = settings.get("gradient_accumulation_steps", 1)
    steps = settings.get("steps_per_generation")
    slices = 1 if steps is None else -(-steps // accumulation)
    return int(settings.get("num_iterations", 1)) * int(slices) == 1


# --- vLLM -------------------------------------------------------------------------------------------


def _raw_at_temperature(settings: Settings) -> bool:
    """The engine's default reports log-probabilities before the temperature is applied."""
    mode = str(settings.get("logprobs_mode", "raw_logprobs"))
    return mode.startswith("raw") and float(settings.get("temperature", 1.0)) != 1.0


def _processed_support(settings: Settings) -> bool:
    mode = str(settings.get("logprobs_mode", "raw_logprobs"))
    return mode.startswith("processed") and _narrowed(settings)


# --- verl, OpenRLHF ---------------------------------------------------------------------------------

_VERL_ROLLOUT = "actor_rollout_ref.rollout."
_VERL_ACTOR = "actor_rollout_ref.actor."


def _verl_single(settings: Settings) -> bool:
    grouped = settings.get("algorithm.adv_estimator") == "grpo"
    return bool(grouped and settings.get(_VERL_ROLLOUT + "n", 1) == 1)


def _verl_cispo(settings: Settings) -> bool:
    low = settings.get(
        _VERL_ACTOR + "clip_ratio_low", settings.get(_VERL_ACTOR + "clip_ratio", 0.2)
    )
    high = settings.get(
        _VERL_ACTOR + "clip_ratio_high", settings.get(_VERL_ACTOR + "clip_ratio", 0.2)
    )
    cispo = settings.get(_VERL_ACTOR + "policy_loss.loss_mode") == "cispo"
    # offsets from 1: [1 - low, 1 + high]; a weight is never negative, and the paper's upper bound is far from 1
    return bool(cispo and (low > 1 or high < 1))


def _verl_support(settings: Settings) -> bool:
    return bool(
        settings.get(_VERL_ROLLOUT + "top_p", 1.0) < 1.0
        or settings.get(_VERL_ROLLOUT + "top_k", -1) > 0
    ) and bool(settings.get(_VERL_ROLLOUT + "calculate_log_probs"))


def _verl_k3(settings: Settings) -> bool:
    return str(settings.get(_VERL_ACTOR + "kl_loss_type", "low_var_kl")).endswith("+")


def _open_filter(settings: Settings) -> bool:
    """Kept are groups whose mean lies inside the range, whatever their variance."""
    low, high = settings.get("dynamic_filtering_reward_range", (0, 1))
    return bool(settings.get("dynamic_filtering") and low < high)


def _open_mask(settings: Settings) -> bool:
    return settings.get("vllm_is_correction_type") == "seq-mask-tis" and bool(
        settings.get("enable_vllm_is_correction")
    )


# --- Tinker, River, our own -------------------------------------------------------------------------


def _lower_bound_lost(settings: Settings) -> bool:
    """River bounds a CISPO weight from above only: a lower bound is not expressed, and is dropped."""
    named = ("clip_low_threshold", "eps_min")
    return settings.get("loss") == "cispo" and any((settings.get(name) or 0) > 0 for name in named)


def _upper_bound_lost(settings: Settings) -> bool:
    """Tinker reads absolute thresholds; River's cap under River's name is not one of them."""
    return settings.get("loss") == "cispo" and "eps_max" in settings


def _near_seeds(settings: Settings) -> bool:
    seeds = sorted(settings.get("seeds") or ())
    members = settings.get("group_size", 8)
    return any(0 < second - first < members for first, second in pairwise(seeds))


def _unshifted(due: str) -> Callable[[Settings], bool]:
    return lambda settings: settings.get("targets", due) != due


def _inert_plan(settings: Settings) -> bool:
    return int(settings["num_iterations"]) * int(settings["steps_per_generation"]) == 1


def _tiny_weights(settings: Settings) -> bool:
    return settings["clip"] == "cispo" and float(settings["clip_high"]) < 1


def _own_support(settings: Settings) -> bool:
    return _narrowed(settings)


def _loss_is_the_measure(settings: Settings) -> bool:
    stopping = str(
        settings.get("metric_for_best_model") or settings.get("early_stopping_metric") or ""
    )
    return _inert(settings) and stopping in ("loss", "train_loss", "eval_loss")


TRAPS: tuple[Trap, ...] = (
    Trap(1, "trl", "epsilon_high", "every weight of a token's gradient becomes epsilon_high, 0.2 where it is unset", _cispo_unset),
    Trap(1, "evidence", "clip_high", "every weight of a token's gradient is below 1", _tiny_weights),
    Trap(2, "trl", "vllm_importance_sampling_clip_max", "a long completion is dropped whole at a gap that was reported, without a word", _sequence_mask),
    Trap(3, "trl", "top_p", "the sampler leaves tokens out that the learner counts: every ratio is the kept mass", _support),
    Trap(3, "verl", "actor_rollout_ref.rollout.top_p", "log-probabilities of the sampler are over fewer tokens than the learner's", _verl_support),
    Trap(3, "evidence", "top_p", "the sampler leaves tokens out that the learner counts: every ratio is the kept mass", _own_support),
    Trap(3, "vllm", "top_p", "log-probabilities are renormalised over the tokens kept, the learner's are not", _processed_support),
    Trap(4, "vllm", "logprobs_mode", "log-probabilities are told as of temperature 1: a learner that divides by the temperature has others", _raw_at_temperature),
    Trap(5, "verl", "actor_rollout_ref.rollout.n", "a group of one: the raw reward becomes the advantage", _verl_single),
    Trap(6, "openrlhf", "dynamic_filtering", "a group is kept by its mean: one of nothing but 0.5 passes and says nothing", _open_filter),
    Trap(7, "verl", "actor_rollout_ref.actor.clip_ratio_low", "bounds are offsets from 1: this interval is tighter above than the paper's, or has no lower side", _verl_cispo),
    Trap(8, "trl", "loss_type", "ratios of sequences are summed over tokens: only loss_type grpo takes their mean", _sequence_summed),
    Trap(9, "openrlhf", "vllm_is_correction_type", "weights are not clamped, though its help text says so", _open_mask),
    Trap(10, "trl", "num_iterations", "one step a generation: the ratio is 1, clip and level never act", _inert),
    Trap(10, "evidence", "num_iterations", "one step a generation: the ratio is 1, clip and level never act", _inert_plan),
    Trap(11, "river", "seeds", "seeds of runs are closer than a group is large: their samplers share seeds", _near_seeds),
    Trap(12, "verl", "actor_rollout_ref.actor.kl_loss_type", "the value is k3's and the gradient is k2's", _verl_k3),
    Trap(13, "river", "clip_low_threshold", "a lower bound cannot be expressed here and is dropped", _lower_bound_lost),
    Trap(13, "tinker", "eps_max", "an upper cap by this name is not read; thresholds are absolute here", _upper_bound_lost),
    Trap(14, "trl", "metric_for_best_model", "with one step a generation the loss is 0 whatever is learnt: it measures nothing", _loss_is_the_measure),
    Trap(15, "tinker", "targets", "inputs are shifted by the caller here: unshifted ones train each token on itself", _unshifted("shifted")),
    Trap(15, "river", "targets", "arrays are unshifted here, the last position masked: shifted ones train the token after next", _unshifted("unshifted")),
)  # fmt: skip
"""Every trap that settings alone show."""
