"""One tiny model for all tests of the runners that need a real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, shared: tests read it and never write to it."""
    pytest.importorskip("torch", reason="needs the train extra")
    from tiny import make_model

    return make_model(tmp_path_factory.mktemp("models") / "tiny")
