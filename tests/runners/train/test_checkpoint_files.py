"""What our own trainers leave in a checkpoint is what verification knows."""

from __future__ import annotations

import pytest

from runners.train.checkpoints import FILES
from verifiers.learning.learner_state import KNOWN_FILES, MODEL_FILE


def test_every_file_that_is_written_is_known():
    """An adapter's files, and those that a whole model's checkpoint carries over from its base."""
    carried = pytest.importorskip("runners.train.trained").CARRIED
    assert {*FILES, *carried, MODEL_FILE, "config.json"} == KNOWN_FILES
