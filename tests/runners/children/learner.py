"""A child that speaks like the trainer and learns nothing; a script in its home says what it does and when."""

from __future__ import annotations

import io
import json
import math
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
from runners.torchrun import place_of
from verifiers.learning.tensors import file_state_digest, read_header


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


def planned(job):
    """The adapter's tensors by name and shape, from the header of the model and the settings of the job."""
    settings = job["settings"]
    with (Path(job["model"]["path"]) / "model.safetensors").open("rb") as stream:
        entries = read_header(stream)
    shapes = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        module = entry.name.removesuffix(".weight")
        if module.rpartition(".")[2] in settings["lora_targets"]:
            name, (high, low), rank = (
                f"base_model.model.{module}",
                entry.shape,
                settings["lora_rank"],
            )
            shapes |= {f"{name}.lora_A.weight": [rank, low], f"{name}.lora_B.weight": [high, rank]}
    return shapes


def weights(shapes, step):
    """The weights after a step, as a safetensors file: each number is the step's."""
    number = struct.pack("<f", step)
    return tensors(
        **{name: ("F32", shape, number * math.prod(shape)) for name, shape in shapes.items()}
    )


def learner_state(shapes, step):
    """The rest of a learner's state after a step: nothing moves but what counts."""
    zero = bytes(4)
    moments = {
        f"{part}.{name}": ("F32", shape, zero * math.prod(shape))
        for name, shape in shapes.items()
        for part in ("exp_avg", "exp_avg_sq")
    }
    steps = {f"step.{name}": ("F32", [], zero) for name in shapes}
    random = {
        "python": ("I64", [625], bytes(8 * 625)),
        "numpy": ("I64", [624], bytes(8 * 624)),
        "torch": ("U8", [4], zero),
    }
    value = {
        "format": 1,
        "optimizer": {"groups": [{"params": sorted(shapes)}]},
        "scheduler": {"last_epoch": step},
        "scaler": None,
        "random": {},
        "sampler": {"epoch": 0, "position": 2 * step, "rows": 1_000_000},
        "counters": {"updates": step},
    }
    return {
        "optimizer.safetensors": tensors(**moments, **steps),
        "random.safetensors": tensors(**random),
        "learner.json": encode(value),
    }


def state(shapes, step):
    """The digest of the weights after a step."""
    return file_state_digest(io.BytesIO(weights(shapes, step)))


def work(channel, job):
    """Steps as planned, with what the script changes."""
    script = json.loads((Path(os.environ["HOME"]) / "script.json").read_bytes())
    rows = [json.loads(line)["row"] for line in Path(job["rows"]).read_bytes().splitlines()]
    counts = {"input": len(rows), "effective": len(rows), "truncated": 0, "dropped": 0}
    shapes = planned(job)
    channel.ask("start", rows=counts)
    begun = job["start"]["step"]
    if begun == job["until"]:
        return {}
    if job["start"]["checkpoint"]:
        restored(channel, job["start"], script, shapes)
    for step in range(begun + 1, job["until"] + 1):
        time.sleep(script.get("step_s", 0))
        if "says" in script:
            sys.stderr.write(f"{script['says']} {step}\n")
            sys.stderr.flush()
        if step == script.get("at"):
            instead(channel, script, step, shapes)
        batch(channel, step, rows)
        update(channel, step, shapes)
        if channel.stop:
            checkpoint(channel, job, step, shapes, script)
            return {"outcome": "stopped"}
        if step == script.get("save_at"):
            checkpoint(channel, job, step, shapes, script)
    checkpoint(channel, job, job["until"], shapes, script)
    if script.get("do") == "die at the end":
        os.kill(os.getpid(), signal.SIGKILL)
    return {}


def restored(channel, start, script, shapes):
    """Say what was loaded: the files' own digests, unless the script keeps quiet."""
    if script.get("restores", True):
        folder = Path(start["checkpoint"]["path"])
        digests = {name: sha256((folder / name).read_bytes()) for name in learner_state(shapes, 0)}
        said = {"step": start["step"], "state": state(shapes, start["step"]), "mode": start["mode"]}
        channel.ask("restored", **said, digests=digests)


def batch(channel, step, rows, **changes):
    """A batch of two rows."""
    said = {"step": step, "micro_batches": [rows[:2]], "trainable_tokens": 9}
    channel.ask("batch", **{**said, **changes})


def update(channel, step, shapes, **changes):
    """An update from the state before to the next."""
    reals = {"learning_rate": "0.1", "loss": "1.5", "gradient_norm": "0.5"}
    states = {"before": state(shapes, step - 1), "after": state(shapes, step)}
    channel.ask("update", **{"step": step, "figures": {}, **reals, **states, **changes})


def checkpoint(channel, job, step, shapes, script):
    """A folder with adapter and learner's state; the script may have saved it worthless."""
    folder = Path(job["output"]) / f"step-{step}"
    folder.mkdir(parents=True)
    saved = SAVED.get(script.get("saves"), weights)(shapes, step)
    (folder / "adapter_model.safetensors").write_bytes(saved)
    for name, data in learner_state(shapes, step).items():
        (folder / name).write_bytes(data)
    base = script.get("base", job["model"]["name"])
    settings = job["settings"]
    named = {
        "base_model_name_or_path": base,
        "revision": job["model"]["revision"],
        "r": settings["lora_rank"],
        "lora_alpha": settings["lora_alpha"],
        "target_modules": settings["lora_targets"],
    }
    (folder / "adapter_config.json").write_bytes(encode(named))
    if script.get("saves") == "nothing at the end" and step == job["until"]:
        return
    channel.ask("checkpoint", step=step, path=str(folder), state=state(shapes, step))


def _zero_b(shapes, step):
    numbers = {name: 0 if ".lora_B." in name else step for name in shapes}
    return tensors(
        **{
            name: ("F32", shape, struct.pack("<f", numbers[name]) * math.prod(shape))
            for name, shape in shapes.items()
        }
    )


def _without(part):
    def saved(shapes, step):
        kept = {name: shape for name, shape in shapes.items() if part not in name}
        return weights(kept, step)

    return saved


SAVED = {
    "no tensor": lambda _shapes, _step: tensors(),
    "zero B": _zero_b,
    "a layer too few": _without("layers.1."),
    "a B too few": _without("layers.0.self_attn.q_proj.lora_B"),
    "not finite": lambda shapes, _step: weights(shapes, math.inf),
    "bytes behind": lambda shapes, step: weights(shapes, step) + b"hidden",
}


def instead(channel, script, step, shapes):
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
            update(channel, step + 5, shapes)
        case "end early":
            channel.ask("end", outcome="completed")
            sys.exit(0)
        case "interrupt parent":
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.3)


if __name__ == "__main__":
    place = place_of(os.environ)
    if place is not None and place.rank > 0:
        sys.exit(0)  # one process works where several were started
    sys.exit(serve(work))
