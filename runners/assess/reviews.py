"""What a reviewer is shown of a test before it is read, and who may then read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError
from runners.prepare.data import put_lines
from verifiers.replay.exposure import exposure_of
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.judgement.exposure import Exposure


def exposure(ledger: Ledger, protocol: Record, nomination: Record) -> Exposure:
    """How fresh a test is for a nomination now, over the whole ledger."""
    head = ledger.head()[2]
    return exposure_of(protocol, nomination, str(head), View(ledger, ledger.blobs))


def shown(ledger: Ledger, protocol: Record, nomination: Record) -> tuple[Exposure, dict[str, Any]]:
    """The exposure, and the fields of `test.reviewed` that are derived from it; findings are kept as a blob.

    Raises:
        UsageError: `CASES_TOO_FEW`, the protocol is of another role, so it has no test case.
    """
    if protocol.body["role"] != "test":
        raise UsageError(
            "CASES_TOO_FEW",
            "the protocol is of validation cases: a review is of a test",
            record=protocol.id,
            field="PROTOCOL",
            hint='register one with role = "test": evidence eval register CONFIG',
        )
    found = exposure(ledger, protocol, nomination)
    lines = [item.as_json() for item in found.findings]
    findings = put_lines(ledger, lines).model_dump() if lines else None
    return found, {"fresh": not lines, "findings": findings, "look": found.look}


def admit_look(
    ledger: Ledger,
    protocol: Record,
    review: Record | None,
    subject: Record | None = None,
    *,
    again: bool,
) -> None:
    """Refuse to read a test without a review, by a stranger, or a second time, before any model is loaded.

    Args:
        ledger: the ledger.
        protocol: one of validation cases may be read by anybody.
        review: the reviewer's statement over the test.
        subject: the model that would read it; None for those that the review names.
        again: whether a further look was asked for by name.

    Raises:
        UsageError: `TEST_NOT_REVIEWED`; `TEST_OTHER_ARM`; `TEST_LOOKED_AGAIN`, and `again` was not asked for.
    """
    if protocol.body["role"] != "test":
        return
    if review is None or review.ref("protocol") != protocol.id:
        raise UsageError(
            "TEST_NOT_REVIEWED",
            "a test set is read only under a reviewer's signed statement over it",
            record=protocol.id,
            field="--review",
        )
    if subject is not None and subject.id not in {item.id for item in readers(ledger, review)}:
        raise UsageError(
            "TEST_OTHER_ARM",
            "the model is neither nominated nor the study's baseline",
            record=subject.id,
            field="MODEL|CHECKPOINT",
        )
    found = exposure(ledger, protocol, ledger.get(str(review.ref("nomination"))))
    if found.look > 1 and not again:
        raise UsageError(
            "TEST_LOOKED_AGAIN",
            f"this would be look {found.look} at cases of this test",
            record=protocol.id,
            field="--again",
        )


def readers(ledger: Ledger, review: Record) -> list[Record]:
    """The models that a review lets read its test: the study's baseline, then each nominated checkpoint."""
    nomination = ledger.get(str(review.ref("nomination")))
    study = ledger.get(str(nomination.ref("study")))
    return [
        ledger.get(name)
        for name in (str(study.ref("baseline")), *nomination.ref_list("checkpoint"))
    ]


def arm_under(ledger: Ledger, review: Record, subject: Record) -> Record | None:
    """The arm that a model has read a test with under this review, or None."""
    role = "model" if subject.kind == "model.registered" else "checkpoint"
    found = ledger.referrers(subject.id, role, "arm.transcribed")
    return next((arm for arm in reversed(found) if arm.ref("review") == review.id), None)
