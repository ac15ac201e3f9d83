"""The weights a sampler gets: the base model's with the adapter added, written beside, never into the live ones.

Merging and unmerging in place is not exact, so the sum is made tensor by tensor into a file of its own.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file

from verifiers.learning.tensors import file_state_digest

if TYPE_CHECKING:
    from pathlib import Path

    import torch

WEIGHTS = "model.safetensors"
BESIDE = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
_BASE = ".base_layer"


def merged_tensors(peft_model: Any, adapter: str = "default") -> dict[str, torch.Tensor]:
    """The whole model's tensors under the base model's names, the adapter added where it has a part.

    A tensor that another one shares its memory with (a tied head) stands once, under its first name.
    """
    base = peft_model.get_base_model()
    modules = dict(base.named_modules())
    merged: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in base.state_dict().items():
        if ".lora_" in name or tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        value = tensor.detach()
        if name.endswith(f"{_BASE}.weight"):
            layer = modules[name.rsplit(_BASE, 1)[0]]
            value = value + layer.get_delta_weight(adapter).to(value.dtype)
        merged[name.replace(_BASE, "")] = value.contiguous()
    return merged


def write_merged(peft_model: Any, model_folder: Path, folder: Path) -> str:
    """Write the merged weights, and once what a server needs beside them; the state digest of the file.

    The file is written aside and renamed, so that a server never reads half of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in BESIDE:
        if (model_folder / name).is_file() and not (folder / name).exists():
            shutil.copyfile(model_folder / name, folder / name)
    aside = folder / f"{WEIGHTS}.new"
    save_file(merged_tensors(peft_model), aside, metadata={"format": "pt"})
    with aside.open("rb") as stream:
        digest = file_state_digest(stream)
    aside.replace(folder / WEIGHTS)
    return digest
