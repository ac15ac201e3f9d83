"""Which plans are equal: one digest over everything that decides what a run of a plan does (spec: rules.md, P4 and P8).

What a plan says of its budget, its seeds and its rows follows from settings and split, so it adds nothing here. Code, libraries
and hardware are left out on purpose: the same experiment on another machine is a second try of the same experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger import canonical
from ledger.digests import sha256


def fresh_digest(
    method: str,
    settings: Mapping[str, Any],
    split: str,
    model_tree: str,
    reward_code: str | None = None,
) -> str:
    """The settings digest of a plan that starts fresh.

    Args:
        method: `sft` or `rl`.
        settings: every effective setting as the record holds it; the order of the names does not matter.
        split: id of the split's record.
        model_tree: tree digest of the model's record: the same files registered twice are the same model.
        reward_code: digest of the audited reward's code, None where the plan has no reward.
    """
    twin = {"method": method, "settings": dict(settings), "split": split, "model": model_tree}
    if reward_code is not None:
        twin["reward"] = reward_code
    return sha256(canonical.encode(twin))


def descended_digest(fresh: str, start: str, parent: str) -> str:
    """The settings digest of a plan that begins at a checkpoint.

    Args:
        fresh: the digest that the plan would have if it started fresh.
        start: `weights` or `exact`.
        parent: id of the checkpoint's record.
    """
    return sha256(canonical.encode({"of": fresh, "start": start, "parent": parent}))
