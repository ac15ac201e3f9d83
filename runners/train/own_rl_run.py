"""A run of groups in the process of a user's own script: what its trainer says becomes records, and how it ended (loads torch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ledger.errors import LedgerError
from runners.child import FAILURES
from runners.train.logs import work_folder
from runners.train.methods import JOURNAL
from runners.train.own_rl_plan import NOT_ESTABLISHED
from runners.train.processes import this_process
from runners.train.sampled import Sampled
from runners.train.tail import StopRequest

if TYPE_CHECKING:
    from collections.abc import Collection

    from ledger.book import Ledger
    from ledger.record import Record


class OwnRun:
    """One launch of a plan of groups by the process that trains; it is the channel that its trainer asks.

    Args:
        ledger: open for writing.
        plan: never launched.
        given: digests of the tasks.

    Attributes:
        stop: whether somebody asked the run to stop.
    """

    def __init__(self, ledger: Ledger, plan: Record, given: Collection[str]) -> None:
        self.ledger, self.plan = ledger, plan
        body = {**this_process(), "seen": ledger.seen().model_dump()}
        self.launch = ledger.append("run.launched", body, {"plan": plan.id})
        self.work = work_folder(ledger.path, self.launch)
        self.output = self.work / "attempt-1" / "output"
        self.records = Sampled(
            ledger,
            plan,
            self.launch,
            None,
            frozenset(given),
            self.output,
            _unheard,
            not_established=NOT_ESTABLISHED,
            journal=self.work / JOURNAL,
        )
        self._request = StopRequest(ledger, self.launch.id, self.launch.seq)
        self.stop = False

    def ask(self, event: str, **fields: Any) -> dict[str, Any]:
        """Write down what the trainer says.

        Raises:
            UsageError: what the rules refuse.
            EvidenceError: `CHILD_PROTOCOL`, `CHECKPOINT_CHANGED`, or a group's or a checkpoint's own fault.
        """
        reply = self.records.answer({"event": event, **fields})
        self.stop = self.stop or self._request()
        return dict(reply)

    def done(self) -> Record:
        """Record how a training ended that nothing broke off."""
        state = self.ledger.state().runs[self.launch.id]
        budget = self.records.budget
        if state.live >= budget and self.records.newest_checkpoint() is not None:
            return self.records.end("completed", None, "completed")
        detail = f"{state.live} of {budget} updates"
        if self.stop:
            return self.records.end("stopped", None, f"it was asked to stop: {detail}")
        return self.records.end("failed", "short_run", detail)

    def broke(self, error: BaseException) -> Record | None:
        """Record that the run broke off, where that can still be recorded; the error is the caller's to raise."""
        detail = f"{getattr(error, 'code', type(error).__name__)}: {error}"
        try:
            if isinstance(error, KeyboardInterrupt):
                return self.records.end("stopped", None, "interrupted")
            return self.records.end("failed", _failure(error), detail)
        except LedgerError as second:
            error.add_note(f"and the end of the run could not be recorded: {second}")
            return None


def _failure(error: BaseException) -> str:
    """The failure that a record names an error by."""
    if isinstance(error, LedgerError):
        return FAILURES.get(error.code, "refused")
    memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return "out_of_memory" if memory else "internal"


def _unheard(_event: str, _fields: dict[str, Any]) -> None:
    """The library shows its own progress."""
