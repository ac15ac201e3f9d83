"""One reinforcement run of the child alone, without a ledger: its job, its events, groups named by what they hold."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from rl_job import RL, scenarios
from tiny import loopback, model_job

from ledger.canonical import decode, encode
from ledger.digests import sha256
from runners.seeding import seed_everything
from runners.train.rl import build, train
from runners.train.rl_config import RlSettings
from runners.train.tasks import read_tasks


def settings(**change):
    """The small settings with some of them changed."""
    return RlSettings.from_values({**RL, **change})


class RlRun:
    """One run: its events, its job. `here` trains in this process; `built` gives the trainer before it does."""

    def __init__(self, tiny_model, folder, of, answer=lambda _event: {}, **more):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.answer = folder, answer
        self.events = []
        lines = [
            json.dumps({**row, "row": sha256(json.dumps(row).encode())}) + "\n"
            for row in scenarios()
        ]
        (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
        self.job = {
            "model": model_job(tiny_model),
            "rows": str(folder / "rows.jsonl"),
            "settings": of.effective(),
            "output": str(folder / "out"),
            "journal": str(folder / "journal"),
            "counts": {"input": 10, "truncated": 0, "dropped": 0},
            "reference": None,
            "until": of.steps,
            "start": {"mode": "fresh", "step": 0, "checkpoint": None},
            **more,
        }

    def on_event(self, event):
        """Keep an event and answer it; a group's name is the digest of its samples."""
        self.events.append(event)
        if event["event"] == "groups":
            files = sorted(Path(event["path"]).glob("*.safetensors"))
            names = [sha256(path.read_bytes()) for path in files]
            return {"groups": names, **self.answer(event)}
        return self.answer(event)

    def here(self):
        """Train in this process; the fields of `end`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn of one another
            return train(loopback(self.on_event), decode(encode(self.job)))

    def built(self):
        """The trainer, seeded as the child seeds it."""
        of = RlSettings.from_values(self.job["settings"])
        seed_everything(of.seed, of.threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same
            tasks = read_tasks(Path(self.job["rows"]))
            return build(loopback(self.on_event), self.job, of, tasks)

    def of(self, name):
        """The events of one name."""
        return [event for event in self.events if event["event"] == name]
