"""The settings of supervised fine-tuning: every one explicit, none read from anywhere else (torch-free)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ledger.records.base import DIGEST_PATTERN
from runners.seeding import SEED_LIMIT
from runners.settings import Day, Settings
from runners.torchrun import RANK_WAIT_S
from runners.train.foreign_names import FOREIGN

if TYPE_CHECKING:
    from pathlib import Path

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

ADAPTER_SETTINGS = ("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "first_layer")
"""What only an adapter has."""

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
    `accumulation` micro-batches a step, on the CPU, and has `threads` threads of its own; one that waits
    `rank_wait_s` seconds for another at an exchange ends the run, which names the other. A checkpoint is written after the last step, and
    at each multiple of `save_steps` where that is not 0. `chat_template` is the digest of a template in place of the
    model's own (a file's path in a configuration), `template_date` the day that a template is told which asks for it.

    With `tuning` at `full` every weight of the model is trained, and the settings of the adapter (`ADAPTER_SETTINGS`)
    are absent: recorded as null, refused where they are given. `dtype` is that of the base model's weights; an adapter's
    own stay in float32. `autocast` computes matrix products in bfloat16 and leaves the weights as they are. With
    `eval_steps` the mean loss over up to `eval_rows` validation rows is taken after each so many steps. `packing` is
    off, and cannot be on.
    """

    foreign: ClassVar[Mapping[str, str]] = FOREIGN

    tuning: Literal["lora", "full"] = "lora"
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
    eval_steps: Count = 0
    eval_rows: Annotated[int, Field(ge=1, le=65_536)] = 256
    packing: bool = False

    @model_validator(mode="after")
    def _fits(self) -> SftSettings:
        given = sorted(self.model_fields_set.intersection(ADAPTER_SETTINGS))
        if self.warmup_steps >= self.steps:
            raise ValueError("warmup_steps is not below steps")
        if self.tuning == "full" and given:
            raise ValueError(f"{given[0]} is a setting of an adapter, and tuning is full")
        if self.packing:
            raise ValueError(
                "packing is not there: rows of a pack would be one sequence, and a step could not name what it read"
            )
        return self

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, from_toml: bool = False) -> Self:
        """Settings from a plain object; see `Settings.from_values`. An adapter's may be null where there is none."""
        if values.get("tuning") == "full":
            absent = {name for name in ADAPTER_SETTINGS if values.get(name, 0) is None}
            values = {name: value for name, value in values.items() if name not in absent}
        return super().from_values(values, from_toml=from_toml)

    def effective(self) -> dict[str, Any]:
        """Every setting as a record holds it; those of an adapter are null where every weight is trained."""
        values = super().effective()
        return values | dict.fromkeys(ADAPTER_SETTINGS) if self.tuning == "full" else values


def settings_from(values: Mapping[str, Any]) -> SftSettings:
    """Supervised settings from a plain object; see `Settings.from_values`."""
    return SftSettings.from_values(values)


def read_settings(path: Path) -> SftSettings:
    """Supervised settings from a TOML or JSON file; see `Settings.read`."""
    return SftSettings.read(path)
