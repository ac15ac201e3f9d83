"""A model made ready to be trained: with an adapter on it, or every weight of it (the training libraries loaded late)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError

if TYPE_CHECKING:
    from runners.train.learner_settings import LearnerSettings


def trained_model(base: Any, job: dict[str, Any], settings: LearnerSettings) -> Any:
    """A base model made ready to be trained: with a fresh adapter, or every weight of it.

    Raises:
        UsageError: `SETTING_INVALID`, the model has no module of a target's name, or no such layer.
    """
    from peft import get_peft_model

    from runners.train.trained import check_whole

    if settings.tuning == "full":
        check_whole(base)
        return base
    names = {name.rpartition(".")[2] for name, _ in base.named_modules()}
    for target in settings.lora_targets:
        if target not in names:
            raise UsageError(
                "SETTING_INVALID", f"the model has no module named {target}", field="lora_targets"
            )
    model = get_peft_model(base, adapter_config(job, settings))
    # The adapter's file names the base model; the library would write this machine's path to it.
    model.peft_config["default"].base_model_name_or_path = job["model"]["name"]
    model.peft_config["default"].revision = job["model"].get("revision")
    return model


def adapter_config(job: dict[str, Any], settings: LearnerSettings) -> Any:
    """The LoRA adapter of the settings."""
    from peft import LoraConfig

    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=list(settings.lora_targets),
        layers_to_transform=layers(job, settings) if settings.first_layer else None,
        layers_pattern="layers" if settings.first_layer else None,
        task_type="CAUSAL_LM",
    )


def layers(job: dict[str, Any], settings: LearnerSettings) -> list[int]:
    """The transformer layers that carry an adapter.

    Raises:
        UsageError: `SETTING_INVALID`, the model has fewer layers than `first_layer`.
    """
    from ledger.canonical import loads

    count = int(
        loads((Path(job["model"]["path"]) / "config.json").read_bytes())["num_hidden_layers"]
    )
    if settings.first_layer >= count:
        raise UsageError(
            "SETTING_INVALID",
            f"first_layer is not below the model's {count} layers",
            field="first_layer",
        )
    return list(range(settings.first_layer, count))
