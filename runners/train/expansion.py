"""What the libraries make of a run's settings: every argument of theirs in effect, and the tensors that are trained.

A library's default can change from one version to the next and with it what a run does. So a plan states each argument
of TRL's `SFTConfig` or `GRPOConfig` and PEFT's `LoraConfig` with the value in effect, and the tensors of the model that these make: the
model is built without memory for its numbers, from its configuration alone. The child compares both before it begins.
Paths and the names of machines and accounts are left out. Loads torch and the training libraries.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ledger.canonical import real
from ledger.errors import UsageError
from runners.environment import machine
from runners.train.config import SftSettings
from runners.train.precision import accelerator, check_precision, warnings_of
from runners.train.rl_config import RlSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runners.train.learner_settings import LearnerSettings

_PLACES = ("output_dir", "logging_dir", "run_name", "hub_token", "local_rank")
LEFT_OUT = {
    "SFTConfig": _PLACES,
    "GRPOConfig": _PLACES,
    "LoraConfig": ("base_model_name_or_path", "revision"),
}
"""Arguments that name a place or an account, or that the plan says elsewhere."""


@dataclass(frozen=True)
class Expansion:
    """What a plan says of the libraries.

    Attributes:
        library_settings: each argument by its class and name.
        trained: the summary of the trained tensors (`verifiers.learning.weights`).
        accelerator: its name, None where there is none.
    """

    library_settings: dict[str, Any]
    trained: dict[str, Any]
    accelerator: str | None


def expand(folder: Path, name: str, settings: LearnerSettings) -> Expansion:
    """What the libraries installed here make of settings for a model.

    Args:
        folder: the model's.
        name: its registered name.
        settings: of the run.

    Raises:
        UsageError: `PRECISION_UNSUPPORTED`; `SETTING_INVALID`, the model has no such module or layer.
    """
    from runners.train.adapted import trained_model
    from runners.train.trained import live_summary

    found, has_bf16 = accelerator()
    check_precision(settings, machine().features, has_bf16)
    job = {"model": {"path": str(folder), "name": name}, "output": "unused", "accelerator": found}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn of one another
        effective = in_effect(library_arguments(job, settings), job, settings)
        model = trained_model(_hollow(folder, settings), job, settings)
    return Expansion(effective, live_summary(model), found)


def library_arguments(job: dict[str, Any], settings: LearnerSettings) -> Any:
    """The trainer's arguments, an object of the library's."""
    if isinstance(settings, RlSettings):
        from runners.train.rl_arguments import arguments as of_groups

        return of_groups(job, settings)
    from runners.train.sft import arguments

    assert isinstance(settings, SftSettings)  # the two methods that there are
    return arguments(job, settings)


def expand_body(body: dict[str, Any], folder: Path, name: str, settings: LearnerSettings) -> None:
    """Put what the libraries make of the settings into a plan's body.

    Raises:
        UsageError: see `expand`.
    """
    found = expand(folder, name, settings)
    body |= {"library_settings": found.library_settings, "trained": found.trained}
    body["hardware"]["accelerator"] = found.accelerator
    body["warnings"] += warnings_of(settings)


def in_effect(given: Any, job: Mapping[str, Any], settings: LearnerSettings) -> dict[str, Any]:
    """Every argument of the libraries' configurations with its value, as a record holds it.

    Args:
        given: the trainer's arguments, an `SFTConfig` or a `GRPOConfig`.
        job: names the model's folder.
        settings: of the run.
    """
    from runners.train.adapted import adapter_config

    values = dict(_arguments(type(given).__name__, given))
    if settings.tuning == "lora":
        values |= _arguments("LoraConfig", adapter_config(dict(job), settings))
    return values


def check_expansion(given: Any, job: Mapping[str, Any], settings: LearnerSettings) -> None:
    """Refuse to begin where the libraries would do something else than the plan says, or the hardware cannot.

    Raises:
        UsageError: `PLAN_STALE`, naming the argument; `PRECISION_UNSUPPORTED`.
    """
    check_precision(settings, machine().features, accelerator()[1])
    planned = job.get("library_settings")
    if not planned:
        return
    here = in_effect(given, job, settings)
    for name in sorted(planned.keys() | here.keys()):
        if planned.get(name) != here.get(name):
            raise UsageError(
                "PLAN_STALE",
                f"{name} is {here.get(name)} here and {planned.get(name)} in the plan",
                field=name,
                expected=str(planned.get(name)),
                actual=str(here.get(name)),
            )


def check_trained(model: Any, planned: Mapping[str, Any] | None) -> None:
    """Refuse a model whose trained tensors are not those that the plan states.

    Raises:
        UsageError: `PLAN_STALE`.
    """
    from runners.train.trained import live_summary

    here = live_summary(model)
    if planned and here != planned:
        raise UsageError(
            "PLAN_STALE",
            f"{here['count']} tensors of {here['parameters']} numbers would be trained,"
            f" {planned['count']} of {planned['parameters']} are planned",
            field="trained",
            expected=str(planned["digest"]),
            actual=str(here["digest"]),
        )


def _hollow(folder: Path, settings: LearnerSettings) -> Any:
    """The model of a folder's configuration, with shapes and types and no numbers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]  # the library has no types
            config,
            dtype=getattr(torch, settings.dtype),
            attn_implementation=settings.attention,
            trust_remote_code=False,
        )
    model.tie_weights()
    return model


def _arguments(title: str, config: Any) -> Iterable[tuple[str, Any]]:
    for item in dataclasses.fields(config):
        if not item.name.startswith("_") and item.name not in LEFT_OUT[title]:
            yield f"{title}.{item.name}", plain(getattr(config, item.name))


def plain(value: Any) -> Any:
    """A value as a setting of a record: text, number, truth, null, or a list of texts or integers; else JSON as text."""
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            return real(value)
        case set() | frozenset():
            return plain(sorted(value))
        case list() | tuple():
            items = [plain(item) for item in value]
            if all(type(item) is str for item in items) or all(type(item) is int for item in items):
                return items
    return json.dumps(value, sort_keys=True, default=_as_object)


def _as_object(value: Any) -> Any:
    """What JSON cannot hold by itself: a configuration as its fields, an enumeration as its value.

    Raises:
        TypeError: it is something whose text could name a place in memory.
    """
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"a setting of type {type(value).__name__} has no plain form")
