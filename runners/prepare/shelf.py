"""The shelf: where model folders lie on this machine, found by the tree digest of their record.

Model bytes are no blobs: they are large, shared by many ledgers and named by digest. The shelf only says
where a copy lies; `check_unchanged` hashes it before it is used.
"""

from __future__ import annotations

import os
from pathlib import Path

from ledger.errors import UsageError
from ledger.record import Record
from runners.prepare.models import check_unchanged


def default_shelf() -> Path:
    """The user's shelf: `EVIDENCE_MODELS`, else the cache folder."""
    named = os.environ.get("EVIDENCE_MODELS")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "evidence-ledger" / "models"


def place(shelf: Path, tree: str) -> Path:
    """Where the model with this tree digest lies, or a file that says where."""
    return shelf / tree.removeprefix("sha256:")[:40]


def remember(shelf: Path, tree: str, folder: Path) -> None:
    """Note that a model folder outside the shelf holds this tree."""
    shelf.mkdir(parents=True, exist_ok=True)
    note = place(shelf, tree).with_suffix(".path")
    temporary = note.with_suffix(".new")
    temporary.write_bytes(os.fsencode(folder.resolve()))
    temporary.replace(note)


def model_folder(shelf: Path, model: Record) -> Path:
    """A registered model's folder on this machine, every file re-hashed.

    Raises:
        UsageError: `MODEL_NOT_HERE`, no copy lies on the shelf; `MODEL_HOSTED`, it has no bytes anywhere here.
        EvidenceError: `MODEL_FILES_CHANGED`, the copy is not what was registered.
    """
    if model.body["hosted"]:
        raise UsageError(
            "MODEL_HOSTED", f"model {model.body['name']} is hosted and has no bytes here"
        )
    tree = model.body["tree"]
    folder = place(shelf, tree)
    note = folder.with_suffix(".path")
    if not folder.is_dir() and note.is_file():
        folder = Path(os.fsdecode(note.read_bytes()))
    if not folder.is_dir():
        raise UsageError(
            "MODEL_NOT_HERE",
            f"model {model.body['name']} ({tree[7:19]}) is registered but no copy lies on this machine's shelf",
            field="model",
            hint="add the same files again: evidence model add DIR",
        )
    check_unchanged(folder, model.body["files"])
    return folder
