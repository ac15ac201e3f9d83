"""Which record a folder is of, by its bytes alone: what it is called and where it lies says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.digests import inventory, tree_digest
from ledger.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.reading import Reading
    from ledger.record import Record

KINDS_WITH_A_TREE = ("promotion.granted", "checkpoint.published", "model.registered")


def record_of_folder(ledger: Reading, folder: Path) -> Record:
    """The newest promotion of these bytes, else the newest checkpoint or model that has them.

    Args:
        ledger: where to look.
        folder: every file in it is read.

    Raises:
        UsageError: `REF_NOT_FOUND`, no record has this tree digest; `INPUT_MISSING`, there is no such folder.
        EvidenceError: `UNSAFE_PATH`.
    """
    if not folder.is_dir():
        raise UsageError("INPUT_MISSING", f"there is no folder {folder}", field="record")
    tree = tree_digest(inventory(folder))
    for kind in KINDS_WITH_A_TREE:
        found = [
            record for record in ledger.of_kind(kind, raw=True) if record.body.get("tree") == tree
        ]
        if found:
            return found[-1]
    raise UsageError(
        "REF_NOT_FOUND",
        f"no promotion, checkpoint or model of this ledger has the bytes of {folder}",
        field="record",
        expected=" or ".join(KINDS_WITH_A_TREE),
        actual=tree,
        hint="every file counts, its name too; list what there is: evidence checkpoint list",
    )
