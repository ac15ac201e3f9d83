"""One model through one protocol: transcribe, judge, count; each step recorded before the next.

Model and judge run one after the other in child processes, so never two are in memory.
"""

from __future__ import annotations

import math
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.canonical import loads
from ledger.errors import EvidenceError, UsageError
from runners.assess.config import LikelihoodSettings
from runners.assess.generate import at_file
from runners.assess.prompts import write_template
from runners.child import ChildExit, Event, Reply, run_child
from runners.prepare.data import put_lines, read_lines
from runners.prepare.shelf import model_folder
from runners.train.bounds import SECONDS
from runners.train.plans import plan_of
from runners.train.recovery import recover
from verifiers.data.identity import rows_bytes
from verifiers.judgement import assemble
from verifiers.judgement.judging import ORDERS, PARTS, likelihood_line
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

GENERATE = "runners.assess.generate"
LIKELIHOOD = "runners.assess.likelihood"

Tell = Callable[[str, int, int], None]
"""(what is being done, done, total)"""


@dataclass(frozen=True)
class Place:
    """Where an evaluation works: the model shelf and a folder for logs."""

    shelf: Path
    logs: Path


def evaluate(ledger: Ledger, protocol: Record, subject: Record, place: Place, tell: Tell) -> Record:
    """Transcribe, judge and count one subject under one protocol; the evaluation's record.

    Args:
        ledger: open for writing with a judge key.
        protocol: a registered protocol.
        subject: a registered model or a published checkpoint.
        place: where to work.
        tell: called for progress.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `EVALUATION_FAILED`, or what the rules refuse.
        EvidenceError: the model or the checkpoint is not what was recorded.
    """
    place.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="evidence-eval-") as scratch:
        arm = transcribe(ledger, protocol, subject, place, Path(scratch), tell)
        passes = judge(ledger, protocol, arm, place, Path(scratch), tell)
    return complete(ledger, protocol, arm, passes)


def transcribe(
    ledger: Ledger, protocol: Record, subject: Record, place: Place, scratch: Path, tell: Tell
) -> Record:
    """What the subject answers to every case, recorded as an arm."""
    base = _base_model(ledger, subject)
    cases = read_lines(ledger, protocol.body["cases"])
    (scratch / "cases.jsonl").write_bytes(rows_bytes(cases))
    settings = protocol.body["generation"]
    model = _model_job(base, place.shelf)
    template = scratch / "template.jinja"
    plan = None if subject is base else plan_of(ledger, subject)
    write_template(ledger, protocol, base, Path(model["path"]), template, plan)
    job = {
        "model": model,
        "template": str(template),
        "adapter": _adapter_job(ledger, subject, scratch),
        "cases": str(scratch / "cases.jsonl"),
        "settings": settings,
        "output": str(scratch / "transcripts.jsonl"),
    }
    started: dict[str, Any] = {}
    ended = _child(GENERATE, job, place, settings["threads"], started, tell, "answering")
    lines = _lines(scratch / "transcripts.jsonl")
    kind = "model" if subject.kind == "model.registered" else "checkpoint"
    return ledger.append(
        "arm.transcribed",
        {
            "transcripts": put_lines(ledger, lines).model_dump(),
            "cases": ended.end["cases"],
            "prompts": ended.end["prompts"],
            "tokens": ended.end["tokens"],
            "truncated": ended.end["truncated"],
            "weights": ended.end["weights"],
            "engine": _engine(started),
        },
        {"protocol": protocol.id, kind: subject.id},
    )


def judge(
    ledger: Ledger, protocol: Record, arm: Record, place: Place, scratch: Path, tell: Tell
) -> list[Record]:
    """Both orders of the judge's pass over an arm's dialogue answers; nothing where none is judged."""
    judge_id = protocol.ref("judge")
    if judge_id is None:
        return []
    model = ledger.get(judge_id)
    view = View(ledger, ledger.blobs)
    items = assemble.judge_items(protocol, arm, view)
    input_blob = put_lines(ledger, items)
    (scratch / "items.jsonl").write_bytes(rows_bytes(items))
    settings = LikelihoodSettings()
    job = {
        "model": _model_job(model, place.shelf),
        "items": str(scratch / "items.jsonl"),
        "settings": settings.effective(),
        "output": str(scratch / "raw.jsonl"),
    }
    started: dict[str, Any] = {}
    ended = _child(LIKELIHOOD, job, place, settings.threads, started, tell, "judging")
    raw = _lines(scratch / "raw.jsonl")
    replies = {item["item"]: item["reply"] for item in items}
    return [
        _record_pass(
            ledger,
            protocol,
            arm,
            order,
            raw_lines(order, raw, replies),
            input_blob.model_dump(),
            ended,
            view,
        )
        for order in ORDERS
    ]


