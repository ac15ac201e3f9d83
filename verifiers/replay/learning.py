"""V18: batches read training rows of their split; a checkpoint's bytes give the acknowledged state, and its parts."""

from __future__ import annotations

from functools import lru_cache, partial
from io import BytesIO
from typing import Any

from ledger.digests import FileEntry, sha256, tree_digest
from ledger.record import Record
from verifiers.data.hand_out import hand_out
from verifiers.data.splits import read_assignment
from verifiers.learning.learner_state import (
    ADAPTER_FILE,
    LEARNER_FILE,
    parts_of,
    read_learner,
    rows_read,
)
from verifiers.learning.tensors import file_state_digest
from verifiers.replay.data import rows_of_split
from verifiers.replay.view import Replay, View, expect


def batch_digest(rows: list[str]) -> str:
    """What names a supervised batch: its row digests in the order they are read."""
    return sha256("\n".join(rows).encode())


def batch(record: Record, view: View) -> str | None:
    """A supervised batch reads training chat rows of its split only, and its digest and counts are theirs.

    Raises:
        EvidenceError: `BATCH_ROWS`.
    """
    split_id = record.ref("split")
    if split_id is None:
        return "what a batch of rollout groups reads"
    body = record.body
    rows = body["rows"]
    if body["rows_blob"] is not None:
        rows = [str(line["row"]) for line in view.lines(body["rows_blob"])]
    expect("BATCH_ROWS", "datums", body["datums"], len(rows))
    expect("BATCH_ROWS", "digest", body["digest"], batch_digest(rows))
    training = _training_rows(split_id, view)
    strangers = [row for row in rows if row not in training]
    expect("BATCH_ROWS", "rows that are not training rows of the split", strangers, [])
    return "that each batch was fed these rows, in this order, with so many trainable tokens"


@lru_cache(maxsize=4)
def _training_rows(split_id: str, view: View) -> frozenset[str]:
    """Digests of a split's training rows; ids name content, so a cached answer cannot go stale."""
    split = view.get(split_id)
    rows = rows_of_split(split, view)
    role_of = read_assignment(list(view.lines(split.body["assignment"])), rows.digests)
    return frozenset(item.digest for item in hand_out(rows.rows, role_of, "train", "chat"))


def checkpoint(record: Record, view: View) -> str | None:
    """The files are there with their bytes, the adapter's tensors have the acknowledged digest, the parts are there.

    Raises:
        EvidenceError: `CHECKPOINT_WRONG`, `TENSORS_INVALID`, `STATE_MALFORMED`, `BLOB_MISSING`, `BLOB_WRONG`.
    """
    body = record.body
    if body.get("hosted") is not None:
        return "what a hosted checkpoint is"
    contents = {item["path"]: view.blobs.read(item["digest"]) for item in body["files"]}
    entries = [
        FileEntry(item["path"], len(contents[item["path"]]), item["digest"])
        for item in body["files"]
    ]
    expect("CHECKPOINT_WRONG", "tree", body["tree"], tree_digest(entries))
    if body["state"]["scheme"] == "tensors" and body["completeness"]["weights"]:
        expect("CHECKPOINT_WRONG", ADAPTER_FILE, ADAPTER_FILE in contents, derived=True)
        state = file_state_digest(BytesIO(contents[ADAPTER_FILE]))
        expect("CHECKPOINT_WRONG", "state", body["state"]["value"], state)
        plan = view.ref(view.ref(record, "run"), "plan")
        _check_parts(body, contents, plan.body["hardware"].get("processes", 1))
        return None
    return "what a checkpoint without tensors here is"


def _check_parts(body: dict[str, Any], contents: dict[str, bytes], processes: int) -> None:
    """The parts that the record claims are those that the bytes hold, and the sampler stands where the datums say."""
    files = {name: partial(BytesIO, data) for name, data in contents.items()}
    parts = parts_of(files, body["step"], processes)
    expect("CHECKPOINT_WRONG", "completeness", body["completeness"], parts)
    if body["completeness"]["sampler"]:
        read = rows_read(read_learner(files[LEARNER_FILE]))
        expect("CHECKPOINT_WRONG", "the sampler's position", read, body["spent_datums"])


REPLAYS: dict[str, Replay] = {
    "batch.built": batch,
    "checkpoint.published": checkpoint,
}
