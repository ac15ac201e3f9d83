"""What a checkpoint holds of a learner's state, derived from its bytes alone, without torch.

A complete checkpoint is the configuration and the tensors of an adapter or of a whole model, `optimizer.safetensors`
(two moments and a step count for each trained tensor), `random.safetensors` (the generators of Python, NumPy and torch)
and `learner.json` (schedule, groups of the optimizer, scaler, sampler, counters). Whoever has them can go on exactly where
the run stood. A part that is absent is not there; a part whose file is broken is an error, never a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.digests import open_regular
from ledger.errors import EvidenceError
from verifiers.learning.tensors import TensorEntry, check_covered, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from pathlib import Path
    from typing import BinaryIO

    Opener = Callable[[], BinaryIO]

ADAPTER_FILE = "adapter_model.safetensors"
MODEL_FILE = "model.safetensors"
WEIGHT_FILES = (ADAPTER_FILE, MODEL_FILE)
"""Where the trained tensors lie: an adapter's, or a whole model's."""

CONFIG_FILE = "adapter_config.json"
OPTIMIZER_FILE = "optimizer.safetensors"
RANDOM_FILE = "random.safetensors"
LEARNER_FILE = "learner.json"
ROLLOUTS_FILE = "rollouts.safetensors"
"""Completions that updates to come still read, where a run is one of groups."""
KNOWN_FILES = frozenset(
    {
        *WEIGHT_FILES,
        CONFIG_FILE,
        OPTIMIZER_FILE,
        RANDOM_FILE,
        LEARNER_FILE,
        ROLLOUTS_FILE,
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
    }
)
"""Every file that a checkpoint may have; a whole model's has a configuration and its base's tokenizer and template too."""

FORMAT = 1
PARTS = ("weights", "optimizer", "scheduler", "random", "sampler")
MOMENTS = ("exp_avg", "exp_avg_sq")
STEP = "step"
STEP_TYPE = "F32"
"""Steps are counted in float32 by the library; a moment has the type of its tensor."""
GENERATORS = {"python": ("I64", (625,)), "numpy": ("I64", (624,)), "torch": ("U8", None)}
"""Each generator's tensor: its type, and its shape where that is fixed. `cuda.N` may stand beside them."""
POSITIONS = ("python", "numpy")
"""The generators of which `learner.json` holds what is no tensor."""
MAX_LEARNER_BYTES = 1 << 20
_RANK = "rank."


def of_rank(rank: int, name: str) -> str:
    """A generator's name in the files: rank 0 has its own, the others are told apart by their number."""
    return name if rank == 0 else f"{_RANK}{rank}.{name}"


def parts_of_folder(folder: Path, step: int, processes: int = 1) -> dict[str, bool]:
    """Which parts a checkpoint folder holds; see `parts_of`.

    Raises:
        EvidenceError: see `parts_of`; `UNSAFE_PATH`, one of its files is a link.
    """
    return parts_of(openers(folder), step, processes)


def openers(folder: Path) -> dict[str, Opener]:
    """What opens each file of a checkpoint folder that holds tensors or the learner's state, by name."""
    names = (*WEIGHT_FILES, OPTIMIZER_FILE, RANDOM_FILE, LEARNER_FILE)
    return {name: _opener(folder / name) for name in names if (folder / name).exists()}


def weights_file(names: Container[str]) -> str:
    """Which of a checkpoint's files holds its trained tensors.

    Raises:
        EvidenceError: `CHECKPOINT_WRONG`, none does, or two.
    """
    there = [name for name in WEIGHT_FILES if name in names]
    if len(there) != 1:
        raise EvidenceError(
            "CHECKPOINT_WRONG",
            f"a checkpoint has one of {' and '.join(WEIGHT_FILES)}, this one {len(there)}",
            field=ADAPTER_FILE,
        )
    return there[0]


