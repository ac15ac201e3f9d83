"""A small supervised run to disturb: a ledger with data and a plan, a tiny model, fixed keys, nothing launched yet."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.report import ROOT
from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from ledger.record import Record
from runners.prepare import data, divide, register
from runners.prepare.shelf import default_shelf
from runners.train.config import SftSettings
from runners.train.plans import SftConfig, prepare_sft, record_plan
from runners.train.status import run_status

TESTS = ROOT / "tests" / "runners"
SETTINGS: dict[str, Any] = {
    "batch_size": 2,
    "accumulation": 2,
    "learning_rate": 0.01,
    "schedule": "cosine",
    "warmup_steps": 1,
    "lora_rank": 4,
    "lora_alpha": 8,
    "lora_dropout": 0.1,
    "max_length": 256,
    "matmul": "bfloat16",
    "save_steps": 2,
    "threads": 1,
    "seed": 3,
}
EPOCHS = 2
MAKE_MODEL = "import sys; from pathlib import Path; import tiny; tiny.make_model(Path(sys.argv[1]))"


def key(name: str) -> PrivateKey:
    """The campaign's private key of a name."""
    return PrivateKey.from_seed(f"campaign {name}".encode().ljust(32, b"."))


@dataclass(frozen=True)
class SftWorld:
    """A folder with a ledger in it and the plan of a run."""

    folder: Path
    shelf: Path
    plan: str

    @property
    def ledger(self) -> Path:
        """The ledger's folder."""
        return self.folder / "ledger"

    def copied(self, folder: Path) -> SftWorld:
        """The same in another folder; the shelf is shared."""
        shutil.copytree(self.folder / "ledger", folder / "ledger")
        return SftWorld(folder, self.shelf, self.plan)

    def opened(self) -> Ledger:
        """The ledger, to write."""
        return Ledger.open(self.ledger, key=key("writer"))

    def launches(self, ledger: Ledger) -> list[Record]:
        """The plan's launch, where there is one yet."""
        return ledger.referrers(self.plan, "plan", "run.launched")

    def run(self, ledger: Ledger) -> Record:
        """The plan's launch."""
        return self.launches(ledger)[0]

    def state(self) -> str:
        """How the plan's run stands; `unlaunched` before its launch."""
        with Ledger.read(self.ledger) as ledger:
            found = self.launches(ledger)
            return run_status(ledger, found[0]).state if found else "unlaunched"

    def detail(self) -> str:
        """What the run says of itself."""
        with Ledger.read(self.ledger) as ledger:
            found = self.launches(ledger)
            return run_status(ledger, found[0]).detail if found else "it was never launched"


def make_world(folder: Path, name: str = "tiny") -> SftWorld:
    """Make or fetch the model, make ledger, data and plan; nothing is trained."""
    folder.mkdir(parents=True)
    shelf = folder / "shelf" if name == "tiny" else default_shelf()
    with Ledger.create(
        folder / "ledger",
        origin="example.com/campaign",
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=["ingest", "train", "judge", "seal"],
        nonce=f"{1:032x}",
    ) as ledger:
        model = _model(ledger, name, folder, shelf)
        split = _split(ledger, folder)
        plan = _plan(ledger, split, model, shelf)
    return SftWorld(folder, shelf, plan.id)


def _model(ledger: Ledger, name: str, folder: Path, shelf: Path) -> Record:
    if name != "tiny":
        return register.add_package(ledger, name, shelf, lambda *_: None)[0]
    return register.add_folder(
        ledger,
        make_model(folder / "tiny"),
        shelf,
        name="tiny",
        licence="CC0-1.0",
        source="made by the campaign",
        revision=None,
    )


def make_model(folder: Path) -> Path:
    """A tiny model of random weights, made by a process of its own: this one must stay free of torch to fork."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{TESTS}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MAKE_MODEL, str(folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return folder


def _split(ledger: Ledger, folder: Path) -> Record:
    sys.path.insert(0, str(TESTS))
    small_job = importlib.import_module("small_job")  # lies beside the tests of the runners
    rows = small_job.write_lines(folder / "rows.jsonl", small_job.small_rows())
    note = data.SourceNote(licence="CC0-1.0", origin="made by the campaign")
    _, dataset, _ = data.ingest_files(ledger, [rows], "small desk", note)
    split = divide.declare_split(ledger, dataset, ["customer_id"], [60, 20, 20], 1)
    divide.audit_split(ledger, split)
    return split


def _plan(ledger: Ledger, split: Record, model: Record, shelf: Path) -> Record:
    """The plan of as many steps as two epochs are."""
    once = prepare_sft(ledger, _config(split, model, 4), shelf)
    rows = int(once.figures["rows"]["effective"])
    per_step = SETTINGS["batch_size"] * SETTINGS["accumulation"]
    prepared = prepare_sft(ledger, _config(split, model, -(-EPOCHS * rows // per_step)), shelf)
    return record_plan(ledger, prepared)


def _config(split: Record, model: Record, steps: int) -> SftConfig:
    return SftConfig(split.id, model.id, SftSettings.from_values({**SETTINGS, "steps": steps}))
