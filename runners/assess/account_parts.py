"""The part of an account that is about the test: its review, who looked, what was run again, who approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError
from verifiers.judgement.draws import FORGED_SHARES, escapes
from verifiers.judgement.exposure import identities
from verifiers.judgement.reruns import back_from, draws_of, strata_of, targets_of
from verifiers.replay.exposure import exposure_of

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.judgement.draws import Escape
    from verifiers.replay.view import View

Item = dict[str, Any]


def test_of(ledger: Ledger, gate: Record, view: View) -> Item:
    """The test as the gate saw it: how fresh it was, and every look at any of its cases.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BLOB_MISSING`, `BLOB_WRONG`.
        UsageError: `GATE_MISSING`, the gate names no evaluation.
    """
    evaluations = view.refs(gate, "evaluation")
    if not evaluations:
        raise UsageError("GATE_MISSING", "the gate names no evaluation", record=gate.id)
    nomination, protocol = view.ref(gate, "nomination"), view.ref(evaluations[0], "protocol")
    found = exposure_of(protocol, nomination, str(gate.prev), view)
    reviews = [
        item
        for item in ledger.referrers(nomination.id, "nomination", "test.reviewed")
        if item.ref("protocol") == protocol.id and item.seq < gate.seq
    ]
    return {
        "protocol": protocol.id,
        "name": protocol.body["name"],
        "role": protocol.body["role"],
        "cases": sum(protocol.body["case_kinds"].values()),
        "kinds": dict(protocol.body["case_kinds"]),
        "look": found.look,
        "seen": list(found.seen),
        "levels": found.levels,
        "reviews": [_review(item) for item in reviews],
        "looks": _looks(ledger, protocol, view),
    }


def _review(record: Record) -> Item:
    names = ("fresh", "look", "paraphrase", "contamination")
    return {
        "review": record.id,
        "time": record.time,
        **{name: record.body[name] for name in names},
    }


def _looks(ledger: Ledger, protocol: Record, view: View) -> list[Item]:
    """Every answer to a test in the ledger that shares a case with this one, in order."""
    mine = identities(view.lines(protocol.body["cases"]))
    tests = {
        item.id
        for item in ledger.of_kind("protocol.registered")
        if item.body["role"] == "test" and identities(view.lines(item.body["cases"])) & mine
    }
    arms = [item for item in ledger.of_kind("arm.transcribed") if item.ref("protocol") in tests]
    return [_look(item, view) for item in arms]


def _look(arm: Record, view: View) -> Item:
    review = arm.ref("review")
    return {
        "arm": arm.id,
        "seq": arm.seq,
        "time": arm.time,
        "answered_by": str(arm.ref("checkpoint") or arm.ref("model")),
        "baseline": arm.ref("checkpoint") is None,
        "nomination": view.get(review).ref("nomination") if review else None,
        "cases": arm.body["cases"],
        "truncated": arm.body["truncated"],
    }


def draws(gate: Record, view: View) -> list[Item]:
    """Every draw for the gate's nomination up to the gate: what it hit, what agreed, what may have escaped it.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BLOB_MISSING`, `BLOB_WRONG`.
    """
    made, checks = draws_of(view.ref(gate, "nomination"), str(gate.prev), view)
    return [
        _draw(item, [check for check in checks if check.ref("draw") == item.id], view)
        for item in made
    ]


def _draw(record: Record, checks: list[Record], view: View) -> Item:
    strata = strata_of(record, list(back_from(record, view)), view)
    targets = targets_of(record.id, view)
    agreed = [item for item in checks if item.body["agreed"]]
    return {
        "draw": record.id,
        "drawn_from": record.seq + 1,
        "members": sum(len(item.members) for item in strata),
        "targets": len(targets),
        "updates": sum(item.role == "update" for item in targets),
        "cases": sum(item.role != "update" for item in targets),
        "run": len({item.body["index"] for item in checks}),
        "agreed": len(agreed),
        "disagreed": [
            {"check": item.id, "case": item.body["case"], "detail": item.body["detail"]}
            for item in checks
            if not item.body["agreed"]
        ],
        "escape": [_escape(item) for item in escapes(strata, FORGED_SHARES)],
    }


def _escape(item: Escape) -> Item:
    """Chances are fractions of 1."""
    return {"forged": float(item.forged), "one": float(item.one), "every": float(item.every)}


def approvals(ledger: Ledger, gate: Record) -> list[Item]:
    """The reviewers' statements over the gate."""
    return [
        {
            "approval": item.id,
            "reviewer": item.body["reviewer"],
            "why": item.body["why"],
            "time": item.time,
        }
        for item in ledger.referrers(gate.id, "gate", "promotion.approved")
    ]
