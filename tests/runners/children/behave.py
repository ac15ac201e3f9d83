"""A child that does what its job says, well or badly."""

from __future__ import annotations

import os
import signal
import sys
import time

from ledger.errors import EvidenceError
from runners.protocol import serve


def count(channel, job):
    """Say every step, and stop where told."""
    for step in range(job["steps"]):
        channel.ask("step", step=step)
        if channel.stop:
            return {"outcome": "stopped", "steps": step + 1}
    return {"steps": job["steps"]}


def chatter(channel, job):
    """Write to stdout as libraries do, from Python and from C."""
    sys.stdout.write("a library talks on stdout\n")
    os.write(1, b"and so does its C code\n")
    channel.ask("step", step=0)
    return {}


def fail(channel, job):
    """Raise an error of ours."""
    raise EvidenceError("MODEL_UNSAFE", "the folder holds a pickle", field="weights.bin")


def crash(channel, job):
    """Raise an error of somebody else's."""
    raise ZeroDivisionError("not one of ours")


def environment(channel, job):
    """Say what the process was given."""
    channel.ask("environment", names=sorted(os.environ), group=os.getpgrp(), pid=os.getpid())
    return {}


def die(channel, job):
    """Be killed, as when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang(channel, job):
    """Never come back."""
    channel.ask("step", step=0)
    time.sleep(600)


def say_float(channel, job):
    """Say a number that no record may hold."""
    channel.ask("step", loss=0.5)


def interrupt_parent(channel, job):
    """Press Ctrl-C in the parent, and see whether the parent tells."""
    channel.ask("step", step=0)
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(0.5)
    channel.ask("step", step=1)
    return {"outcome": "stopped" if channel.stop else "completed"}


BEHAVIOURS = {
    "count": count,
    "print": chatter,
    "fail": fail,
    "crash": crash,
    "environment": environment,
    "die": die,
    "hang": hang,
    "float": say_float,
    "interrupt parent": interrupt_parent,
}

if __name__ == "__main__":
    sys.exit(serve(lambda channel, job: BEHAVIOURS[job["do"]](channel, job)))
