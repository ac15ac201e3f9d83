"""What a group has to be before it is recorded, as far as the runner looks: whole, of a given task, with real log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from runners.train.rl_config import RlSettings


def check_group(
    body: Mapping[str, Any],
    failed: str | None,
    samples: Path,
    given: Collection[str],
    settings: RlSettings,
) -> None:
    """Refuse a group that does not count.

    Args:
        body: of its record to be.
        failed: why environment or reward failed, or None.
        samples: the samples' file.
        given: digests of the tasks that the child was given.
        settings: of the run.

    Raises:
        EvidenceError: `GROUP_FAILED`, `GROUP_OTHER_TASK`, `GROUP_SIZE`, `LOGPROBS_WRONG`.
    """
    if failed is not None:
        raise EvidenceError("GROUP_FAILED", failed)
    if body["task"] not in given:
        raise EvidenceError("GROUP_OTHER_TASK", "the run was not given this task", field="task")
    try:
        tensors = load(samples.read_bytes())
        lengths, logprobs, mask = (tensors[name] for name in ("lengths", "logprobs", "mask"))
    except (SafetensorError, KeyError) as error:
        raise EvidenceError(
            "LOGPROBS_WRONG", f"the samples cannot be read: {error}"[:200]
        ) from None
    members = {len(lengths), len(body["rewards"]), len(body["advantages"])}
    if members != {settings.group_size} or (lengths < 1).any():
        raise EvidenceError(
            "GROUP_SIZE",
            "members, samples and rewards differ in number",
            expected=str(settings.group_size),
            actual=str(sorted(members)),
        )
    tokens = int(lengths.sum())
    whole = logprobs.shape == mask.shape == tensors["completion_ids"].shape == (tokens,)
    if not whole or not np.isfinite(logprobs).all() or (logprobs > 0).any():
        raise EvidenceError(
            "LOGPROBS_WRONG", "the samples have not one log-probability for each token"
        )
