"""Runs whose end nobody recorded: look whether the process is gone, and record what was found.

On the machine of the launch the process table answers. Elsewhere nothing here can know, so somebody has to say it; the
record then says that it was said, not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import UsageError
from runners.train.status import OVER, claims, is_here, living, run_status

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


def reconcile(ledger: Ledger, run: Record, word: str | None = None) -> Record:
    """Record that the process of a run's newest attempt is gone; the run can then be resumed.

    Args:
        ledger: open for writing with a train key.
        run: its launch.
        word: for a process on another machine, the operator's word that it is gone, and how they know.

    Raises:
        UsageError: `RUN_ALIVE`; `HOST_OTHER`, it ran elsewhere and nobody gave a word; `RUN_NOT_OPEN`, the run has ended.
    """
    claim = claims(ledger, run)[-1]
    state, seen = living(claim)
    here = is_here(claim)
    over = (
        run_status(ledger, run).state in OVER
    )  # its process may take a moment to go; the rules refuse below
    if state == "running" and not over:
        raise UsageError("RUN_ALIVE", f"it still works: {seen}", record=run.id)
    if not here and not word and not over:
        raise UsageError("HOST_OTHER", f"the run was {seen}", record=run.id)
    body = {"found": "dead", "by": "observation" if here else "operator", "evidence": seen}
    if not here:
        body["evidence"] = f"{seen}; the operator's word: {word}"
    return ledger.append("run.reconciled", body, {"run": run.id})
