"""A child that speaks like the trainer and learns nothing; a script in its home says what it does and when."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import struct
import sys
import time
from pathlib import Path

from ledger.canonical import encode
from ledger.digests import sha256
from runners.protocol import serve
from verifiers.learning.tensors import file_state_digest


def tensors(**named):
    """A safetensors file: each tensor by its type, its shape and its bytes."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in named.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def weights(step):
    """The weights after a step, as a safetensors file of one number."""
    return tensors(weight=("F32", [1], struct.pack("<f", step)))


def learner_state(step):
    """The rest of a learner's state after a step: nothing moves but what counts."""
    zero = bytes(4)
    moments = {"exp_avg.weight": ("F32", [1], zero), "exp_avg_sq.weight": ("F32", [1], zero)}
    random = {
        "python": ("I64", [625], bytes(8 * 625)),
        "numpy": ("I64", [624], bytes(8 * 624)),
        "torch": ("U8", [4], zero),
    }
    value = {
        "format": 1,
        "optimizer": {"groups": [{"params": ["weight"]}]},
        "scheduler": {"last_epoch": step},
        "scaler": None,
        "random": {},
        "sampler": {"epoch": 0, "position": 2 * step, "rows": 1_000_000},
        "counters": {"updates": step},
    }
    return {
        "optimizer.safetensors": tensors(**moments, **{"step.weight": ("F32", [], zero)}),
        "random.safetensors": tensors(**random),
        "learner.json": encode(value),
    }


def state(step):
    """The digest of the weights after a step."""
    return file_state_digest(io.BytesIO(weights(step)))


def work(channel, job):
    """Steps as planned, with what the script changes."""
    script = json.loads((Path(os.environ["HOME"]) / "script.json").read_bytes())
    rows = [json.loads(line)["row"] for line in Path(job["rows"]).read_bytes().splitlines()]
    counts = {"input": len(rows), "effective": len(rows), "truncated": 0, "dropped": 0}
    channel.ask("start", rows=counts)
    begun = job["start"]["step"]
    if job["start"]["checkpoint"]:
        restored(channel, job["start"], script)
    for step in range(begun + 1, job["until"] + 1):
        time.sleep(script.get("step_s", 0))
        if "says" in script:
            sys.stderr.write(f"{script['says']} {step}\n")
            sys.stderr.flush()
        if step == script.get("at"):
            instead(channel, script, step)
        batch(channel, step, rows)
        update(channel, step)
        if channel.stop:
            checkpoint(channel, job, step)
            return {"outcome": "stopped"}
        if step == script.get("save_at"):
            checkpoint(channel, job, step)
    checkpoint(channel, job, job["until"])
    return {}


def restored(channel, start, script):
    """Say what was loaded: the files' own digests, unless the script keeps quiet."""
    if script.get("restores", True):
        folder = Path(start["checkpoint"]["path"])
        digests = {name: sha256((folder / name).read_bytes()) for name in learner_state(0)}
        said = {"step": start["step"], "state": state(start["step"]), "mode": start["mode"]}
        channel.ask("restored", **said, digests=digests)


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
    """A folder with adapter and learner's state."""
    folder = Path(job["output"]) / f"step-{step}"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(weights(step))
    for name, data in learner_state(step).items():
        (folder / name).write_bytes(data)
    channel.ask("checkpoint", step=step, path=str(folder), state=state(step))


def instead(channel, script, step):
    """What the script has the child do at a step."""
    match script["do"]:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "find no room":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
            (Path(os.environ["HOME"]) / "too large").write_bytes(bytes(1 << 20))
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
