"""A child that writes whatever its job says to stdout, without the protocol."""

from __future__ import annotations

import json
import os
import sys
import time

if __name__ == "__main__":
    job = json.loads(sys.stdin.buffer.readline())
    os.write(1, bytes.fromhex(job["hex"]) * job.get("times", 1))
    if job.get("linger"):
        time.sleep(600)
