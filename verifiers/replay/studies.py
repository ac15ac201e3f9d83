"""V20: what a study says it can attain is derived again from its design."""

from __future__ import annotations

from ledger.record import Record
from verifiers.judgement.studies import SIMULATION, figures
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


REPLAYS: dict[str, Replay] = {"study.registered": study}
