"""A study's gate: the evidence of its newest nomination is gathered, every line decided and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import UsageError
from verifiers.judgement.reruns import draws_of
from verifiers.judgement.study_gate import gate_of
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


def decide(ledger: Ledger, study: Record) -> Record:
    """Decide the gate of a study's newest nomination and record it, passed or not.

    Raises:
        UsageError: `NOMINATION_MISSING`; `REVIEW_MISSING`, no reviewer signed a test protocol for it; `GATE_MISSING`, nothing was
            evaluated under it.
    """
    nominations = ledger.referrers(study.id, "study", "candidate.nominated")
    if not nominations:
        raise _missing("NOMINATION_MISSING", "no nomination names this study", study)
    nomination = nominations[-1]
    reviews = ledger.referrers(nomination.id, "nomination", "test.reviewed")
    if not reviews:
        raise _missing("REVIEW_MISSING", "no reviewer signed a test for the nomination", nomination)
    subjects = [str(study.ref("baseline")), *nomination.ref_list("checkpoint")]
    evaluations = [
        found for name in subjects if (found := _newest(ledger, name, reviews[-1])) is not None
    ]
    if not evaluations:
        raise _missing("GATE_MISSING", "nothing was evaluated under the reviewed test", reviews[-1])
    state = ledger.state()
    policy = ledger.get(state.policy) if state.policy else None
    head, view = str(ledger.head()[2]), View(ledger, ledger.blobs)
    _, checks = draws_of(nomination, head, view)
    body = policy.body if policy else None
    report = gate_of(study, nomination, evaluations, body, head, view)
    refs: dict[str, str | list[str]] = {
        "study": study.id,
        "nomination": nomination.id,
        "evaluation": [item.id for item in evaluations],
    }
    if checks:
        refs["check"] = [item.id for item in checks]
    if policy is not None:
        refs["policy"] = policy.id
    return ledger.append("gate.decided", report.body(), refs)


def _newest(ledger: Ledger, subject: str, review: Record) -> Record | None:
    """The newest evaluation of a model or checkpoint under a review."""
    found = [
        evaluation
        for role in ("model", "checkpoint")
        for arm in ledger.referrers(subject, role, "arm.transcribed")
        if arm.ref("review") == review.id
        for evaluation in ledger.referrers(arm.id, "arm", "evaluation.completed")
    ]
    return max(found, key=lambda record: record.seq, default=None)


def _missing(code: str, message: str, record: Record) -> UsageError:
    return UsageError(code, message, record=record.id)
