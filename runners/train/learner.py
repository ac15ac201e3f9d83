"""A learner's state to files and back: optimizer, schedule, scaler, random generators, sampler, counters (loads torch).

Nothing is pickled. Tensors go to safetensors, everything else to canonical JSON; both come out the same byte for byte
for the same state, so two learners are in the same state exactly where their files have the same digests. After a
state was put back it is written down again in memory and compared: a part that did not take is noticed before a step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load, save

from ledger import canonical
from ledger.canonical import parse_real, real
from ledger.digests import sha256
from ledger.errors import EvidenceError
from runners.train.ranks import ALONE, Ranks
from verifiers.learning.learner_state import (
    FORMAT,
    GENERATORS,
    LEARNER_FILE,
    MOMENTS,
    OPTIMIZER_FILE,
    RANDOM_FILE,
    STEP,
    of_rank,
    parts_of_folder,
    read_learner,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = (OPTIMIZER_FILE, RANDOM_FILE, LEARNER_FILE)
ADAPTER = "default"
_PYTHON_VERSION = 3
_NUMPY_NAME = "MT19937"


@dataclass
class Learner:
    """The live objects whose state this is.

    Attributes:
        model: with the adapter on it.
        optimizer: any AdamW of torch, wrapped or not.
        scheduler: of the learning rate.
        scaler: of the gradients, None where there is none.
    """

    model: Any
    optimizer: Any
    scheduler: Any
    scaler: Any


def state_files(
    learner: Learner,
    sampler: Mapping[str, Any],
    counters: Mapping[str, int],
    ranks: Ranks = ALONE,
) -> dict[str, bytes]:
    """The files of the state as it is now, by name.

    Args:
        learner: the live objects.
        sampler: epoch, position in it, rows of an epoch.
        counters: updates done and what else the trainer counts.
        ranks: whose random generators it holds; all of them ask at once, and all get the same files.

    Raises:
        UsageError: `CHILD_DIED`, a rank is gone.
    """
    generators, scalars = random_states(ranks)
    value = {
        "format": FORMAT,
        "optimizer": {"groups": _groups(learner)},
        "scheduler": packed(learner.scheduler.state_dict()),
        "scaler": None if learner.scaler is None else packed(learner.scaler.state_dict()),
        "random": scalars,
        "sampler": dict(sampler),
        "counters": dict(counters),
    }
    return {
        OPTIMIZER_FILE: save(_moments(learner)),
        RANDOM_FILE: save(generators),
        LEARNER_FILE: canonical.encode(value),
    }


def restore(learner: Learner, folder: Path) -> None:
    """Put optimizer, schedule and scaler back as a complete checkpoint's files say; the generators come later.

    Raises:
        EvidenceError: `STATE_DIFFERS`, it is of another optimizer or adapter; `STATE_MALFORMED`.
    """
    value = _read(folder)
    tensors = load((folder / OPTIMIZER_FILE).read_bytes())
    names = _names(learner)
    if {f"{STEP}.{name}" for name in names.values()} != {
        name for name in tensors if name.startswith(f"{STEP}.")
    }:
        raise EvidenceError("STATE_DIFFERS", "the optimizer's state is of another adapter")
    learner.optimizer.load_state_dict(_state_dict(learner, value, tensors, names))
    learner.scheduler.load_state_dict(unpacked(value["scheduler"]))
    if (value["scaler"] is None) != (learner.scaler is None):
        raise EvidenceError("STATE_DIFFERS", "the state has a scaler or lacks the run's")
    if learner.scaler is not None:
        learner.scaler.load_state_dict(unpacked(value["scaler"]))


def check_complete(folder: Path, step: int, processes: int = 1) -> None:
    """Refuse a checkpoint from which a run cannot go on exactly.

    Raises:
        EvidenceError: `STATE_INCOMPLETE`, naming the parts that are not there; `STATE_MALFORMED` or `TENSORS_INVALID`.
    """
    absent = [name for name, there in parts_of_folder(folder, step, processes).items() if not there]
    if absent:
        raise EvidenceError(
            "STATE_INCOMPLETE",
            f"checkpoint {folder.name} lacks {', '.join(absent)} of step {step}",
            field=absent[0],
        )


def counters_of(folder: Path) -> dict[str, int]:
    """The trainer's counters of a checkpoint.

    Raises:
        EvidenceError: `STATE_MALFORMED`.
    """
    return dict(_read(folder)["counters"])


def check_restored(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """The digests of the state that was put back, which are those of the checkpoint's files.

    Args:
        folder: the checkpoint.
        files: what `state_files` gives after everything was put back.

    Raises:
        EvidenceError: `STATE_DIFFERS`, the live state is not the one on disk.
    """
    for name, data in files.items():
        expected, actual = sha256((folder / name).read_bytes()), sha256(data)
        if expected != actual:
            raise EvidenceError(
                "STATE_DIFFERS",
                f"{name} was not put back as it was",
                field=name,
                expected=expected,
                actual=actual,
            )
    return {name: sha256(data) for name, data in files.items()}


# --- random generators ------------------------------------------------------------------------------


def random_state() -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Every generator's state: tensors by name, and what of it is no tensor."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 - libraries draw from this one
    tensors = {
        "python": torch.tensor(words, dtype=torch.int64),
        "numpy": torch.from_numpy(np.asarray(keys).astype(np.int64)),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        tensors |= {f"cuda.{n}": item for n, item in enumerate(torch.cuda.get_rng_state_all())}
    scalars = {
        "python": {"version": version, "gauss": packed(gauss)},
        "numpy": {
            "name": str(name),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached": packed(float(cached)),
        },
    }
    return tensors, scalars


def random_states(ranks: Ranks) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The generators of all processes, each rank's under its own names.

    Raises:
        UsageError: `CHILD_DIED`, a rank is gone.
    """
    own, scalars = random_state()
    tensors: dict[str, torch.Tensor] = {}
    for rank, data in enumerate(ranks.gather(save(own))):
        tensors |= {of_rank(rank, name): tensor for name, tensor in load(data).items()}
    more: dict[str, Any] = {}
    for rank, data in enumerate(ranks.gather(canonical.encode(scalars))):
        more |= {of_rank(rank, name): value for name, value in canonical.decode(data).items()}
    return tensors, more


