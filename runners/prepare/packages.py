"""Files of installed packages, found by the packages' own records and never by importing them (torch-free).

A package that carries weights is data here: none of its code runs.
"""

from __future__ import annotations

import hashlib
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.digests import CHUNK_BYTES, PREFIX, open_regular
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runners.prepare.catalogue import CatalogueEntry


def installed_version(entry: CatalogueEntry) -> str:
    """The version of the model's package.

    Raises:
        UsageError: `MODEL_PACKAGE_MISSING`, it is not installed; the message names the command.
    """
    return _distribution(entry.distribution, entry).version


def installed_file(distribution: str, name: str, entry: CatalogueEntry) -> Path:
    """The path of one file of an installed package.

    Args:
        distribution: the package that lists it.
        name: the file's path as the package's record has it.
        entry: whose model it is, for the message.

    Raises:
        UsageError: `MODEL_PACKAGE_MISSING`, the package or the file is not there.
    """
    for file in _distribution(distribution, entry).files or ():
        if file.as_posix() == name:
            return Path(str(file.locate()))
    raise UsageError(
        "MODEL_PACKAGE_MISSING",
        f"{distribution} has no file {name}",
        field="package",
        hint=_install(entry),
    )


def join_parts(entry: CatalogueEntry, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy a model's parts, one behind the other, into one file, and check that it is the published one.

    Args:
        entry: the model.
        target: the file to write.
        progress: called with bytes done and bytes in all.

    Raises:
        UsageError: `MODEL_PACKAGE_MISSING`, a part is not there.
        EvidenceError: `MODEL_FILES_CHANGED`, the whole has another digest than the catalogue says.
    """
    paths = [installed_file(distribution, name, entry) for distribution, name in entry.parts]
    found = _copy(paths, target, progress)
    if found != entry.digest:
        raise EvidenceError(
            "MODEL_FILES_CHANGED",
            f"the weights in {entry.distribution} are not the published ones",
            expected=entry.digest,
            actual=found,
        )


def _copy(paths: Sequence[Path], target: Path, progress: Callable[[int, int], None]) -> str:
    total = sum(path.stat().st_size for path in paths)
    state, done = hashlib.sha256(), 0
    with target.open("xb") as out:
        for path in paths:
            with open_regular(path) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    out.write(chunk)
                    state.update(chunk)
                    done += len(chunk)
                    progress(done, total)
        out.flush()
        os.fsync(out.fileno())
    return PREFIX + state.hexdigest()


def _distribution(name: str, entry: CatalogueEntry) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise UsageError(
            "MODEL_PACKAGE_MISSING",
            f"the package {name} is not installed",
            field="package",
            hint=_install(entry),
        ) from None


def _install(entry: CatalogueEntry) -> str:
    names = dict.fromkeys([entry.distribution, *(distribution for distribution, _ in entry.parts)])
    return "pip install --no-deps " + " ".join(f"{name}=={entry.version}" for name in names)
