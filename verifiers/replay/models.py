"""V18: the files that a registered model lists are those that its tree digest names."""

from __future__ import annotations

from ledger.digests import FileEntry, tree_digest
from ledger.record import Record
from verifiers.replay.view import Replay, View, expect


def model(record: Record, view: View) -> str | None:
    """The tree digest is that of the files listed; their bytes lie on a shelf and are hashed when they are loaded.

    Raises:
        EvidenceError: `MODEL_WRONG`.
    """
    del view
    if record.body["hosted"]:
        return None
    files = [FileEntry(item["path"], item["size"], item["digest"]) for item in record.body["files"]]
    expect("MODEL_WRONG", "tree", record.body["tree"], tree_digest(files))
    return None


REPLAYS: dict[str, Replay] = {"model.registered": model}