def parts_of(files: Mapping[str, Opener], step: int, processes: int = 1) -> dict[str, bool]:
    """Which parts of a learner's state some files hold, by the names of `PARTS`.

    Args:
        files: opens each file by its path within the checkpoint.
        step: the optimizer step after which they were written.
        processes: how many processes the run has; the random generators of each must be there, and no more.

    Raises:
        EvidenceError: `TENSORS_INVALID`, a file of tensors cannot be read; `STATE_MALFORMED`, `learner.json` cannot, or
            is of another format.
    """
    trained = [_tensors(files, name) for name in WEIGHT_FILES if name in files]
    adapter = trained[0] if len(trained) == 1 else {}
    moments = _tensors(files, OPTIMIZER_FILE)
    generators = _tensors(files, RANDOM_FILE)
    learner = read_learner(files[LEARNER_FILE]) if LEARNER_FILE in files else {}
    return {
        "weights": bool(adapter),
        "optimizer": bool(adapter)
        and _has_moments(adapter, moments)
        and _names_of_groups(learner) == sorted(adapter),
        "scheduler": _last_epoch(learner) == step,
        "random": _has_generators(generators, processes)
        and _has_positions(learner.get("random"), processes),
        "sampler": _counters(learner) == step and rows_read(learner) is not None,
    }


def read_learner(opened: Opener) -> dict[str, Any]:
    """The object of `learner.json`.

    Raises:
        EvidenceError: `STATE_MALFORMED`, it is too long, not canonical, no object, or of another format.
    """
    with opened() as stream:
        data = stream.read(MAX_LEARNER_BYTES + 1)
    if len(data) > MAX_LEARNER_BYTES:
        raise EvidenceError("STATE_MALFORMED", f"{LEARNER_FILE} is over {MAX_LEARNER_BYTES} bytes")
    try:
        value = canonical.decode(data)
    except EvidenceError as error:
        raise EvidenceError("STATE_MALFORMED", f"{LEARNER_FILE}: {error.message}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise EvidenceError("STATE_MALFORMED", f"{LEARNER_FILE} is not of format {FORMAT}")
    return value


def rows_read(learner: Mapping[str, Any]) -> int | None:
    """How many rows the sampler has handed out, from its epoch and its position in it; None where it does not say."""
    match learner.get("sampler"):
        case {"epoch": int(epoch), "position": int(position), "rows": int(rows)} if (
            0 <= position < rows and epoch >= 0
        ):
            return epoch * rows + position
    return None


def _opener(path: Path) -> Opener:
    return lambda: open_regular(path)


def _tensors(files: Mapping[str, Opener], name: str) -> dict[str, TensorEntry]:
    if name not in files:
        return {}
    with files[name]() as stream:
        entries = read_header(stream)
        check_covered(stream, entries)
    return {entry.name: entry for entry in entries}


def _has_moments(adapter: Mapping[str, TensorEntry], moments: Mapping[str, TensorEntry]) -> bool:
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, entry in adapter.items():
        wanted |= {f"{moment}.{name}": (entry.dtype, entry.shape) for moment in MOMENTS}
        wanted[f"{STEP}.{name}"] = (STEP_TYPE, ())
    return {name: (entry.dtype, entry.shape) for name, entry in moments.items()} == wanted


def _has_generators(found: Mapping[str, TensorEntry], processes: int) -> bool:
    wanted = {
        of_rank(rank, name): form for rank in range(processes) for name, form in GENERATORS.items()
    }
    strangers = {name for name in found if name.startswith(_RANK)} - wanted.keys()
    return not strangers and all(
        name in found
        and found[name].dtype == dtype
        and (shape is None or found[name].shape == shape)
        for name, (dtype, shape) in wanted.items()
    )


def _has_positions(random: Any, processes: int) -> bool:
    """One process may leave them out, as checkpoints of before did not name them one by one."""
    return isinstance(random, dict) and all(
        of_rank(rank, name) in random for rank in range(1, processes) for name in POSITIONS
    )


def _names_of_groups(learner: Mapping[str, Any]) -> list[str]:
    match learner.get("optimizer"):
        case {"groups": [*groups]} if all(
            isinstance(group, dict) and isinstance(group.get("params"), list) for group in groups
        ):
            return sorted(str(name) for group in groups for name in group["params"])
    return []


def _last_epoch(learner: Mapping[str, Any]) -> int | None:
    match learner.get("scheduler"):
        case {"last_epoch": int(last)}:
            return last
    return None


def _counters(learner: Mapping[str, Any]) -> int | None:
    match learner.get("counters"):
        case {"updates": int(updates)}:
            return updates
    return None
