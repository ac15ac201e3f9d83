"""How a user's `GRPOConfig` and `LoraConfig` become the settings of a run of groups (torch-free).

The library's names hide constants, so each is translated into ours and translated back: what does not come out as the user
gave it is something that this trainer would not do, and is refused by its name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ledger.errors import UsageError
from runners.train.expansion import plain
from runners.train.own_rl_settings import OwnRlSettings

_OBJECTIVES = {
    "grpo": ("grpo", "sequence_mean"),
    "dapo": ("dapo", "token_mean"),
    "dr_grpo": ("dr_grpo", "constant"),
    "luspo": ("grpo", "sequence_sum_mean"),
    "cispo": ("cispo", "token_mean"),
}
"""Our name of an objective and its aggregation, by the library's name of a loss."""
_SCALES = {"group": "std", "True": "std", "none": "none", "False": "none"}
_FREE = frozenset(
    {
        "output_dir", "run_name", "report_to", "disable_tqdm", "use_cpu", "data_seed", "do_train", "do_eval", "project",
        "save_strategy", "save_steps", "save_total_limit", "eval_strategy", "eval_steps", "num_train_epochs",
        "scale_rewards", "shuffle_dataset", "disable_dropout", "include_num_input_tokens_seen",
    }
)  # fmt: skip
"""Arguments that change nothing that is learnt, or that this trainer takes over: advantages, order, dropout."""
_FREE_STARTS = ("dataloader_", "hub_", "push_to_hub", "logging_", "log_", "trackio_", "wandb_")
_ADAPTER_FREE = frozenset({"base_model_name_or_path", "revision", "inference_mode", "peft_version"})


def settings_of(args: Any, adapter: Any, more: Mapping[str, Any]) -> OwnRlSettings:
    """What a user's arguments are in our settings.

    Args:
        args: a `GRPOConfig`.
        adapter: a `LoraConfig`.
        more: settings that neither of them says.

    Raises:
        UsageError: `ADOPTION_REFUSED`, an argument has no equal here; `SETTING_INVALID`, a value is out of range.
    """
    values = {**_objective(args), **_sizes(args), **_learner(args), **_adapter(adapter), **more}
    return OwnRlSettings.from_values(values)


def check_same(args: Any, ours: Any, adapter: Any, our_adapter: Any) -> None:
    """Refuse arguments that this trainer would not follow.

    Args:
        args: the user's `GRPOConfig`.
        ours: the one that the settings give.
        adapter: the user's `LoraConfig`.
        our_adapter: the one that the settings give.

    Raises:
        UsageError: `ADOPTION_REFUSED`, naming the argument and the value that it can have.
    """
    for item in dataclasses.fields(ours):
        name = item.name
        if name in _FREE or name.startswith(_FREE_STARTS) or name.endswith("_dir"):
            continue
        given, used = getattr(args, name, None), getattr(ours, name, None)
        if name == "epsilon_high" and given is None:
            given = args.epsilon
        if args.loss_type == "cispo" and name == "epsilon":
            continue
        _check(f"args.{name}", given, used)
    mine, theirs = our_adapter.to_dict(), adapter.to_dict()
    for name in mine.keys() - _ADAPTER_FREE:
        _check(f"peft_config.{name}", theirs.get(name), mine[name])


def _check(field: str, given: Any, used: Any) -> None:
    if isinstance(given, float) and isinstance(used, int | float):
        same = math.isclose(given, used, rel_tol=1e-12, abs_tol=1e-12)
    else:
        same = plain(given) == plain(used)
    if not same:
        raise refused(
            field, f"{field} is {plain(given)}, and a run of groups on record has {plain(used)}"
        )


def _objective(args: Any) -> dict[str, Any]:
    if args.loss_type not in _OBJECTIVES:
        raise refused("args.loss_type", f"{args.loss_type} is none of {', '.join(_OBJECTIVES)}")
    if not args.beta:
        raise refused(
            "args.beta", "it is 0: a run of groups is held to a frozen reference, 0.01 for example"
        )
    scale = _SCALES.get(str(args.scale_rewards))
    if scale is None:
        raise refused("args.scale_rewards", f"it is {args.scale_rewards}, not group or none")
    name, aggregation = _OBJECTIVES[args.loss_type]
    high = args.epsilon if args.epsilon_high is None else args.epsilon_high
    cispo = name == "cispo"
    return {
        "objective": name,
        "aggregation": aggregation,
        "ratio_level": args.importance_sampling_level,
        "clip": "cispo" if cispo else "ppo",
        "clip_low": 0.0 if cispo else 1 - args.epsilon,
        "clip_high": high if cispo else 1 + high,
        "advantage_scale": scale,
        "kl_coefficient": args.beta,
        "dynamic_sampling": False,
        "overlong_penalty": 0.0,
        "overlong_buffer": 0,
    }


def _sizes(args: Any) -> dict[str, Any]:
    size, members = args.per_device_train_batch_size, args.num_generations
    if size % members:
        raise refused(
            "args.per_device_train_batch_size",
            f"{size} completions are no whole groups of {members}: an update reads whole groups",
        )
    if args.max_steps <= 0:
        raise refused("args.max_steps", "it is not set: a plan says how many updates the run has")
    return {
        "steps": args.max_steps,
        "group_size": members,
        "groups_per_batch": size // members * args.steps_per_generation,
        "num_iterations": args.num_iterations,
        "steps_per_generation": args.steps_per_generation,
        "max_new_tokens": args.max_completion_length,
        "temperature": args.temperature,
        "top_p": args.top_p,
        "top_k": args.top_k or 0,
        "min_p": args.min_p or 0.0,
    }


def _learner(args: Any) -> dict[str, Any]:
    strategy = str(plain(args.save_strategy))
    return {
        "learning_rate": args.learning_rate,
        "schedule": plain(args.lr_scheduler_type),
        "warmup_steps": int(args.warmup_steps or 0),
        "weight_decay": args.weight_decay,
        "adam_beta1": args.adam_beta1,
        "adam_beta2": args.adam_beta2,
        "adam_epsilon": args.adam_epsilon,
        "max_gradient_norm": args.max_grad_norm,
        "gradient_checkpointing": args.gradient_checkpointing,
        "seed": args.seed,
        "save_steps": int(args.save_steps) if strategy == "steps" and args.save_steps >= 1 else 0,
    }


def _adapter(adapter: Any) -> dict[str, Any]:
    targets = adapter.target_modules
    if not isinstance(targets, list | set | tuple):
        raise refused("peft_config.target_modules", "it names no modules one by one: give a list")
    return {
        "lora_rank": adapter.r,
        "lora_alpha": adapter.lora_alpha,
        "lora_dropout": adapter.lora_dropout,
        "lora_targets": sorted(targets),
    }


def refused(field: str, why: str, hint: str | None = None) -> UsageError:
    """Something of a user's trainer that cannot be put on record."""
    return UsageError("ADOPTION_REFUSED", why, field=field, hint=hint)
