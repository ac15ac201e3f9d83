"""The settings that every run has in common, whatever its method: steps, optimizer, adapter, precision, machine (torch-free)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ledger.records.base import DIGEST_PATTERN
from runners.seeding import SEED_LIMIT
from runners.settings import Day, Settings
from runners.torchrun import RANK_WAIT_S
from runners.train.foreign_names import FOREIGN

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class LearnerSettings(Settings):
    """What a learner is, before it is said what it learns from.

    `steps` in optimizer steps. `first_layer` is the lowest transformer layer with an adapter: below it nothing is trained
    and no gradient is computed. With `matmul` at bfloat16 the inputs of matrix products are rounded to it where the
    processor multiplies it faster (sums stay in float32), which halves a step there and changes nothing elsewhere.
    `attention` is the library's implementation: on a CPU, for short rows, `eager` beats `sdpa`, whose backward pass takes
    a third of a step. `dtype` is that of the base model's weights; an adapter's own stay in float32. `autocast` computes
    matrix products in bfloat16 and leaves the weights as they are. A checkpoint is written after the last step, and at
    each multiple of `save_steps` where that is not 0. `chat_template` is the digest of a template in place of the
    model's own (a file's path in a configuration), `template_date` the day that a template is told which asks for it.
    """

    foreign: ClassVar[Mapping[str, str]] = FOREIGN

    tuning: Literal["lora", "full"] = "lora"
    steps: Positive = 100
    learning_rate: Rate = 1e-3
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup_steps: Count = 0
    weight_decay: Share = 0.0
    adam_beta1: Share = 0.9
    adam_beta2: Share = 0.999
    adam_epsilon: Rate = 1e-8
    max_gradient_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    lora_rank: Annotated[int, Field(ge=1, le=1024)] = 16
    lora_alpha: Positive = 32
    lora_dropout: Share = 0.0
    lora_targets: Annotated[tuple[str, ...], Field(min_length=1, max_length=64)] = LINEAR_LAYERS
    first_layer: Count = 0
    dtype: Literal["float32", "bfloat16"] = "float32"
    autocast: Literal["none", "bfloat16"] = "none"
    matmul: Literal["float32", "bfloat16"] = "float32"
    attention: Literal["eager", "sdpa"] = "eager"
    gradient_checkpointing: bool = False
    seed: Annotated[int, Field(ge=0, lt=SEED_LIMIT)] = 0
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    rank_wait_s: Annotated[int, Field(ge=10, le=86_400)] = RANK_WAIT_S
    save_steps: Count = 0
    chat_template: Annotated[str, Field(pattern=DIGEST_PATTERN)] | None = None
    template_date: Day | None = None


def library_arguments(job: Mapping[str, Any], settings: LearnerSettings) -> dict[str, Any]:
    """The arguments that every trainer of the library is given alike, each one that matters said outright.

    Args:
        job: names the output folder and the accelerator.
        settings: of the run.
    """
    return {
        "output_dir": job["output"],
        "max_steps": settings.steps,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.schedule,
        "warmup_steps": settings.warmup_steps,
        "weight_decay": settings.weight_decay,
        "adam_beta1": settings.adam_beta1,
        "adam_beta2": settings.adam_beta2,
        "adam_epsilon": settings.adam_epsilon,
        "max_grad_norm": settings.max_gradient_norm,
        "optim": "adamw_torch",
        "seed": settings.seed,
        "data_seed": settings.seed,
        "remove_unused_columns": False,
        "bf16": False,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "use_cpu": settings.processes > 1 or job.get("accelerator") is None,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "eval_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
    }
