"""Seeds: one number in the plan, one independent stream for each use of it.

A run's own seed and the seeds derived from it never collide with those of a sibling run whose seed differs by one,
because every stream is a hash of the whole path that leads to it.
"""

from __future__ import annotations

import hashlib

from ledger.errors import UsageError

SEED_LIMIT = 2**32
"""Seeds are below this, the largest that numpy's legacy generator accepts."""


def derive(seed: int, *path: str | int) -> int:
    """The seed of one stream of a run, e.g. `derive(7, "rollout", 12)`.

    Args:
        seed: the run's seed, 0 to 2^32-1.
        path: what the stream is for; order and type matter (`1` and `"1"` are different streams).

    Raises:
        UsageError: `SETTING_INVALID`, the seed is out of range.
    """
    check_seed(seed)
    text = "\0".join(f"{type(part).__name__}:{part}" for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def check_seed(seed: int) -> int:
    """The seed itself, if it is one.

    Raises:
        UsageError: `SETTING_INVALID`, the seed is out of range.
    """
    if not 0 <= seed < SEED_LIMIT:
        raise UsageError("SETTING_INVALID", f"seed {seed} is not within 0 to 2^32-1", field="seed")
    return seed


def seed_everything(seed: int, threads: int, matmul: str = "float32") -> None:
    """Seed Python, numpy and torch, pin threads and precision, and refuse kernels that do not repeat.

    Call it once in a child process, before a model is loaded. It loads torch.

    Args:
        seed: 0 to 2^32-1.
        threads: threads for torch's own operators; 1 and 2 threads give different last bits.
        matmul: `bfloat16` lets float32 products round their inputs where that is faster; `float32` does not.

    Raises:
        UsageError: `SETTING_INVALID`, the seed is out of range.
    """
    import torch
    from transformers import set_seed

    set_seed(check_seed(seed), deterministic=False)
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("medium" if matmul == "bfloat16" else "highest")
    torch.use_deterministic_algorithms(mode=True)
