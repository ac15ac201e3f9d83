"""Models into the ledger: from an installed package or a folder, file by file, with their licence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.blobs import TEXT
from runners.prepare.fetch import Fetched, fetch_model
from runners.prepare.models import ModelFolder, describe
from runners.prepare.shelf import remember

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


def add_package(
    ledger: Ledger, name: str, shelf: Path, progress: Callable[[str, float], None]
) -> tuple[Record, Fetched]:
    """Convert a catalogue model onto the shelf, where it is not there yet, and register it.

    Raises:
        UsageError: `MODEL_UNKNOWN`, `MODEL_PACKAGE_MISSING`.
        EvidenceError: `MODEL_FILES_CHANGED`, `MODEL_UNSAFE`.
    """
    shelf.mkdir(parents=True, exist_ok=True)
    fetched = fetch_model(name, shelf / name, progress)
    licence_text = ledger.blobs.put_file(fetched.licence_text, TEXT)
    record = _register(
        ledger,
        fetched.model,
        licence=fetched.licence,
        licence_text=licence_text.model_dump(),
        source=fetched.source,
        revision=fetched.revision,
    )
    remember(shelf, fetched.model.tree, fetched.folder)
    return record, fetched


def add_folder(
    ledger: Ledger,
    folder: Path,
    shelf: Path,
    *,
    name: str | None,
    licence: str,
    source: str,
    revision: str | None,
) -> Record:
    """Register a model folder of the user's own; then the shelf remembers where it lies.

    Raises:
        UsageError: what admission says; the shelf is then as it was.
        EvidenceError: `MODEL_UNSAFE`, `UNSAFE_PATH`, `TENSORS_INVALID`.
    """
    found = describe(folder, name)
    record = _register(
        ledger, found, licence=licence, licence_text=None, source=source, revision=revision
    )
    remember(shelf, found.tree, folder)  # a model that was refused leaves nothing on the shelf
    return record


def _register(
    ledger: Ledger,
    model: ModelFolder,
    *,
    licence: str,
    licence_text: dict[str, object] | None,
    source: str,
    revision: str | None,
) -> Record:
    return ledger.append(
        "model.registered",
        {
            **model.as_dict(),
            "licence": licence,
            "licence_text": licence_text,
            "source": source,
            "revision": revision,
            "hosted": False,
            "provider_name": None,
        },
    )
