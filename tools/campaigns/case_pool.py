"""Cases over several processes: each works through a range of its own and hands back what it found."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import cast

from campaigns.report import Outcome, Settings

Work = Callable[[Settings, range, Callable[[int], None]], Outcome]
"""Runs a range of cases; told how many of it are done through the function it is given."""
REPORT_EVERY = 200


def run_cases(settings: Settings, total: int, work: Work) -> Outcome:
    """Run the cases 0 to `total`, or the one case that the settings name; every worker ends with this call.

    Raises:
        RuntimeError: a worker ended without an answer.
    """
    if settings.case is not None:
        return work(settings, range(settings.case, settings.case + 1), lambda _done: None)
    if not settings.full or settings.workers < 2:
        return work(settings, range(total), lambda done: settings.progress(done, total))
    context = multiprocessing.get_context("fork")
    share = -(-total // settings.workers)
    ranges = [range(start, min(start + share, total)) for start in range(0, total, share)]
    pipes = [context.Pipe(duplex=False) for _ in ranges]
    workers = [
        context.Process(target=_serve, args=(settings, cases, work, mine), daemon=True)
        for cases, (_, mine) in zip(ranges, pipes, strict=True)
    ]
    try:
        for worker in workers:
            worker.start()
        for _, mine in pipes:
            mine.close()  # so that a worker that died reads as the end of its pipe
        return _gather(settings, total, [theirs for theirs, _ in pipes])
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _gather(settings: Settings, total: int, pipes: list[Connection]) -> Outcome:
    outcome = Outcome()
    done = dict.fromkeys(pipes, 0)
    waiting = list(pipes)
    while waiting:
        for pipe in cast("list[Connection]", wait(waiting)):
            try:
                said = pipe.recv()
            except EOFError:
                raise RuntimeError("a worker of the campaign ended without an answer") from None
            if isinstance(said, Outcome):
                outcome.add(said)
                waiting.remove(pipe)
            else:
                done[pipe] = said
                settings.progress(sum(done.values()), total)
    return outcome


def _serve(settings: Settings, cases: range, work: Work, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    parent = os.getppid()

    def tell(done: int) -> None:
        if done % REPORT_EVERY == 0:
            if os.getppid() != parent:
                os._exit(1)  # nobody waits for the answer any more
            pipe.send(done)

    pipe.send(work(settings, cases, tell))
