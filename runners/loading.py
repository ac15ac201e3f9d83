"""Models into memory: from local safetensors only, after their files were hashed again (loads torch)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from ledger.errors import EvidenceError
from runners.prepare.models import check_unchanged, checked_files
from runners.train.checkpoints import adapter_state_digest
from verifiers.learning.learner_state import MODEL_FILE
from verifiers.learning.tensors import StateDigest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from transformers import PreTrainedModel

DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""A torch type as a safetensors file names it."""


def load_model(model: Mapping[str, Any], dtype: str, attention: str = "sdpa") -> PreTrainedModel:
    """A causal language model from its registered folder.

    Args:
        model: `path` of the folder and `files`, its registered inventory.
        dtype: `float32` or `bfloat16`.
        attention: the library's name of an implementation, `sdpa` or `eager`.

    Raises:
        EvidenceError: `MODEL_FILES_CHANGED`, `MODEL_UNSAFE` or `UNSAFE_PATH`: it is not what was registered.
    """
    folder = Path(model["path"])
    checked_files(folder)
    check_unchanged(folder, model["files"])
    loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=getattr(torch, dtype),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        attn_implementation=attention,
    )
    return loaded


def merge_adapter(model: PreTrainedModel, adapter: Mapping[str, Any] | None) -> PreTrainedModel:
    """The model with a checkpoint's weights, ready to answer; as it is where there is none.

    An adapter's are added to the model's own; where every weight was trained they take their place.

    Args:
        model: the base, freshly loaded.
        adapter: `path` of the checkpoint, `files`, its registered inventory, and `state`, its state digest.

    Raises:
        EvidenceError: `MODEL_FILES_CHANGED`, `CHECKPOINT_CHANGED` or `UNSAFE_PATH`: it is not that checkpoint.
    """
    if adapter is None:
        model.train(mode=False)
        return model
    folder = Path(adapter["path"])
    check_unchanged(folder, adapter["files"])
    found = adapter_state_digest(folder)
    if found != adapter["state"]:
        raise EvidenceError(
            "CHECKPOINT_CHANGED",
            f"{folder.name} has another state",
            expected=adapter["state"],
            actual=found,
        )
    if (folder / MODEL_FILE).exists():
        put_weights(model, load_file(folder / MODEL_FILE))
        model.train(mode=False)
        return model
    adapted: Any = PeftModel.from_pretrained(model, folder)
    merged: PreTrainedModel = adapted.merge_and_unload()
    merged.train(mode=False)
    return merged


def put_weights(model: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put a whole model's weights in the place of its own, in the type that these have.

    Raises:
        EvidenceError: `STATE_DIFFERS`, they are not the weights of this model.
    """
    live = dict(model.named_parameters())
    if {name: value.shape for name, value in live.items()} != {
        name: value.shape for name, value in tensors.items()
    }:
        raise EvidenceError("STATE_DIFFERS", "the weights are not those of this model")
    with torch.no_grad():
        for name, value in live.items():
            value.copy_(tensors[name])


def tensors_digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """The state digest of live tensors under the names a file would give them; see `verifiers.learning.tensors`."""
    state = StateDigest()
    for name, tensor in sorted(tensors, key=lambda pair: pair[0]):
        data = tensor.detach().cpu().contiguous()
        raw = data.reshape(-1).view(torch.uint8).numpy().data
        state.add(name, DTYPE_NAMES[data.dtype], data.shape, [raw], raw.nbytes)
    return state.value()
