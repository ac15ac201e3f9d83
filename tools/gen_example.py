"""Make examples/small-ledger anew: the whole job with a tiny model, under fixed keys and a fixed clock.

    python tools/gen_example.py

Needs the train extra and about a minute. What depends on the machine (its processor, the last bits of the weights)
differs from one making to the next, so nothing compares the files; a test and tools/check_base.py verify them.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
FOLDER = EXAMPLES / "small-ledger"
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/runners")]

import small_job  # noqa: E402 - lies beside the tests

from ledger.book import Ledger  # noqa: E402 - after the path is set
from ledger.clock import format_time  # noqa: E402
from ledger.ed25519 import PrivateKey  # noqa: E402
from ledger.record import Record  # noqa: E402
from runners.assess import evaluate, promote, protocols  # noqa: E402
from runners.assess.config import GenerationSettings  # noqa: E402
from runners.prepare import data, divide, register  # noqa: E402
from runners.train import plans, supervisor  # noqa: E402
from runners.train.config import SftSettings  # noqa: E402
from verifiers.verify import Options, verify  # noqa: E402

ORIGIN = "example.com/small-ledger"
START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
HOST = "example"
KEPT = ("ledger.sqlite", "blobs")
MAX_BYTES = 1_000_000
README = """# Examples

`small-ledger` is a whole ledger that anybody can verify: a tiny model with random weights was tuned for a few steps on
rows about a made-up shop, base and adapter were put to the same cases, and a promotion was refused. The model learns
nothing worth having; what counts is that every number can be derived again.

    evidence verify --ledger examples/small-ledger --level blobs --root {root}

The root key's id is `{root}`. Its {records} records and {blobs} blobs were written by
`python tools/gen_example.py`, which makes its keys from fixed words: trust them for this example and nothing else.
"""


class Clock:
    """A second later each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        """The next time."""
        self.asked += 1
        return format_time(START + timedelta(seconds=self.asked))


def key(name: str) -> PrivateKey:
    """The example's private key of a name."""
    return PrivateKey.from_seed(f"example {name}".encode().ljust(32, b"."))


def main() -> int:
    """Make the example, verify it, put it in its place; 0 where it is as it should be."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "ledger"
        do_the_job(Path(scratch), made)
        ready = Path(scratch) / "ready"
        ready.mkdir()
        for name in KEPT:
            source = made / name
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, ready / name)
        report = verify(ready, Options(level="blobs", pinned_roots=frozenset([key("root").id])))
        size = sum(path.stat().st_size for path in ready.rglob("*") if path.is_file())
        if report.verdict != "verified" or size > MAX_BYTES:
            print(f"{report.verdict}, {size} bytes: {report.findings}", file=sys.stderr)
            return 1
        shutil.rmtree(FOLDER, ignore_errors=True)
        for name in KEPT:
            (shutil.copytree if (ready / name).is_dir() else shutil.copyfile)(
                ready / name, _in_place(name)
            )
    blobs = report.blobs.checked
    text = README.format(root=key("root").id, records=report.records, blobs=blobs)
    (EXAMPLES / "README.md").write_text(text, encoding="utf-8")
    print(f"{FOLDER.relative_to(ROOT)}: {report.records} records, {blobs} blobs, {size} bytes")
    return 0


def do_the_job(scratch: Path, folder: Path) -> None:
    """The operations that the commands call, one after the other."""
    platform.node = lambda: HOST  # the record of a launch names its host
    tiny, judge_folder = small_job.made_models(scratch / "models")
    shelf = scratch / "shelf"
    with Ledger.create(
        folder,
        origin=ORIGIN,
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=["ingest", "train", "judge", "seal"],
        nonce=f"{1:032x}",
        clock=Clock(),
    ) as ledger:
        ledger.seal()
        model, judge = (_register(ledger, path, shelf) for path in (tiny, judge_folder))
        split = _data(ledger, scratch)
        checkpoint = _train(ledger, split, model, shelf)
        _judge(ledger, split, judge, (model, checkpoint), evaluate.Place(shelf, scratch / "logs"))
        promote.promote(ledger, checkpoint)
        ledger.seal()


def _register(ledger: Ledger, folder: Path, shelf: Path) -> Record:
    return register.add_folder(
        ledger,
        folder,
        shelf,
        name=None,
        licence="CC0-1.0",
        source="made by the example",
        revision=None,
    )


def _data(ledger: Ledger, scratch: Path) -> Record:
    rows = small_job.write_lines(scratch / "rows.jsonl", small_job.small_rows())
    note = data.SourceNote(licence="CC0-1.0", origin="made by the example")
    _, dataset, _ = data.ingest_files(ledger, [rows], "small desk", note)
    split = divide.declare_split(ledger, dataset, ["customer_id"], [60, 20, 20], 1)
    divide.audit_split(ledger, split)
    return split


def _train(ledger: Ledger, split: Record, model: Record, shelf: Path) -> Record:
    config = plans.SftConfig(split.id, model.id, SftSettings.from_values(small_job.SFT))
    prepared = plans.prepare_sft(ledger, config, shelf)
    plan = plans.record_plan(ledger, prepared)
    done = supervisor.launch_sft(ledger, plan, shelf, lambda *_: None)
    assert done.checkpoint is not None, done.ended.body["detail"]
    return done.checkpoint


def _judge(
    ledger: Ledger,
    split: Record,
    judge: Record,
    subjects: tuple[Record, Record],
    place: evaluate.Place,
) -> None:
    given = dict(small_job.EVAL)
    config = protocols.ProtocolConfig(
        name="held-out",
        split=split.id,
        judge=judge.id,
        role="validation",
        desk_cases=given.pop("desk_cases"),
        dialogue_cases=given.pop("dialogue_cases"),
        undecided_share="0.05",
        generation=GenerationSettings.from_values(given),
    )
    protocol = protocols.register(ledger, config)
    base, adapter = (
        evaluate.evaluate(ledger, protocol, subject, place, lambda *_: None) for subject in subjects
    )
    evaluate.compare(ledger, base, [adapter])


def _in_place(name: str) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return FOLDER / name


if __name__ == "__main__":
    sys.exit(main())
