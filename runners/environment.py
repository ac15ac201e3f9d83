"""What a run stands on: the machine, the library versions, and the environment a child process gets.

Everything here is read without loading a training library, so a plan can state it and a verifier can compare it.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TRAIN_LIBRARIES = (
    "accelerate",
    "datasets",
    "numpy",
    "peft",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
    "trl",
)
"""The libraries whose versions can change a training or generation result."""

FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_tile")
"""Processor features that select other kernels and therefore other last bits."""

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
}
"""What keeps a child off the network and its hashing the same from run to run."""

_KEPT = frozenset(
    [
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
        "WINDIR",
    ]
)


@dataclass(frozen=True)
class Machine:
    """The hardware a result may be bit-exact on: processor kind, its features, cores and memory in bytes."""

    processor: str
    features: tuple[str, ...]
    cores: int
    memory_bytes: int
    system: str
    python: str

    def as_dict(self) -> dict[str, str | int | list[str]]:
        """The machine as a JSON object."""
        return {**asdict(self), "features": list(self.features)}


def machine() -> Machine:
    """The machine this process runs on."""
    facts = _cpuinfo()
    present = set(facts.get("flags", "").split())
    return Machine(
        processor=facts.get("model name") or platform.processor() or platform.machine(),
        features=tuple(flag for flag in FLAGS if flag in present),
        cores=usable_cores(),
        memory_bytes=_memory_bytes(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
    )


def usable_cores() -> int:
    """How many cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def library_versions(names: Iterable[str] = TRAIN_LIBRARIES) -> dict[str, str]:
    """Installed versions by distribution name; a library that is not installed is left out."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def child_environment(parent: Mapping[str, str], threads: int) -> dict[str, str]:
    """The environment of a child that runs model code: a short list of harmless variables, nothing else.

    A list of what passes, not of what is held back: a secret under a name nobody thought of stays here too.

    Args:
        parent: the environment of the calling process.
        threads: how many threads the numeric libraries may use.
    """
    kept = {name: value for name, value in parent.items() if name in _KEPT}
    pinned = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # Waiting threads that spin starve whoever else works on the cores, and then the step itself.
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "PYTHONUNBUFFERED": "1",
    }
    return {**kept, **OFFLINE, **pinned}


def interpreter() -> str:
    """The Python that children run on: the one of this process."""
    return sys.executable


def _cpuinfo(path: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    if not path.exists():
        return {}
    first, _, _ = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _memory_bytes() -> int:
    if not hasattr(os, "sysconf"):
        return 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
