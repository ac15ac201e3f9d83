"""One supervised run of the child alone, without a ledger: its job, its events, where it goes on from."""

from __future__ import annotations

import warnings

from tiny import files_of, loopback, model_job, rows, write_rows

from ledger.canonical import decode, encode
from runners.child import run_child
from runners.train.checkpoints import adapter_state_digest
from runners.train.config import SftSettings
from runners.train.sft import train

SETTINGS = SftSettings(
    steps=4,
    batch_size=2,
    accumulation=2,
    learning_rate=0.01,
    lora_rank=2,
    lora_alpha=4,
    lora_targets=("q_proj", "down_proj"),
    save_steps=2,
    seed=5,
    threads=1,
)


def changed(**change):
    """The settings with some of them changed."""
    return SETTINGS.model_copy(update=change)


class Run:
    """One run: its events and what it was given. `here` trains in this process, `apart` in a child."""

    def __init__(
        self,
        tiny_model,
        folder,
        settings=SETTINGS,
        model=None,
        answer=lambda event: {},
        start=None,
        **more,
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.answer = folder, answer
        self.rows = write_rows(folder / "rows.jsonl", rows(12))
        self.events = []
        self.job = {
            "model": model or model_job(tiny_model),
            "rows": str(self.rows),
            "settings": settings.effective(),
            "output": str(folder / "out"),
            "until": settings.steps,
            "start": start or {"mode": "fresh"},
            **more,
        }

    def on_event(self, event):
        """Keep an event and answer it."""
        self.events.append(event)
        return self.answer(event)

    def apart(self, **options):
        """Train in a child process."""
        self.ended = run_child(
            "runners.train.sft", self.job, self.on_event, self.folder / "log", threads=1, **options
        )
        return self

    def here(self):
        """Train in this process, which has the libraries loaded already; the fields of `end`."""
        channel = loopback(self.on_event)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn of one another
            self.end = train(channel, decode(encode(self.job)))
        return self

    def of(self, name):
        """The events of one name."""
        return [event for event in self.events if event["event"] == name]


def going_on(folder, mode="exact"):
    """The job's `start` from a checkpoint's folder, as it is now."""
    step = int(folder.name.rpartition("-")[2])
    checkpoint = {
        "path": str(folder),
        "files": files_of(folder),
        "state": adapter_state_digest(folder),
    }
    return {"mode": mode, "step": step if mode == "exact" else 0, "checkpoint": checkpoint}
