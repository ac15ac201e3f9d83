"""What the ledger before a record had read of a test's cases: the chain is walked back, so nothing can be left out."""

from __future__ import annotations

from ledger.record import Record
from verifiers.judgement.exposure import Exposure, Look, expose, identities
from verifiers.replay.history import past_rows
from verifiers.replay.view import View

_READS = ("run.launched", "arm.transcribed")


def exposure_of(protocol: Record, nomination: Record, head: str, view: View) -> Exposure:
    """How fresh a test is for a nomination, as the ledger stands at a head.

    Args:
        protocol: the test.
        nomination: whose arms read it or will.
        head: id of the last record that counts.
        view: records and blobs.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BLOB_MISSING`, `BLOB_WRONG`; what keeps rows of the past from being read.
    """
    reads = _reads(head, view)
    looks = [look for record in reads if (look := _look_of(record, view)) is not None]
    others: list[str] = []
    for record in reads:
        if record.kind == "run.launched":
            others.append(str(view.ref(record, "plan").ref("split")))
        elif _nomination_of(record, view) != nomination.id:
            others.append(str(record.ref("protocol")))
    past = past_rows(dict.fromkeys(others), view)
    cases = list(view.lines(protocol.body["cases"]))
    return expose(cases, past, nomination.id, nomination.ref_list("checkpoint"), looks)


def _reads(head: str, view: View) -> list[Record]:
    """Every run and every arm up to the head, in order."""
    found: list[Record] = []
    at: str | None = head
    while at is not None:
        record = view.get(at)
        if record.kind in _READS:
            found.append(record)
        at = record.prev
    return found[::-1]


def _nomination_of(arm: Record, view: View) -> str | None:
    review = arm.ref("review")
    return None if review is None else view.get(review).ref("nomination")


def _look_of(record: Record, view: View) -> Look | None:
    """The look that an arm is; None for a run and for an arm that read no test."""
    if record.kind != "arm.transcribed":
        return None
    protocol = view.ref(record, "protocol")
    if protocol.body["role"] != "test":
        return None
    subject = str(record.ref("checkpoint") or record.ref("model"))
    whose = _nomination_of(record, view) or record.id
    return Look(whose, subject, record.seq, identities(view.lines(protocol.body["cases"])))
