"""Which process works at a run: named so that a later one with the same number is told apart."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

ENDED = ("Z", "X")
"""States of a process that runs no more, as the process table has them."""


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

    A process that has ended and that nobody has asked about yet is gone: in a container without an init it stays in the
    table for good.
    """
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return "gone" if Path("/proc/self").exists() else "unknown"
    fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return "gone" if fields[0] in ENDED else fields[19]
