"""One model through one protocol: transcribe, judge, count; each step recorded before the next.

Model and judge run one after the other in child processes, so never two are in memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.canonical import parse_real
from ledger.errors import UsageError
from ledger.floors import DEFAULT_POLICY
from runners.assess import asking
from runners.assess.asking import Place, Tell
from runners.assess.prompts import write_template
from runners.assess.reviews import arm_under
from runners.assess.unfinished import unfinished_arm, unfinished_passes
from runners.prepare.data import put_lines, read_lines
from runners.train.plans import plan_of
from runners.train.recovery import recover
from verifiers.data.identity import rows_bytes
from verifiers.judgement import assemble
from verifiers.judgement.judging import ORDERS
from verifiers.judgement.rubric import Rubric
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

GENERATE = "runners.assess.generate"


def evaluate(
    ledger: Ledger,
    protocol: Record,
    subject: Record,
    place: Place,
    tell: Tell,
    review: Record | None = None,
) -> Record:
    """Transcribe, judge and count one subject under one protocol; the evaluation's record.

    Where an earlier evaluation died, what it recorded or left behind is not done again.

    Args:
        ledger: open for writing with a judge key.
        protocol: a registered protocol.
        subject: a registered model or a published checkpoint.
        place: where to work.
        tell: called for progress.
        review: the reviewer's statement under which a test is read. An arm that the subject has under it already is gone on
            with, so that a broken evaluation is no second look.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `EVALUATION_FAILED`, `JUDGE_IS_POLICY`, or what the rules refuse.
        EvidenceError: the model or the checkpoint is not what was recorded.
    """
    check_judge(ledger, protocol, subject)
    with tempfile.TemporaryDirectory(prefix="evidence-eval-") as scratch:
        arm = (
            arm_under(ledger, review, subject)
            if review is not None
            else unfinished_arm(ledger, protocol, subject)
        )
        if arm is None:
            arm = transcribe(ledger, protocol, subject, place, Path(scratch), tell, review)
        passes = unfinished_passes(ledger, arm)
        if len(passes) < len(ORDERS):
            passes = judge(ledger, protocol, arm, place, Path(scratch), tell)
    return complete(ledger, protocol, arm, passes)


def check_judge(ledger: Ledger, protocol: Record, subject: Record) -> None:
    """Refuse a judge that is the model it would judge, or of its family where the policy in force says so.

    Raises:
        UsageError: `JUDGE_IS_POLICY`.
    """
    judge_id = protocol.ref("judge")
    if judge_id is None:
        return
    named = ledger.state().policy
    policy = ledger.get(named).body if named else None
    spoken = base_model(ledger, subject)
    problem = assemble.too_near(ledger.get(judge_id), spoken, policy)
    if problem is not None:
        raise UsageError("JUDGE_IS_POLICY", problem, field="judge", record=judge_id)


def transcribe(
    ledger: Ledger,
    protocol: Record,
    subject: Record,
    place: Place,
    scratch: Path,
    tell: Tell,
    review: Record | None = None,
) -> Record:
    """What the subject answers to every case, recorded as an arm."""
    cases = read_lines(ledger, protocol.body["cases"])
    started: dict[str, Any] = {}
    job = transcription(ledger, protocol, subject, cases, place, scratch)
    threads = protocol.body["generation"]["threads"]
    ended = asking.child(GENERATE, job, place, threads, started, tell, "answering")
    output = Path(job["output"])
    kind = "model" if subject.kind == "model.registered" else "checkpoint"
    made = ledger.append(
        "arm.transcribed",
        {
            "transcripts": put_lines(ledger, asking.lines_of(output)).model_dump(),
            "cases": ended.end["cases"],
            "prompts": ended.end["prompts"],
            "tokens": ended.end["tokens"],
            "truncated": ended.end["truncated"],
            "weights": ended.end["weights"],
            "engine": asking.engine_of(started),
        },
        {"protocol": protocol.id, kind: subject.id, **({"review": review.id} if review else {})},
    )
    output.unlink(missing_ok=True)
    return made


def transcription(
    ledger: Ledger,
    protocol: Record,
    subject: Record,
    cases: list[dict[str, Any]],
    place: Place,
    scratch: Path,
) -> dict[str, Any]:
    """The job of a child that lets a subject answer cases of a protocol; its files are in `scratch`.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `TEMPLATE_OTHER`.
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, `MODEL_FILES_CHANGED`.
    """
    base = base_model(ledger, subject)
    (scratch / "cases.jsonl").write_bytes(rows_bytes(cases))
    model = asking.model_job(base, place.shelf)
    template = scratch / "template.jinja"
    plan = None if subject is base else plan_of(ledger, subject)
    write_template(ledger, protocol, base, Path(model["path"]), template, plan)
    settings = protocol.body["generation"]
    work = {"work": "answers", "subject": subject.id, "settings": settings}
    return {
        "model": model,
        "template": str(template),
        "adapter": _adapter_job(ledger, subject, scratch),
        "cases": str(scratch / "cases.jsonl"),
        "settings": settings,
        "output": str(asking.kept_output(place, {**work, "protocol": protocol.id}, cases)),
    }


def judge(
    ledger: Ledger, protocol: Record, arm: Record, place: Place, scratch: Path, tell: Tell
) -> list[Record]:
    """Both orders of the judge's pass over an arm's dialogue answers; nothing where none is judged."""
    judge_id = protocol.ref("judge")
    if judge_id is None:
        return []
    view = View(ledger, ledger.blobs)
    items = assemble.judge_items(protocol, arm, view)
    rubric = Rubric.read(view.json(protocol.body["rubric"]))
    heard = asking.hear(ledger.get(judge_id), rubric, items, place, scratch, tell)
    shown = put_lines(ledger, items).model_dump()
    found = {item.body["order"]: item for item in unfinished_passes(ledger, arm)}
    for order, raw in heard.passes(rubric).items():
        if order not in found:
            found[order] = _record_pass(ledger, protocol, arm, raw, shown, heard.weights, view)
    heard.output.unlink(missing_ok=True)
    return [found[order] for order in ORDERS]


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
    raw: dict[str, Any],
    shown: dict[str, Any],
    weights: str,
    view: View,
) -> Record:
    verdicts, undecided = assemble.verdicts_of(protocol, arm, raw, view)
    qualification = qualified_by(ledger, protocol, weights)
    refs: dict[str, str | list[str]] = {"protocol": protocol.id, "arm": arm.id}
    if qualification is not None:
        refs["qualification"] = qualification.id
    return ledger.append(
        "judge.passed",
        {
            "pass_kind": raw["pass_kind"],
            "order": raw["order"],
            "judge_weights": weights,
            "raw_input": shown,
            "raw_output": put_lines(ledger, raw["lines"]).model_dump(),
            "verdicts": put_lines(ledger, verdicts).model_dump(),
            "undecided": undecided,
            "qualified": qualification is not None,
        },
        refs,
    )


def qualified_by(ledger: Ledger, protocol: Record, weights: str) -> Record | None:
    """The newest qualification that holds for a protocol's judge, asked as the protocol asks; None without one."""
    named = ledger.state().policy
    floor = (ledger.get(named).body if named else DEFAULT_POLICY)["judge_accuracy"]
    found = [
        item
        for item in ledger.referrers(str(protocol.ref("judge")), "model", "judge.qualified")
        if item.body["qualified"]
        and item.body["asked"] == protocol.body["judging"]
        and item.body["judge_weights"] == weights
        and parse_real(item.body["floor"]) >= parse_real(floor)
    ]
    return found[-1] if found else None


def base_model(ledger: Ledger, subject: Record) -> Record:
    """The registered model that speaks, or whose weights an adapter is put on."""
    if subject.kind == "model.registered":
        return subject
    return ledger.get(str(plan_of(ledger, subject).ref("model")))


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
