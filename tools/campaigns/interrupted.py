"""One attempt at a run in a process of its own, killed or stopped at a chosen moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaigns.sft_world import SftWorld
from ledger.errors import LedgerError
from runners.train.reconcile import reconcile
from runners.train.supervisor import launch_sft, newest_checkpoint, resume_sft

FORK = multiprocessing.get_context("fork")
WAIT_S = 600.0


@dataclass(frozen=True)
class Interruption:
    """Who is struck, in which phase of an attempt, and after what share of the phase's usual time.

    Attributes:
        victim: `child`, `supervisor`, or `request` for being asked to stop.
        phase: `loading`, `training`, or `saved`, from the first checkpoint on.
        share: of the phase, 0 to 1.
    """

    victim: str
    phase: str
    share: float


@dataclass(frozen=True)
class Timing:
    """How long the phases of the undisturbed run took: until the first event, and from there to the end."""

    loading_s: float
    training_s: float


@dataclass
class _Strike:
    """Counts the time of a phase and strikes once it is due; lives in the supervisor's own process."""

    interruption: Interruption | None
    timing: Timing
    stop: bool = False
    timers: list[threading.Timer] = field(default_factory=list)

    def phase(self, name: str, usual_s: float) -> None:
        """A phase begins."""
        if self.interruption is not None and self.interruption.phase == name:
            timer = threading.Timer(self.interruption.share * usual_s, self._strike)
            timer.daemon = True
            timer.start()
            self.timers.append(timer)

    def tell(self, event: str, _fields: dict[str, Any]) -> None:
        """Training begins with the child's first event; with each checkpoint a share of it that is safe."""
        if event == "start":
            self.phase("training", self.timing.training_s)
        elif event == "checkpoint":
            self.phase("saved", self.timing.training_s / 4)

    def _strike(self) -> None:
        assert self.interruption is not None
        if self.interruption.victim == "request":
            self.stop = True
        elif self.interruption.victim == "supervisor":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            for child in children():
                with suppress(ProcessLookupError):  # it has just ended by itself
                    os.killpg(child, signal.SIGKILL)


def children() -> list[int]:
    """This process's children."""
    threads = Path("/proc/self/task").iterdir()
    return [int(word) for thread in threads for word in (thread / "children").read_text().split()]


def timed(world: SftWorld) -> Timing:
    """Let a run go to its end undisturbed; how long its phases took.

    Raises:
        RuntimeError: it did not come to its end.
    """
    begun = time.monotonic()
    marks: list[float] = []
    with world.opened() as ledger:
        plan = ledger.get(world.plan)

        def tell(event: str, _fields: dict[str, Any]) -> None:
            if event == "start":
                marks.append(time.monotonic())

        done = launch_sft(ledger, plan, world.shelf, tell)
    if done.ended.body["outcome"] != "completed":
        raise RuntimeError(f"the undisturbed run {done.ended.body['detail']}")
    return Timing(marks[0] - begun, time.monotonic() - marks[0])


def attempt(world: SftWorld, interruption: Interruption | None, timing: Timing) -> str:
    """Launch or resume the world's run in a process of its own; what became of the attempt.

    Returns:
        `child killed`, `supervisor killed`, `run stopped`, or `nothing struck`: the run had come to its end before.

    Raises:
        RuntimeError: the attempt did not end in time, was refused, or ended otherwise.
    """
    _reconcile(world)
    process = FORK.Process(target=_work, args=(world, _Strike(interruption, timing)))
    process.start()
    process.join(WAIT_S)
    if process.exitcode is None:
        process.kill()
        raise RuntimeError(f"an attempt took more than {WAIT_S:.0f} s")
    if process.exitcode == -signal.SIGKILL:
        return "supervisor killed"
    state = world.state()
    if state == "failed" and "CHILD_DIED" in world.detail():
        return "child killed"
    if process.exitcode == 0 and state in ("stopped", "completed"):
        return "run stopped" if state == "stopped" else "nothing struck"
    raise RuntimeError(f"an attempt ended {state} ({process.exitcode}): {world.detail()}")


def _reconcile(world: SftWorld) -> None:
    """Record of a run that nobody ended that its process is gone; a child that lost its supervisor goes by itself."""
    if world.state() == "unconfirmed":
        with world.opened() as ledger:
            reconcile(ledger, world.run(ledger))


def _work(world: SftWorld, strike: _Strike) -> None:
    """The supervisor's process."""
    try:
        with world.opened() as ledger:
            strike.phase("loading", strike.timing.loading_s)
            found = world.launches(ledger)
            if found:
                checkpoint = newest_checkpoint(ledger, found[0])
                resume_sft(
                    ledger, found[0], checkpoint, world.shelf, strike.tell, lambda: strike.stop
                )
            else:
                plan = ledger.get(world.plan)
                launch_sft(ledger, plan, world.shelf, strike.tell, lambda: strike.stop)
    except LedgerError as error:
        raise SystemExit(str(error)) from None
