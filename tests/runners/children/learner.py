"""A child that speaks like the trainer and learns nothing; a script in its home says what it does and when."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

from ledger.digests import sha256
from runners.protocol import serve
from verifiers.learning.tensors import file_state_digest


def weights(step):
    """The weights after a step, as a safetensors file of one number."""
    header = b'{"weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", len(header)) + header + struct.pack("<f", step)


def state(step):
    """The digest of the weights after a step."""
    return file_state_digest(io.BytesIO(weights(step)))


def work(channel, job):
    """Steps as planned, with what the script changes."""
    script = json.loads((Path(os.environ["HOME"]) / "script.json").read_bytes())
    rows = [json.loads(line)["row"] for line in Path(job["rows"]).read_bytes().splitlines()]
    counts = {"input": len(rows), "effective": len(rows), "truncated": 0, "dropped": 0}
    channel.ask("start", rows=counts)
    for step in range(1, job["settings"]["steps"] + 1):
        time.sleep(script.get("step_s", 0))
        if step == script.get("at"):
            instead(channel, script, step)
        batch(channel, step, rows)
        update(channel, step)
        if channel.stop:
            checkpoint(channel, job, step)
            return {"outcome": "stopped"}
    checkpoint(channel, job, job["settings"]["steps"])
    return {}


def batch(channel, step, rows, **changes):
    """A batch of two rows."""
    said = {"step": step, "micro_batches": [rows[:2]], "trainable_tokens": 9}
    channel.ask("batch", **{**said, **changes})


def update(channel, step, **changes):
    """An update from the state before to the next."""
    reals = {"learning_rate": "0.1", "loss": "1.5", "gradient_norm": "0.5"}
    states = {"before": state(step - 1), "after": state(step)}
    channel.ask("update", **{"step": step, "figures": {}, **reals, **states, **changes})


def checkpoint(channel, job, step):
    """A folder with one file."""
    folder = Path(job["output"]) / f"step-{step}"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(weights(step))
    channel.ask("checkpoint", step=step, path=str(folder), state=state(step))


def instead(channel, script, step):
    """What the script has the child do at a step."""
    match script["do"]:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "say":
            channel.ask(script["event"], **script["fields"])
        case "read a stranger":
            batch(channel, step, [sha256(b"a row that nobody gave")])
        case "jump":
            update(channel, step + 5)
        case "end early":
            channel.ask("end", outcome="completed")
            sys.exit(0)
        case "interrupt parent":
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.3)


if __name__ == "__main__":
    sys.exit(serve(work))
