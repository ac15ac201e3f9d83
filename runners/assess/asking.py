"""A judge put to work on items: asked for JSON or for likelihoods, in both orders, in a child process.

Whoever needs a judge's raw output gets it here: evaluations, qualifications, re-runs.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from runners.assess.config import AskSettings, LikelihoodSettings
from runners.assess.generate import at_file
from runners.child import ChildExit, Event, Reply, run_child
from runners.environment import library_versions
from runners.prepare.shelf import model_folder
from runners.train.bounds import SECONDS
from runners.train.plans import code_digests
from verifiers.data.identity import rows_bytes
from verifiers.judgement.judging import ORDERS, PARTS, PASS_KINDS, json_line, likelihood_line
from verifiers.judgement.rubric import Rubric

if TYPE_CHECKING:
    from ledger.record import Record

LIKELIHOOD = "runners.assess.likelihood"
ASK = "runners.assess.ask"
Tell = Callable[[str, int, int], None]
"""(what is being done, done, total)"""
Item = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where an evaluation works: the model shelf and a folder for logs and for what a broken child leaves."""

    shelf: Path
    logs: Path


@dataclass(frozen=True)
class Heard:
    """What a judge said: raw lines of each order, the digest of its weights, what it ran on."""

    lines: Mapping[str, list[Item]]
    weights: str
    engine: dict[str, Any]
    output: Path

    def passes(self, rubric: Rubric) -> dict[str, dict[str, Any]]:
        """The raw passes by order, in the form that judging reads."""
        kind = PASS_KINDS[rubric.ask][0]
        return {
            order: {"pass_kind": kind, "order": order, "lines": self.lines[order]}
            for order in ORDERS
        }


def hear(
    model: Record, rubric: Rubric, items: Sequence[Item], place: Place, scratch: Path, tell: Tell
) -> Heard:
    """Ask a registered model about items, each in both orders.

    What was asked before an earlier child died is not asked again; remove `output` once its lines are recorded.

    Args:
        model: record of the judge.
        rubric: what is asked and how.
        items: what the judge is shown, see `runners.assess.likelihood`.
        place: where to work.
        scratch: a folder for the job's files.
        tell: called for progress.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `EVALUATION_FAILED`.
        EvidenceError: `MODEL_FILES_CHANGED`.
    """
    (scratch / "items.jsonl").write_bytes(rows_bytes(items))
    settings = LikelihoodSettings() if rubric.ask == "likelihood" else AskSettings()
    checks = [[check.id, check.question] for check in rubric.checks if check.decided_by == "judge"]
    job: dict[str, Any] = {"settings": settings.effective()}
    if rubric.ask == "json":
        job["checks"] = checks
    module = LIKELIHOOD if rubric.ask == "likelihood" else ASK
    output = kept_output(place, {**job, "work": rubric.ask, "model": model.body["tree"]}, items)
    job |= {
        "model": model_job(model, place.shelf),
        "items": str(scratch / "items.jsonl"),
        "output": str(output),
    }
    started: dict[str, Any] = {}
    ended = child(module, job, place, settings.threads, started, tell, "judging")
    replies = {item["item"]: item["reply"] for item in items}
    raw = lines_of(output)
    lines = {
        order: raw_lines(order, raw, replies)
        if rubric.ask == "likelihood"
        else json_lines(order, raw, replies)
        for order in ORDERS
    }
    return Heard(lines, str(ended.end["weights"]), engine_of(started), output)


def raw_lines(order: str, raw: list[Item], replies: Mapping[str, str]) -> list[Item]:
    """The raw lines of one order's pass, from what the judge model printed for all parts.

    A sum that is not finite is left out, with which the case is undecided.
    """
    parts: dict[str, dict[str, tuple[float, int]]] = {name: {} for name in replies}
    for line in raw:
        total = float(line["logprob_sum"])
        if line["part"] in PARTS[order] and math.isfinite(total):
            parts[line["item"]][line["part"]] = (total, line["tokens"])
    return [likelihood_line(name, replies[name], found) for name, found in parts.items() if found]


def json_lines(order: str, raw: list[Item], replies: Mapping[str, str]) -> list[Item]:
    """The raw lines of one order's pass, from what the judge model wrote."""
    return [
        json_line(line["item"], replies[line["item"]], line["attempts"])
        for line in raw
        if line["order"] == order and line["attempts"]
    ]


def kept_output(place: Place, job: Mapping[str, Any], rows: Sequence[Item]) -> Path:
    """The file that a child adds its lines to, the same for the same work by the same code, and else another."""
    place.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    work = {**job, "rows": sha256(rows_bytes(rows)), "code": code_digests() | library_versions()}
    return place.logs / f"{sha256(canonical.encode(work))[7:23]}.jsonl"


def child(
    module: str,
    job: dict[str, Any],
    place: Place,
    threads: int,
    started: dict[str, Any],
    tell: Tell,
    what: str,
) -> ChildExit:
    """Run a child to its end.

    Raises:
        UsageError: `EVALUATION_FAILED`.
        EvidenceError: `TEMPLATE_UNBOUNDED`.
    """

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


def model_job(model: Record, shelf: Path) -> dict[str, Any]:
    """A job's `model`."""
    return {
        "path": str(model_folder(shelf, model)),
        "name": model.body["name"],
        "files": model.body["files"],
    }


def engine_of(started: Mapping[str, Any]) -> dict[str, Any]:
    """What spoke, flat as a record holds it: settings, library versions, processor."""
    libraries = {f"library.{name}": version for name, version in started["libraries"].items()}
    return {**started["settings"], **libraries, "processor": started["machine"]["processor"]}


def lines_of(path: Path) -> list[Item]:
    """The lines of a child's output."""
    return [canonical.loads(line, 64) for line in path.read_bytes().splitlines()]
