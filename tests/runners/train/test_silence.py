"""A supervisor that ended without a word: the cause is named where the machine shows one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runners.cli.background import FULL_BYTES, Background, _refusal, _silent


@pytest.mark.parametrize(
    ("free_bytes", "code"), [(FULL_BYTES - 1, "DISK_FULL"), (FULL_BYTES, "RUN_FAILED")]
)
def test_an_empty_log_on_a_full_disk_says_so(tmp_path, free_bytes, code):
    """Where no space is left the log could not be written, and that is the cause that is told."""
    error = _silent(tmp_path / "supervisor.log", 2, free_bytes)
    assert error.code == code
    assert "exit code 2" in error.message


def test_a_supervisor_that_was_killed_in_silence_is_told_by_its_signal(tmp_path):
    """The log is empty, so its name is no help: the signal and the way to see more are."""
    log = tmp_path / "supervisor.log"
    log.touch()
    process = subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    process.wait()
    error = _refusal(Background(process, log))
    assert error.code == "RUN_FAILED"
    assert "by signal 9 and said nothing" in error.message
    assert "--wait" in error.hint
