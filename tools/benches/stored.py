"""Bytes on disk for each byte of entry, the derived index and the blobs included."""

from __future__ import annotations

from pathlib import Path

from benches.report import Row, Settings
from benches.workload import grown
from ledger.book import BLOBS, DATABASE, INDEX
from ledger.store.sqlite import SqliteStore

MAX_RATIO = 1.6


def run(settings: Settings) -> list[Row]:
    """A ledger that was closed: what lies in its folder against what its entries hold."""
    size = 1_000_000 if settings.full else 20_000
    folder = grown(settings, size)
    store = SqliteStore.open_reader(folder / DATABASE)
    count = entries = 0
    for _, _, _, entry in store.rows():
        count, entries = count + 1, entries + len(entry)
    store.close()
    parts = {
        "database": (folder / DATABASE).stat().st_size,
        "index": (folder / INDEX).stat().st_size,
        "blobs": sum(item.stat().st_size for item in (folder / BLOBS).rglob("*") if item.is_file()),
        "whole folder": sum(item.stat().st_size for item in _files(folder)),
    }
    details = {"records": count, "entry_bytes": round(entries / count), "bytes": parts}
    ratio = round(parts["whole folder"] / entries, 3)
    name = f"bytes stored a byte of entry, {count:,} records"
    return [Row(name, ratio, "ratio", "less", MAX_RATIO, details=details)]


def _files(folder: Path) -> list[Path]:
    return [item for item in folder.rglob("*") if item.is_file()]
