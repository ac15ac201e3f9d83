"""How the demo breaks its own run: it watches until the first checkpoint is passed, then kills every process by signal 9."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ledger.book import Ledger
from ledger.errors import UsageError
from ledger.record import Record
from runners.train.processes import start_token
from runners.train.status import run_status

POLL_S = 0.5
GONE_S = 30.0
SAY_EVERY = 10


@dataclass(frozen=True)
class Stand:
    """Where a run stands: its claim, its updates, its newest checkpoint's step (0 for none), whether it still works."""

    claim: Record
    updates: list[Record]
    saved: int
    state: str


def watch(ledger: Path, run: str, lost: int, say: Callable[[str], None]) -> Stand:
    """Watch a run until it has so many updates after its first checkpoint.

    Args:
        ledger: the ledger's folder.
        run: id of the run's launch.
        lost: updates to wait for after the checkpoint.
        say: prints a line for the person who watches.

    Raises:
        UsageError: `DEMO_FAILED`, it ended before.
        KeyboardInterrupt: Ctrl-C; the run in the background is then killed too.
    """
    try:
        return _watched(ledger, run, lost, say)
    except KeyboardInterrupt:
        with suppress(UsageError):  # it has just ended by itself
            kill(_stand(ledger, run).claim)
        raise


def _watched(ledger: Path, run: str, lost: int, say: Callable[[str], None]) -> Stand:
    said = 0
    while True:
        stand = _stand(ledger, run)
        done = len(stand.updates)
        for update in stand.updates[said:]:
            step = update.body["step"]
            if step == 1 or step % SAY_EVERY == 0:
                say(f"   step {step}: loss {float(update.body['loss']):.4f}")
        said = done
        if stand.state != "running":
            raise UsageError(
                "DEMO_FAILED",
                f"the run {stand.state} before it could be killed",
                hint="see its log: evidence run logs; a faster machine wants more --steps",
            )
        if stand.saved and done >= stand.saved + lost:
            return stand
        time.sleep(POLL_S)


def kill(claim: Record) -> int:
    """Kill the process group of a run's supervisor, and that of its trainer, by signal 9; how many groups there were.

    Raises:
        UsageError: `DEMO_FAILED`, the process is not there any more, or does not go.
    """
    pid, token = claim.body["process"], claim.body["start_token"]
    groups = {group for name in (pid, *_children(pid)) if (group := _group(name)) is not None}
    if start_token(pid) != token or _group(pid) is None or os.getpgrp() in groups:
        raise UsageError("DEMO_FAILED", "the run's process was gone before it could be killed")
    for group in groups:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + GONE_S
    while start_token(pid) == token:
        if time.monotonic() > deadline:
            raise UsageError("DEMO_FAILED", f"process {pid} does not go")
        time.sleep(0.05)
    return len(groups)


def _stand(folder: Path, run: str) -> Stand:
    with Ledger.read(folder) as ledger:
        claim = ledger.get(run, "run.launched")
        found = run_status(ledger, claim)
        updates = ledger.referrers(claim.id, "run", "update.acknowledged")
        return Stand(
            claim, updates, found.checkpoint.body["step"] if found.checkpoint else 0, found.state
        )


def _children(pid: int) -> list[int]:
    """The processes that a process started itself; none where it is gone."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has just ended
            found += map(int, thread.read_text(encoding="ascii").split())
    return found


def _group(pid: int) -> int | None:
    """A process's group, None where it is gone."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None
