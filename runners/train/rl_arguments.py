"""The arguments of TRL's group trainer that make its loss the planned objective, each one that matters said outright.

The trainer's own names hide constants: its lower bound is a distance from 1, its upper bound too, except with cispo where
it is absolute; its normalisation of advantages cannot be chosen, so it is switched off and the advantages are given.
(Loads the training libraries.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runners.train.learner_settings import library_arguments

if TYPE_CHECKING:
    from runners.train.rl_config import RlSettings

LOSS_TYPES = {
    "sequence_mean": "grpo",
    "token_mean": "dapo",
    "constant": "dr_grpo",
    "sequence_sum_mean": "luspo",
}
"""The trainer's name for each aggregation of clipped losses; how each sums up was read in its source and is tested."""
_UNBOUNDED = 1e9


def arguments(job: dict[str, Any], settings: RlSettings) -> Any:
    """The library's arguments.

    Args:
        job: names the output folder and the accelerator.
        settings: of the run.
    """
    from trl.trainer.grpo_config import GRPOConfig

    return GRPOConfig(
        **library_arguments(job, settings),
        per_device_train_batch_size=settings.datums_per_step,
        gradient_accumulation_steps=1,
        steps_per_generation=settings.steps_per_generation,
        num_iterations=settings.num_iterations,
        num_generations=settings.group_size,
        max_completion_length=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        **objective(settings),
        scale_rewards="none",
        shuffle_dataset=False,
        mask_truncated_completions=False,
        disable_dropout=True,
    )


def objective(settings: RlSettings) -> dict[str, Any]:
    """The arguments that name the loss."""
    low, high = 1 - settings.clip_low, settings.clip_high - 1
    if settings.clip == "cispo":
        low, high = 1.0, settings.clip_high
    elif settings.clip == "none":
        low, high = 1.0, _UNBOUNDED
    cispo = settings.clip == "cispo"
    return {
        "loss_type": "cispo" if cispo else LOSS_TYPES[settings.aggregation],
        "importance_sampling_level": settings.ratio_level,
        "epsilon": low,
        "epsilon_high": high,
        "beta": settings.kl_coefficient,
        # By default the trainer multiplies the divergence by the ratio, which is another objective.
        "use_bias_correction_kl": False,
        "delta": None,
        "off_policy_mask_threshold": None,
        "top_entropy_quantile": 1.0,
        "entropy_coef": 0.0,
        "use_adaptive_entropy": False,
    }
