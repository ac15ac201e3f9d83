"""The weights that a user's trainer changes, and those that it must not: live tensors, their digest, their files (loads torch)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors import safe_open
from safetensors.torch import save_file

from ledger.errors import EvidenceError, UsageError
from runners.loading import tensors_digest
from verifiers.learning.learner_state import ADAPTER_FILE
from verifiers.learning.tensors import file_state_digest

if TYPE_CHECKING:
    from pathlib import Path

    Tensors = dict[str, torch.Tensor]

MODEL_FILE = "model.safetensors"
_WRAPPED = (".base_layer.", ".original_module.")


class LiveWeights:
    """A trainer's model, seen as what is trained (an adapter, or all of it) and what is not.

    Args:
        model: a PEFT model with one trained adapter, or a whole model.

    Raises:
        UsageError: `ADOPTION_REFUSED`, something else is trained too, which no checkpoint of an adapter would hold.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.adapter: str | None = (
            str(model.active_adapter) if isinstance(model, PeftModel) else None
        )
        trained = sum(item.numel() for item in model.parameters() if item.requires_grad)
        held = sum(tensor.numel() for tensor in self.trained().values())
        if not trained or (self.adapter is not None and trained != held):
            raise UsageError(
                "ADOPTION_REFUSED",
                f"{trained} parameters are trained and the adapter has {held}",
                field="model",
                hint="train an adapter alone, or the whole model",
            )

    @property
    def base(self) -> Any:
        """The model under the adapter, or the model itself."""
        return self.model if self.adapter is None else self.model.get_base_model()

    @property
    def file(self) -> str:
        """The name of the file that holds what is trained."""
        return MODEL_FILE if self.adapter is None else ADAPTER_FILE

    def trained(self) -> Tensors:
        """What is trained, under the names that its file has."""
        if self.adapter is None:
            return self.whole()
        found: Tensors = get_peft_model_state_dict(
            self.model, adapter_name=self.adapter, save_embedding_layers=False
        )
        return found

    def whole(self) -> Tensors:
        """The base model's own tensors under their own names, tied ones once."""
        with torch.device("meta"):
            names = type(self.base)(copy.deepcopy(self.base.config)).state_dict().keys()
        found: Tensors = {}
        places: set[tuple[int, torch.Size]] = set()
        for name, tensor in self.base.state_dict().items():
            plain = name
            for part in _WRAPPED:
                plain = plain.replace(part, ".")
            place = (tensor.data_ptr(), tensor.shape)
            if plain in names and plain not in found and place not in places:
                found[plain] = tensor
                places.add(place)
        return found

    def digest(self) -> str:
        """The state digest of what is trained, as it is now."""
        return tensors_digest(self.trained().items())

    def frozen_digest(self) -> str | None:
        """The state digest of the model under the adapter; None where all is trained."""
        return None if self.adapter is None else tensors_digest(self.whole().items())

    def save(self, folder: Path, state: str, base_name: str) -> None:
        """Write what is trained, with the configuration that loads it; nothing of this machine stands in it.

        Raises:
            EvidenceError: `CHECKPOINT_CHANGED`, what is on disk has another state.
        """
        tensors = {name: item.detach().cpu().contiguous() for name, item in self.trained().items()}
        save_file(tensors, folder / self.file, metadata={"format": "pt"})
        if self.adapter is None:
            self.model.config.save_pretrained(folder)
        else:
            self._config(base_name).save_pretrained(folder)
        with (folder / self.file).open("rb") as stream:
            found = file_state_digest(stream)
        if found != state:
            raise EvidenceError(
                "CHECKPOINT_CHANGED",
                "the weights on disk are not the acknowledged ones",
                expected=state,
                actual=found,
            )

    def _config(self, base_name: str) -> Any:
        config = copy.copy(self.model.peft_config[self.adapter])
        config.base_model_name_or_path, config.inference_mode = base_name, True
        for name, value in vars(config).items():
            if isinstance(value, set):
                setattr(config, name, sorted(value))
        return config


def is_of_folder(tensors: Tensors, folder: Path) -> bool:
    """Whether a model folder's files hold these tensors, in the type that they have in memory."""
    missing = set(tensors)
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118 - a handle of a file, no mapping
                live = tensors.get(name)
                if live is None:
                    continue
                if not torch.equal(stored.get_tensor(name).to(live.dtype), live.detach().cpu()):
                    return False
                missing.discard(name)
    return not missing
