"""Which process works at a run: named so that a later one with the same number is told apart."""

from __future__ import annotations

import os
import platform
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

GONE, UNKNOWN = "gone", "unknown"
_DEAD_STATES = frozenset("ZXx")


def this_process() -> dict[str, Any]:
    """This machine and this process, as a launch records them."""
    pid = os.getpid()
    return {
        "host": platform.node()[:200] or "unknown",
        "process": pid,
        "start_token": start_token(pid),
    }


def start_token(pid: int) -> str:
    """What tells this process from a later one with the same number: its start in clock ticks since boot.

    One that has ended and whose parent has not asked for its exit code yet (a zombie) is gone: it works at nothing.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # the second: it went while it was read
        return GONE if Path("/proc/self").exists() else UNKNOWN
    fields = text.rpartition(")")[2].split()
    return GONE if fields[0] in _DEAD_STATES else fields[19]


def interrupt(pid: int) -> None:
    """Interrupt a user's own script as a Ctrl-C does: its callback records the end. It has no handler for other signals.

    Raises:
        PermissionError: it belongs to another user.
    """
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, signal.SIGINT)


def break_off(pid: int) -> None:
    """Tell a supervisor twice to stop, by two signals: at the second it kills its child and records the end.

    Raises:
        PermissionError: it belongs to another user.
    """
    with suppress(ProcessLookupError):  # it has just ended by itself
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
