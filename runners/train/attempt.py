"""One attempt at a run: what it works with, where its files lie, whether it is to stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.interrupts import Wish
from runners.train.logs import child_log, supervisor_log, trim, work_folder
from runners.train.tail import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.supervised import Supervised
    from verifiers.data.hand_out import HandedOut

    Tell = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Material:
    """What an attempt works with, looked up before anything is claimed."""

    plan: Record
    model: Record
    folder: Path
    rows: list[HandedOut]
    validation: list[HandedOut]
    origin: Record | None


@dataclass
class Attempt:
    """An attempt whose claim is on record; called often, it says whether to stop, and keeps the logs bounded.

    Attributes:
        run: the launch.
        claim: the launch, or the resumption that began this attempt.
        tell: called with (event, fields) for progress.
        stop_requested: asked beside the ledger and the signals.
        wish: whether a signal asked to stop.
        number: of the attempt, from 1.
        work: the run's folder for what is not the ledger's.
    """

    ledger: Ledger
    run: Record
    claim: Record
    material: Material
    tell: Tell
    stop_requested: Callable[[], bool]
    wish: Wish
    number: int = field(init=False)
    work: Path = field(init=False)
    request: StopRequest = field(init=False)

    def __post_init__(self) -> None:
        self.number = 1 + sum(
            item.ref("run") == self.run.id for item in self.ledger.of_kind("run.resumed")
        )
        self.work = work_folder(self.ledger.path, self.run)
        self.request = StopRequest(self.ledger, self.run.id, self.claim.seq)

    @property
    def place(self) -> Path:
        """The attempt's own folder."""
        return self.work / f"attempt-{self.number}"

    def __call__(self) -> bool:
        """Whether to stop.

        Raises:
            KeyboardInterrupt: somebody insisted.
        """
        trim(child_log(self.work))
        trim(supervisor_log(self.work, self.number))
        return self.wish() or self.stop_requested() or self.request()

    def end(self, supervised: Supervised, outcome: str, failure: str | None, detail: str) -> Record:
        """Record the end, whoever insists on ending meanwhile."""
        with self.wish.held():
            return supervised.end(outcome, failure, detail)
