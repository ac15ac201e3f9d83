"""What a draw hits, run again from bytes: updates, answers, a judge's words; each target a record of its own.

A target that has its record is not run again, so a run that was broken off goes on. Cases are run in the whole batches in
which they stood: a row alone and the same row beside a longer one differ in their last bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.assess import asking, evaluate
from runners.environment import machine
from runners.prepare.data import read_lines
from runners.train.reexecute import reexecute
from verifiers.judgement import assemble
from verifiers.judgement.judging import ORDERS
from verifiers.judgement.reproduction import judged_differs, transcript_differs
from verifiers.judgement.reruns import targets_of
from verifiers.judgement.rubric import Rubric
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from runners.assess.asking import Place, Tell
    from verifiers.judgement.draws import Target

ITEMS_A_BATCH = {"likelihood": 2, "json": 4}
"""How many items fill a batch of a judge's settings: four texts each, or two orders each, to batches of eight."""


@dataclass(frozen=True)
class Came:
    """What came of one target: where it differs, and what of code, libraries or hardware is another here."""

    target: Target
    differs: list[str]
    changed: list[str]


def run_again(ledger: Ledger, draw: Record, place: Place, tell: Tell) -> list[Record]:
    """Run every target of a draw that has no record yet, and record each.

    Args:
        ledger: open for writing with an audit key.
        draw: what was drawn.
        place: where to work.
        tell: called for progress.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `REEXECUTION_FAILED`, `EVALUATION_FAILED`; what was run before stays recorded.
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, `MODEL_FILES_CHANGED`.
    """
    view = View(ledger, ledger.blobs)
    done = {item.body["index"] for item in ledger.referrers(draw.id, "draw", "check.reproduced")}
    left = [item for item in targets_of(draw.id, view) if item.index not in done]
    made = []
    for came in _all(ledger, left, place, view, tell):
        made.append(_record(ledger, draw, came))
        tell("run again", len(made), len(left))
    return made


def _all(
    ledger: Ledger, left: list[Target], place: Place, view: View, tell: Tell
) -> Iterator[Came]:
    groups: list[tuple[str, Callable[[Target], str], _Runner]] = [
        ("update", lambda item: str(ledger.get(item.record).ref("run")), _updates),
        ("arm", lambda item: item.record, _answers),
        ("pass", lambda item: str(ledger.get(item.record).ref("arm")), _verdicts),
    ]
    for role, key, work in groups:
        by_key: dict[str, list[Target]] = {}
        for item in left:
            if item.role == role:
                by_key.setdefault(key(item), []).append(item)
        for name, targets in by_key.items():
            with tempfile.TemporaryDirectory(prefix="evidence-again-") as scratch:
                yield from work(ledger, ledger.get(name), targets, place, Path(scratch), view, tell)


_Runner = Callable[["Ledger", "Record", "list[Target]", "Place", Path, View, "Tell"], "list[Came]"]


def _updates(
    ledger: Ledger,
    _run: Record,
    targets: list[Target],
    place: Place,
    scratch: Path,
    _view: View,
    _tell: Tell,
) -> list[Came]:
    done = reexecute(ledger, [ledger.get(item.record) for item in targets], place.shelf, scratch)
    return [
        Came(
            item,
            [found.field for found in done.disagreements if found.update.id == item.record],
            done.changed,
        )
        for item in targets
    ]


def _answers(
    ledger: Ledger,
    arm: Record,
    targets: list[Target],
    place: Place,
    scratch: Path,
    _view: View,
    tell: Tell,
) -> list[Came]:
    protocol = ledger.get(str(arm.ref("protocol")))
    subject = ledger.get(arm.ref("checkpoint") or str(arm.ref("model")))
    settings = protocol.body["generation"]
    cases = read_lines(ledger, protocol.body["cases"])
    wanted = {str(item.case) for item in targets}
    taken = whole_batches(
        cases, [str(case["id"]) in wanted for case in cases], settings["batch_size"]
    )
    job = evaluate.transcription(ledger, protocol, subject, taken, place, scratch)
    job["output"] = str(scratch / "transcripts.jsonl")
    started: dict[str, Any] = {}
    asking.child(
        evaluate.GENERATE, job, place, settings["threads"], started, tell, "answering again"
    )
    found = {line["case"]: line for line in asking.lines_of(Path(job["output"]))}
    recorded = {line["case"]: line for line in read_lines(ledger, arm.body["transcripts"])}
    other = [] if started["weights"] == arm.body["weights"] else ["weights"]
    changed = _changed(arm.body["engine"], asking.engine_of(started))
    return [
        Came(
            item,
            other + transcript_differs(recorded.get(str(item.case)), found.get(str(item.case))),
            changed,
        )
        for item in targets
    ]


def _verdicts(
    ledger: Ledger,
    arm: Record,
    targets: list[Target],
    place: Place,
    scratch: Path,
    view: View,
    tell: Tell,
) -> list[Came]:
    protocol = ledger.get(str(arm.ref("protocol")))
    rubric = Rubric.read(view.json(protocol.body["rubric"]))
    items = assemble.judge_items(protocol, arm, view)
    wanted = {str(item.case) for item in targets}
    chosen = [item["item"] in wanted for item in items]
    taken = whole_batches(items, chosen, ITEMS_A_BATCH[rubric.ask])
    judge = ledger.get(str(protocol.ref("judge")))
    heard = asking.hear(judge, rubric, taken, place, scratch, tell)
    heard.output.unlink(missing_ok=True)
    found = {order: {line["case"]: line for line in heard.lines[order]} for order in ORDERS}
    return [_judged(ledger, item, found, heard.weights) for item in targets]


def _judged(ledger: Ledger, target: Target, found: dict[str, dict[str, Any]], weights: str) -> Came:
    body = ledger.get(target.record).body
    case = str(target.case)
    recorded = {line["case"]: line for line in read_lines(ledger, body["raw_output"])}
    other = [] if weights == body["judge_weights"] else ["weights"]
    return Came(
        target, other + judged_differs(recorded.get(case), found[body["order"]].get(case)), []
    )


def whole_batches(rows: list[Any], chosen: list[bool], size: int) -> list[Any]:
    """The rows of every batch of this size that holds a chosen one, in their order."""
    kept = {index // size for index, wanted in enumerate(chosen) if wanted}
    return [row for index, row in enumerate(rows) if index // size in kept]


def _changed(recorded: dict[str, Any], here: dict[str, Any]) -> list[str]:
    names = recorded.keys() | here.keys()
    return sorted(name for name in names if recorded.get(name) != here.get(name))


def _record(ledger: Ledger, draw: Record, came: Came) -> Record:
    target = came.target
    what = f"{', '.join(came.differs)} differ from what was recorded"
    return ledger.append(
        "check.reproduced",
        {
            "drawn_from": draw.seq + 1,
            "index": target.index,
            "case": target.case,
            "agreed": not came.differs,
            "detail": what if came.differs else "what was recorded came out again",
            "changed": came.changed[:64],
            "processor": machine().processor,
        },
        {"draw": draw.id, target.role: target.record},
    )