def restore_random(folder: Path, rank: int = 0) -> None:
    """Put every generator of a process back.

    Raises:
        EvidenceError: `STATE_DIFFERS`, a generator is of another kind than here.
    """
    saved = load((folder / RANDOM_FILE).read_bytes())
    tensors = {name: saved[of_rank(rank, name)] for name in GENERATORS}
    scalars = _read(folder)["random"]
    python, other = scalars[of_rank(rank, "python")], scalars[of_rank(rank, "numpy")]
    if python["version"] != _PYTHON_VERSION or other["name"] != _NUMPY_NAME:
        raise EvidenceError("STATE_DIFFERS", "a random generator is of another kind than here")
    random.setstate(
        (python["version"], tuple(tensors["python"].tolist()), unpacked(python["gauss"]))
    )
    keys = tensors["numpy"].numpy().astype(np.uint32)
    cached = unpacked(other["cached"])
    np.random.set_state((other["name"], keys, other["position"], other["has_gauss"], cached))  # noqa: NPY002 - the same
    torch.set_rng_state(tensors["torch"])
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        torch.cuda.set_rng_state_all([saved[f"cuda.{n}"] for n in range(count)])


# --- optimizer --------------------------------------------------------------------------------------


def adapter_names(model: Any) -> dict[int, str]:
    """Trainable parameters by identity, under the names that the adapter's file gives them."""
    return {
        id(parameter): name.replace(f".{ADAPTER}.", ".")
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def _names(learner: Learner) -> dict[int, str]:
    """Names by the number that the optimizer's own state gives each parameter."""
    of_parameter = adapter_names(learner.model)
    ordered = [p for group in learner.optimizer.param_groups for p in group["params"]]
    return {number: of_parameter[id(p)] for number, p in enumerate(ordered)}


def _moments(learner: Learner) -> dict[str, torch.Tensor]:
    names = _names(learner)
    state = learner.optimizer.state_dict()["state"]
    return {
        f"{part}.{names[number]}": parts[part].detach().cpu().contiguous()
        for number, parts in state.items()
        for part in (*MOMENTS, STEP)
    }


def _groups(learner: Learner) -> list[dict[str, Any]]:
    names = _names(learner)
    return [
        {
            **{name: packed(value) for name, value in group.items() if name != "params"},
            "params": [names[number] for number in group["params"]],
        }
        for group in learner.optimizer.state_dict()["param_groups"]
    ]


def _state_dict(
    learner: Learner,
    value: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
    names: Mapping[int, str],
) -> dict[str, Any]:
    numbers = {name: number for number, name in names.items()}
    groups = [
        {
            **{name: unpacked(item) for name, item in group.items() if name != "params"},
            "params": [numbers[name] for name in group["params"]],
        }
        for group in value["optimizer"]["groups"]
    ]
    live = [group["params"] for group in learner.optimizer.state_dict()["param_groups"]]
    if [group["params"] for group in groups] != live:
        raise EvidenceError("STATE_DIFFERS", "the optimizer's groups are not those of this run")
    state = {
        number: {part: tensors[f"{part}.{name}"] for part in (*MOMENTS, STEP)}
        for number, name in names.items()
    }
    return {"state": state, "param_groups": groups}


# --- plain values -----------------------------------------------------------------------------------


def packed(value: Any) -> Any:
    """A value of plain Python as canonical JSON can hold it: real numbers and tuples are marked as such."""
    if isinstance(value, float):
        return {"real": real(value)}
    if isinstance(value, tuple):
        return {"tuple": [packed(item) for item in value]}
    if isinstance(value, list):
        return [packed(item) for item in value]
    if isinstance(value, dict):
        return {str(name): packed(item) for name, item in value.items()}
    return value


def unpacked(value: Any) -> Any:
    """What `packed` was given."""
    match value:
        case {"real": str(text), **rest} if not rest:
            return parse_real(text)
        case {"tuple": [*items], **rest} if not rest:
            return tuple(unpacked(item) for item in items)
        case dict():
            return {name: unpacked(item) for name, item in value.items()}
        case list():
            return [unpacked(item) for item in value]
    return value


def _read(folder: Path) -> dict[str, Any]:
    return read_learner(lambda: (folder / LEARNER_FILE).open("rb"))
