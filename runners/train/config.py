"""The settings of supervised fine-tuning: every one explicit, none read from anywhere else (torch-free)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from runners.seeding import SEED_LIMIT
from runners.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class SftSettings(Settings):
    """Every effective setting of a supervised run.

    Lengths are in tokens, `steps` in optimizer steps, `batch_size` in rows of one micro-batch. `first_layer` is the
    lowest transformer layer with an adapter: below it nothing is trained and no gradient is computed. `order` and
    `block_rows`: see `runners.train.order`; `loss`: see `runners.train.loss`. With `matmul` at bfloat16 the inputs of
    matrix products are rounded to it where the processor multiplies it faster (sums stay in float32), which halves a
    step there and changes nothing elsewhere. `attention` is the library's implementation: on a CPU, for short rows,
    `eager` beats `sdpa`, whose backward pass takes a third of a step. With `processes` above 1 each of them reads
    `accumulation` micro-batches a step, on the CPU, and has `threads` threads of its own. A checkpoint is written after the last step, and
    at each multiple of `save_steps` where that is not 0.
    """

    steps: Positive = 100
    batch_size: Annotated[int, Field(ge=1, le=512)] = 8
    accumulation: Annotated[int, Field(ge=1, le=64)] = 1
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
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 1024
    loss: Literal["labelled", "stock"] = "labelled"
    order: Literal["random", "grouped"] = "grouped"
    block_rows: Annotated[int, Field(ge=1, le=512)] = 4
    dtype: Literal["float32", "bfloat16"] = "float32"
    matmul: Literal["float32", "bfloat16"] = "float32"
    attention: Literal["eager", "sdpa"] = "eager"
    gradient_checkpointing: bool = False
    seed: Annotated[int, Field(ge=0, lt=SEED_LIMIT)] = 0
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    save_steps: Count = 0

    @model_validator(mode="after")
    def _warmup_fits(self) -> SftSettings:
        if self.warmup_steps >= self.steps:
            message = "warmup_steps is not below steps"
            raise ValueError(message)
        return self


def settings_from(values: Mapping[str, Any]) -> SftSettings:
    """Supervised settings from a plain object; see `Settings.from_values`."""
    return SftSettings.from_values(values)


def read_settings(path: Path) -> SftSettings:
    """Supervised settings from a TOML or JSON file; see `Settings.read`."""
    return SftSettings.read(path)
