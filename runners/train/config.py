"""The settings of supervised fine-tuning: every one explicit, none read from anywhere else (torch-free)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from runners.train.learner_settings import Count, LearnerSettings

if TYPE_CHECKING:
    from pathlib import Path

ADAPTER_SETTINGS = ("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "first_layer")
"""What only an adapter has."""


class SftSettings(LearnerSettings):
    """Every effective setting of a supervised run; see `LearnerSettings` for those that every run has.

    Lengths are in tokens, `batch_size` in rows of one micro-batch. `order` and `block_rows`: see `runners.train.order`;
    `loss`: see `runners.train.loss`. With `processes` above 1 each of them reads `accumulation` micro-batches a step, on
    the CPU, and has `threads` threads of its own; one that waits `rank_wait_s` seconds for another at an exchange ends the
    run, which names the other.

    With `tuning` at `full` every weight of the model is trained, and the settings of the adapter (`ADAPTER_SETTINGS`)
    are absent: recorded as null, refused where they are given. With `eval_steps` the mean loss over up to `eval_rows`
    validation rows is taken after each so many steps. `packing` is off, and cannot be on.
    """

    batch_size: Annotated[int, Field(ge=1, le=512)] = 8
    accumulation: Annotated[int, Field(ge=1, le=64)] = 1
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 1024
    loss: Literal["labelled", "stock"] = "labelled"
    order: Literal["random", "grouped"] = "grouped"
    block_rows: Annotated[int, Field(ge=1, le=512)] = 4
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
