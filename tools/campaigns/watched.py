"""Cases that may hang or kill their process: run in a child that is watched, a case at a time.

A case that takes longer than its limit is a failure, so is one that ends the child; the next case begins in a
new child. What hangs inside a library cannot be interrupted from within its own process.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

from campaigns.report import Outcome, Settings

Case = Callable[[int], Outcome]
MEMORY_BYTES = 8 << 30
_CONTEXT = multiprocessing.get_context("fork")


@dataclass
class _Lane:
    """A range of cases and the child that works through it."""

    todo: list[int]
    work: Case
    limit_s: float
    child: BaseProcess = field(init=False)
    pipe: Connection = field(init=False)
    deadline_s: float = 0.0

    def start(self) -> None:
        """A new child for what is left."""
        self.pipe, theirs = _CONTEXT.Pipe(duplex=False)
        self.child = _CONTEXT.Process(
            target=_serve, args=(list(self.todo), self.work, theirs), daemon=True
        )
        self.child.start()
        theirs.close()
        self.deadline_s = time.monotonic() + self.limit_s

    def stop(self) -> None:
        """End the child."""
        self.child.kill()
        self.child.join()
        self.pipe.close()


def run_watched(settings: Settings, total: int, work: Case, limit_s: float) -> Outcome:
    """Run the cases 0 to `total`, or the one case that the settings name, each within its limit."""
    cases = list(range(total)) if settings.case is None else [settings.case]
    count = min(max(settings.workers, 1) if settings.full else 1, len(cases))
    lanes = [_Lane(cases[start::count], work, limit_s) for start in range(count)]
    outcome = Outcome()
    started: list[_Lane] = []
    try:
        for lane in lanes:
            lane.start()
            started.append(lane)
        while lanes:
            lanes = _step(lanes, outcome)
            settings.progress(len(cases) - sum(len(lane.todo) for lane in lanes), len(cases))
    finally:
        for lane in started:
            lane.stop()
    return outcome


def _step(lanes: list[_Lane], outcome: Outcome) -> list[_Lane]:
    """Take in what the children said, or see to one that said nothing for too long."""
    soonest = min(lane.deadline_s for lane in lanes)
    ready = cast(
        "list[Connection]",
        wait([lane.pipe for lane in lanes], max(soonest - time.monotonic(), 0.0)),
    )
    for lane in lanes:
        if lane.pipe in ready:
            _take(lane, outcome)
        elif time.monotonic() >= lane.deadline_s:
            _lost(lane, outcome, f"no answer within {lane.limit_s:g} s")
    return [lane for lane in lanes if lane.todo]


def _take(lane: _Lane, outcome: Outcome) -> None:
    try:
        outcome.add(lane.pipe.recv())
    except EOFError:
        lane.child.join()
        _lost(lane, outcome, f"the process ended with {lane.child.exitcode}")
        return
    lane.todo.pop(0)
    lane.deadline_s = time.monotonic() + lane.limit_s


def _lost(lane: _Lane, outcome: Outcome, why: str) -> None:
    outcome.cases += 1
    outcome.failures.append(f"case {lane.todo.pop(0)}: {why}")
    lane.stop()
    if lane.todo:
        lane.start()


def _serve(cases: list[int], work: Case, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    parent = os.getppid()
    for case in cases:
        pipe.send(work(case))
        if os.getppid() != parent:
            return  # nobody waits for the answer any more
