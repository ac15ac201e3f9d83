"""The tensors that a run trains, live and on disk: an adapter's, or every weight of a model (loads torch).

Tied weights are one parameter and stand once, under the name that the library gives them first. A whole model's folder
can be loaded with `from_pretrained`: its configuration says the type of its weights, and the base's tokenizer and
template lie beside it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peft import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file

from ledger.errors import EvidenceError, UsageError
from runners.loading import DTYPE_NAMES, put_weights, tensors_digest
from runners.prepare.models import TEMPLATE_FILE, TOKENIZER_FILES, check_unchanged
from runners.train.learner import ADAPTER
from verifiers.learning.learner_state import ADAPTER_FILE, MODEL_FILE
from verifiers.learning.weights import summary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

GENERATION_FILE = "generation_config.json"
CARRIED = (*TOKENIZER_FILES, TEMPLATE_FILE, GENERATION_FILE)
"""What a whole model's checkpoint takes from its base as it is."""


def has_adapter(model: Any) -> bool:
    """Whether an adapter is trained on the model."""
    return hasattr(model, "peft_config")


def core(model: Any) -> Any:
    """The causal language model itself, adapter or not: it has `base_model` and `lm_head`."""
    return model.get_base_model() if has_adapter(model) else model


def trained_tensors(model: Any) -> dict[str, torch.Tensor]:
    """The trained tensors in memory, under the names that the file has."""
    if has_adapter(model):
        return dict(get_peft_model_state_dict(model, save_embedding_layers=False))
    return {name: value.detach() for name, value in model.named_parameters()}


def live_state(model: Any) -> str:
    """The state digest of the trained tensors in memory, under the names their file will have."""
    return tensors_digest(trained_tensors(model).items())


def live_summary(model: Any) -> dict[str, Any]:
    """Which tensors are trained, as a plan states it; a model without numbers in memory will do."""
    return summary_of(
        (name, DTYPE_NAMES[value.dtype], tuple(value.shape))
        for name, value in trained_tensors(model).items()
    )


def check_whole(model: Any) -> None:
    """Refuse to train every weight of a model that also keeps numbers which are no weights: a file would lack them.

    Raises:
        UsageError: `SETTING_INVALID`.
    """
    parameters = {id(value) for value in model.parameters()}
    kept = [
        name
        for name, value in model.state_dict(keep_vars=True).items()
        if id(value) not in parameters
    ]
    if kept:
        raise UsageError(
            "SETTING_INVALID",
            f"tuning: the model keeps {kept[0]}, which is no weight and is not trained; use lora",
            field="tuning",
        )


def load_weights(model: Any, checkpoint: Mapping[str, Any]) -> None:
    """Put a checkpoint's trained tensors into the model.

    Raises:
        EvidenceError: `MODEL_FILES_CHANGED`, it is not the checkpoint's folder; `STATE_DIFFERS`, its tensors are others
            than the settings give.
    """
    folder = Path(checkpoint["path"])
    check_unchanged(folder, checkpoint["files"])
    name = ADAPTER_FILE if has_adapter(model) else MODEL_FILE
    if not (folder / name).exists():
        raise EvidenceError(
            "STATE_DIFFERS", f"the checkpoint has no {name}: it was trained in the other way"
        )
    tensors = load_file(folder / name)
    live = {name: value.shape for name, value in trained_tensors(model).items()}
    if {name: value.shape for name, value in tensors.items()} != live:
        raise EvidenceError(
            "STATE_DIFFERS", "the checkpoint's tensors are not those of these settings"
        )
    if has_adapter(model):
        set_peft_model_state_dict(model, tensors)
    else:
        put_weights(model, tensors)
    found = live_state(model)
    if found != checkpoint["state"]:
        raise EvidenceError(
            "STATE_DIFFERS",
            "the weights that were loaded have another state",
            expected=checkpoint["state"],
            actual=found,
        )


def save_trained(model: Any, base: Path, folder: Path) -> None:
    """Write the trained tensors and their configuration into a folder.

    Args:
        model: with an adapter, or whole.
        base: the base model's folder.
        folder: where to write; it exists.
    """
    if has_adapter(model):
        # Another adapter on the model, such as a frozen reference, is not trained.
        model.save_pretrained(folder, save_embedding_layers=False, selected_adapters=[ADAPTER])
        return
    tensors = {name: value.cpu().contiguous() for name, value in trained_tensors(model).items()}
    save_file(tensors, folder / MODEL_FILE, metadata={"format": "pt"})
    # The base's own configuration: the trainer changed the live one for its own ends.
    config = json.loads((base / "config.json").read_bytes())
    config.pop("torch_dtype", None)
    config["dtype"] = str(model.dtype).removeprefix("torch.")
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    for name in CARRIED:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
