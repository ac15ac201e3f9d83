"""V20: what a study says it can attain, its nomination, its test's review and its gate are derived again."""

from __future__ import annotations

from ledger.record import Record
from verifiers.data.identity import rows_bytes
from verifiers.judgement.reruns import draws_of
from verifiers.judgement.studies import SIMULATION, figures
from verifiers.judgement.study_gate import gate_again
from verifiers.replay.exposure import exposure_of
from verifiers.replay.view import Replay, View, deriving, expect


def study(record: Record, _view: View) -> str:
    """Attainable gain, smallest p and power are those that the design gives.

    Raises:
        EvidenceError: `STUDY_WRONG`.
    """
    body = record.body
    expect("STUDY_WRONG", "simulation", body["simulation"], SIMULATION)
    with deriving("STUDY_WRONG"):
        derived = figures(body)
    for name, value in derived.items():
        expect("STUDY_WRONG", name, body[name], value)
    if record.ref("evaluation") is None:
        return "the baseline's rate, the effect and the spread that a study assumes"
    return "the effect and the spread that a study assumes"


def nomination(record: Record, view: View) -> str | None:
    """A nomination names one checkpoint a seed, of runs of its study, each a candidate on validation.

    Raises:
        EvidenceError: `NOMINATION_WRONG`.
    """
    compared: set[str] = set()
    for made in view.refs(record, "comparison"):
        role = view.ref(view.ref(made, "baseline"), "protocol").body["role"]
        expect("NOMINATION_WRONG", "role of the cases compared", role, "validation")
        for evaluation in view.refs(made, "evaluation"):
            arms = view.refs(evaluation, "arm")
            compared |= {str(arm.ref("checkpoint")) for arm in arms}
    checkpoints = record.ref_list("checkpoint")
    strangers = sorted(set(checkpoints) - compared)
    expect("NOMINATION_WRONG", "checkpoints that were not compared", strangers, [])
    plans = [view.ref(view.ref(view.get(name), "run"), "plan") for name in checkpoints]
    studies = [plan.ref("study") for plan in plans]
    expect("NOMINATION_WRONG", "studies", studies, [record.ref("study")] * len(plans))
    seeds = sorted(plan.body["seeds"]["training"] for plan in plans)
    expect("NOMINATION_WRONG", "training seeds", seeds, sorted(set(seeds)))
    return "why this checkpoint of a seed was nominated, and not another"


def review(record: Record, view: View) -> str | None:
    """What a reviewer was shown of a test, its findings and which look it is, is what the ledger before it gives.

    Raises:
        EvidenceError: `REVIEW_WRONG`.
    """
    body = record.body
    with deriving("REVIEW_WRONG"):
        found = exposure_of(
            view.ref(record, "protocol"), view.ref(record, "nomination"), str(record.prev), view
        )
    expect("REVIEW_WRONG", "fresh", body["fresh"], not found.findings)
    expect("REVIEW_WRONG", "look", body["look"], found.look)
    lines = rows_bytes([item.as_json() for item in found.findings])
    named = body["findings"]
    expect("REVIEW_WRONG", "findings", view.bytes(named) if named else b"", lines)
    return "what a reviewer says of a test's paraphrases and of contamination elsewhere"


def gate(record: Record, view: View) -> str | None:
    """Every line of a gate, with number, threshold and verdict, is what its evidence gives.

    Raises:
        EvidenceError: `GATE_UNFOUNDED`.
    """
    with deriving("GATE_UNFOUNDED"):
        report = gate_again(record, view)
    _, checks = draws_of(view.ref(record, "nomination"), str(record.prev), view)
    named_checks = sorted(record.ref_list("check"))
    expect("GATE_UNFOUNDED", "checks", named_checks, sorted(item.id for item in checks))
    expect("GATE_UNFOUNDED", "passed", record.body["passed"], report.passed)
    expect("GATE_UNFOUNDED", "gates", record.body["gates"], report.body()["gates"])
    return None


REPLAYS: dict[str, Replay] = {
    "study.registered": study,
    "candidate.nominated": nomination,
    "test.reviewed": review,
    "gate.decided": gate,
}
