"""A data set saved to disk (`save_to_disk`): which files its folder is made of, without the library that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger.canonical import loads
from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError

MAX_STATE_BYTES = 1 << 20
SAVED_STATE = "state.json"
SAVED_DICT = "dataset_dict.json"


def files_of(path: Path) -> list[tuple[str, Path]]:
    """(name, path) of a file, or of the files of a data set saved to disk, in the order they are read in.

    Raises:
        UsageError: `INPUT_MISSING`, the folder is no saved data set.
        EvidenceError: `SOURCE_UNREADABLE`, its state is not what it should be.
    """
    if not path.is_dir():
        return [(path.name, path)]
    folders = [path]
    found: list[tuple[str, Path]] = []
    if (path / SAVED_DICT).is_file():
        found.append((f"{path.name}/{SAVED_DICT}", path / SAVED_DICT))
        folders = [path / name for name in _names(path / SAVED_DICT, "splits")]
    for folder in folders:
        if not (folder / SAVED_STATE).is_file():
            raise UsageError(
                "INPUT_MISSING", f"{folder} has no {SAVED_STATE}: no data set saved to disk"
            )
        names = [SAVED_STATE, *_names(folder / SAVED_STATE, "_data_files")]
        prefix = path.name if folder == path else f"{path.name}/{folder.name}"
        found += [(f"{prefix}/{name}", folder / name) for name in names]
    return found


def _names(path: Path, field: str) -> list[str]:
    """File or folder names that a saved data set lists; none leads out of its folder."""
    with open_regular(path) as stream:
        data = stream.read(MAX_STATE_BYTES + 1)
    value: Any = loads(data, 16) if len(data) <= MAX_STATE_BYTES else None
    items = value.get(field) if isinstance(value, dict) else None
    listed = items if isinstance(items, list) else []
    named = [item.get("filename") if isinstance(item, dict) else item for item in listed]
    names = [name for name in named if isinstance(name, str) and Path(name).name == name]
    if not names or len(names) != len(named):
        raise EvidenceError("SOURCE_UNREADABLE", f"{path} names no files", field=str(path))
    return names