def raw_lines(
    order: str, raw: list[dict[str, Any]], replies: dict[str, str]
) -> list[dict[str, Any]]:
    """The raw lines of one order's pass, from what the judge model printed for all parts.

    A sum that is not finite is left out, with which the case is undecided.
    """
    parts: dict[str, dict[str, tuple[float, int]]] = {name: {} for name in replies}
    for line in raw:
        total = float(line["logprob_sum"])
        if line["part"] in PARTS[order] and math.isfinite(total):
            parts[line["item"]][line["part"]] = (total, line["tokens"])
    return [likelihood_line(name, replies[name], found) for name, found in parts.items() if found]


def complete(ledger: Ledger, protocol: Record, arm: Record, passes: list[Record]) -> Record:
    """Count an arm's outcomes, by the same function that the verifier calls."""
    view = View(ledger, ledger.blobs)
    lines, counts = assemble.evaluation_of(protocol, arm, passes, view)
    refs: dict[str, str | list[str]] = {"protocol": protocol.id, "arm": [arm.id]}
    if passes:
        refs["pass"] = [item.id for item in passes]
    body = {"outcomes": put_lines(ledger, lines).model_dump(), **counts}
    return ledger.append("evaluation.completed", body, refs)


def compare(ledger: Ledger, baseline: Record, evaluations: list[Record]) -> Record:
    """Put evaluations beside a baseline's, candidates in the order of their rank.

    Raises:
        UsageError: `PAIRING_BROKEN`, `NOTHING_TO_COMPARE`, `PROTOCOL_MISMATCH`.
    """
    body = assemble.comparison_of(baseline, evaluations, View(ledger, ledger.blobs))
    ranked: list[str] = [item["evaluation"] for item in body["candidates"]]
    return ledger.append("comparison.made", body, {"baseline": baseline.id, "evaluation": ranked})


def _record_pass(
    ledger: Ledger,
    protocol: Record,
    arm: Record,
    order: str,
    lines: list[dict[str, Any]],
    input_blob: dict[str, Any],
    ended: ChildExit,
    view: View,
) -> Record:
    raw = {"pass_kind": "direction", "order": order, "lines": lines}
    verdicts, undecided = assemble.verdicts_of(protocol, arm, raw, view)
    return ledger.append(
        "judge.passed",
        {
            "pass_kind": "direction",
            "order": order,
            "judge_weights": ended.end["weights"],
            "raw_input": input_blob,
            "raw_output": put_lines(ledger, lines).model_dump(),
            "verdicts": put_lines(ledger, verdicts).model_dump(),
            "undecided": undecided,
            "qualified": False,
        },
        {"protocol": protocol.id, "arm": arm.id},
    )


def _child(
    module: str,
    job: dict[str, Any],
    place: Place,
    threads: int,
    started: dict[str, Any],
    tell: Tell,
    what: str,
) -> ChildExit:
    def answer(event: Event) -> Reply:
        if event["event"] == "start":
            started.update(event)
        elif event["event"] == "progress":
            tell(what, event["done"], event["total"])
        return {}

    log = place.logs / f"{module.rpartition('.')[2]}.log"
    ended = run_child(module, job, answer, log, threads=threads)
    if ended.outcome != "completed":
        _check_template(job, ended)
        raise UsageError(
            "EVALUATION_FAILED",
            f"{what} ended {ended.outcome}: {ended.code}: {ended.message}; log: {log}",
        )
    return ended


def _check_template(job: dict[str, Any], ended: ChildExit) -> None:
    """Where the system ended the child for its processor time, it was at a prompt: only those are bounded.

    Raises:
        EvidenceError: `TEMPLATE_UNBOUNDED`, with the case.
    """
    at = at_file(job)
    if ended.code == "CHILD_DIED" and ended.returncode == -signal.SIGXCPU and at.exists():
        case = at.read_text(encoding="utf-8")
        raise EvidenceError(
            "TEMPLATE_UNBOUNDED",
            f"case {case[:80]}: the chat template took more processor time than {SECONDS} s, or all"
            " prompts up to it more than they may",
            field="chat_template",
        )


def _base_model(ledger: Ledger, subject: Record) -> Record:
    if subject.kind == "model.registered":
        return subject
    return ledger.get(str(plan_of(ledger, subject).ref("model")))


def _model_job(model: Record, shelf: Path) -> dict[str, Any]:
    return {
        "path": str(model_folder(shelf, model)),
        "name": model.body["name"],
        "files": model.body["files"],
    }


def _adapter_job(ledger: Ledger, subject: Record, scratch: Path) -> dict[str, Any] | None:
    if subject.kind == "model.registered":
        return None
    folder = scratch / "adapter"
    recover(ledger, subject, folder)
    return {
        "path": str(folder),
        "files": subject.body["files"],
        "state": subject.body["state"]["value"],
    }


def _engine(started: dict[str, Any]) -> dict[str, Any]:
    """What spoke, flat as a record holds it: settings, library versions, processor."""
    libraries = {f"library.{name}": version for name, version in started["libraries"].items()}
    return {**started["settings"], **libraries, "processor": started["machine"]["processor"]}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [loads(line, 64) for line in path.read_bytes().splitlines()]
