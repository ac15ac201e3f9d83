"""What a run's newest updates say of how it goes: loss, pace, time left, age of the last sign of life."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.reading import Reading
    from ledger.record import Record
    from runners.train.status import RunStatus

PACE_UPDATES = 20


@dataclass(frozen=True)
class Live:
    """Figures of a run, None where there are none yet.

    Attributes:
        loss: of the newest update on the live path; so for `gradient_norm` and `learning_rate`.
        updates_per_s: over the newest updates of this attempt.
        left_s: at that pace; for a running run only.
        last_update_age_s: since the newest update was recorded.
        checkpoint_step: of the newest checkpoint.
        checkpoint_age_s: since it was recorded.
    """

    loss: str | None = None
    gradient_norm: str | None = None
    learning_rate: str | None = None
    updates_per_s: float | None = None
    left_s: float | None = None
    last_update_age_s: float | None = None
    checkpoint_step: int | None = None
    checkpoint_age_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The figures as a JSON object."""
        return asdict(self)


def live(ledger: Reading, found: RunStatus, now: str) -> Live:
    """The figures of a run.

    Args:
        ledger: open for reading.
        found: how the run stands.
        now: the time, as a record has it.
    """
    update, checkpoint = found.update, found.checkpoint
    pace = _pace(ledger, found)
    left = found.budget - found.counters["updates"]
    body = update.body if update else {}
    return Live(
        loss=body.get("loss"),
        gradient_norm=body.get("gradient_norm"),
        learning_rate=body.get("learning_rate"),
        updates_per_s=round(pace, 4) if pace else None,
        left_s=round(left / pace, 1) if pace and found.state == "running" else None,
        last_update_age_s=_age_s(update, now),
        checkpoint_step=checkpoint.body["step"] if checkpoint else None,
        checkpoint_age_s=_age_s(checkpoint, now),
    )


def _pace(ledger: Reading, found: RunStatus) -> float | None:
    """Updates a second over this attempt's newest ones; None where there are fewer than two, or a clock went back."""
    newest = oldest = found.update
    counted = 0
    while oldest is not None and counted < PACE_UPDATES:
        name = oldest.ref("previous")
        before = ledger.find(name) if name else None
        if before is None or before.seq < found.claim.seq:
            break
        oldest, counted = before, counted + 1
    if newest is None or oldest is None or not counted:
        return None
    took_s = _seconds(oldest.time, newest.time)
    return counted / took_s if took_s > 0 else None


def _age_s(record: Record | None, now: str) -> float | None:
    return None if record is None else round(max(0.0, _seconds(record.time, now)), 1)


def _seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()
