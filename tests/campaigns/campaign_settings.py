"""Settings of a campaign's slice, for tests."""

from __future__ import annotations

from pathlib import Path

from campaigns.report import Settings


def settings_in(folder: Path, case: int | None = None) -> Settings:
    """A slice with the first seed in a folder, perhaps one case of it."""
    return Settings(
        seed=1, full=False, folder=folder, workers=1, progress=lambda done, total: None, case=case
    )
