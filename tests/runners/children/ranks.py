"""A child of several processes that does what its job says; its rank 0 tells the process numbers of all."""

from __future__ import annotations

import os
import signal
import sys
import time

from ledger.errors import EvidenceError
from runners.protocol import serve
from runners.train.shared_channel import claim, ranks_of


def count(channel, job, ranks):
    """Say every step, and stop where told."""
    for step in range(job["steps"]):
        channel.ask("step", step=step, rank=ranks.rank)
        if channel.stop:
            return {"outcome": "stopped", "steps": step + 1}
    return {"steps": job["steps"]}


def die(channel, job, ranks):
    """One rank is killed, as when memory runs out; the others go on to their next word."""
    if ranks.rank == job["rank"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return count(channel, job, ranks)


def fail(channel, job, ranks):
    """One rank meets an error of ours; the others go on to their next word."""
    if ranks.rank == job["rank"]:
        raise EvidenceError("MODEL_UNSAFE", "the folder holds a pickle")
    return count(channel, job, ranks)


def fail_together(channel, job, ranks):
    """Every rank meets the same error at once."""
    raise EvidenceError("MODEL_UNSAFE", "the folder holds a pickle")


def hang(channel, job, ranks):
    """One rank never comes back."""
    if ranks.rank == job["rank"]:
        time.sleep(600)
    return count(channel, job, ranks)


def disagree(channel, job, ranks):
    """Each rank says another state at the start."""
    channel.ask("start", rows={}, state=str(ranks.rank))
    return {}


DO = {
    "count": count,
    "die": die,
    "fail": fail,
    "fail together": fail_together,
    "hang": hang,
    "disagree": disagree,
}


def work(channel, job):
    """Say who is there, then do what the job says."""
    ranks = ranks_of(channel)
    numbers = [int(data) for data in ranks.gather(str(os.getpid()).encode())]
    channel.ask("there", processes=numbers)
    return DO[job["do"]](channel, job, ranks)


if __name__ == "__main__":
    sys.exit(serve(work, claim))
