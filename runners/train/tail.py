"""New records of a ledger as others append them, each looked at once.

What a poll costs does not grow with the ledger or with the run: only what came since the last look is read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ledger.record import sound
from runners.train.status import claims, living

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledger.reading import Reading
    from ledger.record import Record

POLL_S = 0.3


class Tail:
    """The end of a ledger; each look gives what came since the last one.

    Args:
        ledger: open for reading or writing.
        place: the seq to begin at.
    """

    def __init__(self, ledger: Reading, place: int) -> None:
        self._ledger = ledger
        self._place = place

    def look(self) -> Iterator[Record]:
        """The records that are new."""
        for record in self._ledger.records(self._place):
            self._place = record.seq + 1
            yield record


class StopRequest:
    """Whether somebody asked an attempt to stop; call it often.

    Args:
        ledger: of the run; records that other processes wrote are seen as well.
        run_id: of the launch.
        since: the seq of the attempt's claim; an older request was for an attempt before.
    """

    def __init__(self, ledger: Reading, run_id: str, since: int) -> None:
        self._tail = Tail(ledger, since + 1)
        self._run_id = run_id
        self._asked = False

    def __call__(self) -> bool:
        """Whether it was asked for."""
        self._asked = self._asked or any(
            record.kind == "run.stop_requested" and record.ref("run") == self._run_id
            for record in self._tail.look()
        )
        return self._asked


def follow(
    ledger: Reading, run: Record, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[list[Record]]:
    """What is recorded of a run from now on, look by look, until its newest attempt is over or its process is gone.

    Args:
        ledger: open for reading.
        run: its launch.
        sleep: waits between two looks.

    Raises:
        EvidenceError: `BODY_INVALID`, a record of the run is not as its kind must be.
    """
    claim = claims(ledger, run)[-1]
    tail, now = Tail(ledger, claim.seq + 1), ledger.size
    while True:
        # looked at before the records: an end that the process wrote in between is then among them
        works = living(claim)[0] == "running"
        new: list[Record] = []
        over = False
        for record in tail.look():
            ours = _of(record, run)
            over = record.kind == "ledger.restored" or (ours and _is_end(sound(record)))
            if ours and record.seq >= now:
                new.append(record)
            if over:
                break
        yield new
        if over or not works:
            return
        sleep(POLL_S)


def _of(record: Record, run: Record) -> bool:
    return record.ref("run") == run.id


def _is_end(record: Record) -> bool:
    return record.kind == "run.ended" or (
        record.kind == "run.reconciled" and record.body["found"] == "dead"
    )
