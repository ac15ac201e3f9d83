"""Signatures on all cores: the parent streams records, worker processes check what was signed.

Workers pay off above a few thousand records; below, the parent checks by itself. Answers are taken in
order, so the first bad record is the first named. A worker is a plain program on two pipes
(`verifiers.signature_worker`): the caller's own main module is never imported again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import cast

from verifiers.signature_worker import ANSWER, NONE_BAD, Task, encode, first_bad

CHUNK_RECORDS = 512
POOL_FROM_RECORDS = 4000
IN_FLIGHT_PER_WORKER = 3


class _Pool:
    """Worker processes, each fed by one thread at a time."""

    def __init__(self, count: int) -> None:
        command = [sys.executable, "-P", "-m", "verifiers.signature_worker"]
        self._workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(count)
        ]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)

    def submit(self, tasks: list[Task]) -> Future[int | None]:
        return self._threads.submit(self._ask, tasks)

    def _ask(self, tasks: list[Task]) -> int | None:
        worker = self._idle.get()
        assert worker.stdin is not None  # Popen was given pipes
        assert worker.stdout is not None
        worker.stdin.write(encode(tasks))
        worker.stdin.flush()
        answer = worker.stdout.read(ANSWER.size)
        if len(answer) != ANSWER.size:
            raise RuntimeError(f"a signature worker ended with {worker.wait()}")
        self._idle.put(worker)
        bad = cast("int", ANSWER.unpack(answer)[0])
        return None if bad == NONE_BAD else bad

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.communicate()


class SignatureChecker:
    """Collects tasks in seq order and finds the first bad one.

    Args:
        workers: processes to use; 1 checks in this process. None takes all cores.
        expected_records: how many are coming; few of them are checked here.
    """

    def __init__(self, workers: int | None, expected_records: int) -> None:
        count = workers or len(os.sched_getaffinity(0))
        parallel = count > 1 and expected_records >= POOL_FROM_RECORDS
        self._pool = _Pool(count) if parallel else None
        self._limit = count * IN_FLIGHT_PER_WORKER
        self._chunk: list[Task] = []
        self._running: deque[Future[int | None]] = deque()
        self.bad_seq: int | None = None

    def add(self, task: Task) -> None:
        """Take a task; `bad_seq` tells once a bad signature is known, and nothing more need be added."""
        self._chunk.append(task)
        if len(self._chunk) >= CHUNK_RECORDS:
            self._submit()

    def finish(self) -> int | None:
        """Wait for what is running; the seq of the first bad signature, or None."""
        self._submit()
        while self._running:
            self._take()
        return self.bad_seq

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()

    def _submit(self) -> None:
        chunk, self._chunk = self._chunk, []
        if not chunk or self.bad_seq is not None:
            return
        if self._pool is None:
            self.bad_seq = first_bad(chunk)
            return
        self._running.append(self._pool.submit(chunk))
        while len(self._running) > self._limit:
            self._take()

    def _take(self) -> None:
        bad = self._running.popleft().result()
        if bad is not None and self.bad_seq is None:
            self.bad_seq = bad
