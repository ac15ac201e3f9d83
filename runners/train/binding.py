"""What binds a run's weights to its records: checked before a checkpoint is published, written down when a run completes.

The same functions decide in the verifier, from the bytes in the blob store (`verifiers.replay.learning`, V18).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledger.canonical import real
from ledger.errors import UsageError
from runners.prepare.data import put_lines
from verifiers.learning.learner_state import CONFIG_FILE, openers, weights_file
from verifiers.learning.moments import check_moments
from verifiers.learning.weights import checked_weights, take_inventory
from verifiers.replay.learning import check_base, moved

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record


def check_folder(ledger: Ledger, plan: Record, folder: Path, update: str) -> None:
    """Refuse to publish a checkpoint whose weights are not what the plan trains.

    Args:
        ledger: holds the run.
        plan: of the run.
        folder: the checkpoint, as the child wrote it.
        update: id of the last acknowledged update.

    Raises:
        EvidenceError: `WEIGHTS_EMPTY`, `WEIGHTS_OTHER`, `WEIGHTS_NOT_FINITE`, `ADAPTER_UNTRAINED`, `TENSORS_INVALID`,
            `OPTIMIZER_WRONG`, `CHECKPOINT_WRONG`; `BASE_OTHER`, an adapter names another base model.
    """
    has_moved = moved(ledger.get(update), ledger.get)
    files = openers(folder)
    checked_weights(files, plan.body.get("trained"), moved=has_moved)
    check_moments(files)
    if (folder / CONFIG_FILE).exists():
        check_base((folder / CONFIG_FILE).read_bytes(), ledger.get(str(plan.ref("model"))))


def check_tuning(checkpoint: Record, plan: Record, tuning: str) -> None:
    """Refuse to start an adapter from a whole model's weights, or the other way round.

    Args:
        checkpoint: to start from.
        plan: of its run.
        tuning: what the new plan trains.

    Raises:
        UsageError: `SETTING_INVALID`.
    """
    theirs = plan.body["settings"].get("tuning", "lora")
    if theirs != tuning:
        raise UsageError(
            "SETTING_INVALID",
            f"tuning is {tuning}, checkpoint {checkpoint.id[7:19]} is of a run with tuning {theirs}",
            field="tuning",
            expected=theirs,
            actual=tuning,
        )


def weights_left(ledger: Ledger, checkpoint: Record) -> dict[str, Any] | None:
    """The weights of a published checkpoint as `run.ended` binds them; None for a hosted one, which has no bytes here.

    Raises:
        EvidenceError: `BLOB_MISSING`, `TENSORS_INVALID`: its bytes are not there or no tensors any more.
    """
    if checkpoint.body.get("hosted") is not None:
        return None
    files = {
        item["path"]: partial(ledger.blobs.open, item["digest"])
        for item in checkpoint.body["files"]
    }
    with files[weights_file(files)]() as stream:
        found = take_inventory(stream)
    return {
        "state": checkpoint.body["state"],
        "tensors": put_lines(ledger, found.lines()).model_dump(),
        "parameters": found.summary["parameters"],
        "norm": real(found.norm),
    }
