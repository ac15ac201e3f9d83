"""The settings of supervised fine-tuning: every one explicit, none read from anywhere else (torch-free).

A settings file names only what differs from the defaults. What is planned, recorded and handed to the child is the
whole of `SftSettings`, real numbers as text.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ledger.canonical import parse_real, real
from ledger.errors import EvidenceError, UsageError
from runners.seeding import SEED_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class SftSettings(BaseModel):
    """Every effective setting of a supervised run.

    Lengths are in tokens, `steps` in optimizer steps, `batch_size` in rows of one micro-batch. `first_layer` is the
    lowest transformer layer with an adapter: below it nothing is trained and no gradient is computed. `order` and
    `block_rows`: see `runners.train.order`; `loss`: see `runners.train.loss`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

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
    gradient_checkpointing: bool = False
    seed: Annotated[int, Field(ge=0, lt=SEED_LIMIT)] = 0
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    save_steps: Count = 0
    """A checkpoint is written after the last step, and at each multiple of this where it is not 0."""

    @model_validator(mode="after")
    def _warmup_fits(self) -> SftSettings:
        if self.warmup_steps >= self.steps:
            message = "warmup_steps is not below steps"
            raise ValueError(message)
        return self

    def effective(self) -> dict[str, str | int | bool | list[str]]:
        """Every setting as a record holds it: real numbers as text, lists as lists."""
        return {name: _recorded(value) for name, value in self.model_dump().items()}


def settings_from(values: Mapping[str, Any]) -> SftSettings:
    """Settings from a plain object; what it leaves out has its default.

    Real numbers may be text as records hold them, integers stand for real numbers.

    Raises:
        UsageError: `SETTING_UNKNOWN`, with the nearest name; `SETTING_INVALID`, with the field and its bound.
    """
    for name in values:
        if name not in SftSettings.model_fields:
            raise _unknown(name)
    try:
        return SftSettings(**{name: _plain(name, value) for name, value in values.items()})
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "settings"
        raise UsageError(
            "SETTING_INVALID", f"{field}: {_lower(first['msg'])}", field=field
        ) from None


def read_settings(path: Path) -> SftSettings:
    """Settings from a TOML file, or a JSON file by its suffix `.json`.

    Raises:
        UsageError: `SETTING_UNKNOWN` or `SETTING_INVALID`, also where the file is no TOML or JSON object or has a
            key twice.
    """
    text = path.read_text(encoding="utf-8")
    try:
        values = _json_object(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            "SETTING_INVALID", f"{path.name} cannot be read: {_lower(str(error))}"
        ) from None
    if not isinstance(values, dict):
        raise UsageError("SETTING_INVALID", f"{path.name} is no object of settings")
    return settings_from(values)


def _json_object(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError("SETTING_INVALID", f"{name} is set twice", field=name)
    return dict(pairs)


def _unknown(name: str) -> UsageError:
    near = difflib.get_close_matches(name, SftSettings.model_fields, n=1)
    nearest = f"; the nearest is {near[0]}" if near else ""
    return UsageError("SETTING_UNKNOWN", f"no setting is named {name}{nearest}", field=name)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if SftSettings.model_fields[name].annotation is not float:
        return value
    if isinstance(value, str):
        return _real(name, value)
    return float(value) if type(value) is int else value


def _real(name: str, text: str) -> float:
    try:
        return parse_real(text)
    except EvidenceError as error:
        raise UsageError("SETTING_INVALID", f"{name}: {error.message}", field=name) from None


def _recorded(value: Any) -> Any:
    if isinstance(value, float):
        return real(value)
    return list(value) if isinstance(value, tuple) else value


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
