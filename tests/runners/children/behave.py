"""A child that does what its job says, well or badly."""

from __future__ import annotations

import os
import signal
import sys
import time

from ledger.errors import EvidenceError
from runners.protocol import serve


def work(channel, job):
    """Do one thing."""
    match job["do"]:
        case "count":
            for step in range(job["steps"]):
                channel.ask("step", step=step)
                if channel.stop:
                    return {"outcome": "stopped", "steps": step + 1}
            return {"steps": job["steps"]}
        case "print":
            print("a library talks on stdout")
            os.write(1, b"and so does its C code\n")
            channel.ask("step", step=0)
        case "fail":
            raise EvidenceError("MODEL_UNSAFE", "the folder holds a pickle", field="weights.bin")
        case "crash":
            raise ZeroDivisionError("not one of ours")
        case "environment":
            channel.ask("environment", names=sorted(os.environ), group=os.getpgrp(), pid=os.getpid())
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            channel.ask("step", step=0)
            time.sleep(600)
        case "float":
            channel.ask("step", loss=0.5)
        case "interrupt parent":
            channel.ask("step", step=0)
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.5)
            channel.ask("step", step=1)
            return {"outcome": "stopped" if channel.stop else "completed"}
    return {}


if __name__ == "__main__":
    sys.exit(serve(work))
