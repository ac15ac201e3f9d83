"""Public data that some tests assert figures on; where it is not installed they are skipped, and the reason says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import UsageError
from runners.prepare import tau2


def retail_files() -> Path:
    """The folder of the tau2 retail files."""
    try:
        return tau2.source_dir()
    except UsageError as error:
        if error.code != "DATA_MISSING":
            raise
        pytest.skip(f"needs the public data of {tau2.PACKAGE} {tau2.VERSION}: {error.message}")
