"""A user's own run while it goes on: what its trainer does becomes records, or stops it (loads torch)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ledger.canonical import real
from ledger.errors import LedgerError, UsageError
from runners.train import adopted_plan
from runners.train.adoption import check_plan, refused
from runners.train.processes import this_process
from runners.train.supervised import Supervised
from runners.train.tail import StopRequest
from runners.train.trainer_hooks import check_signal

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.adopted_rows import AdoptedRows
    from runners.train.adopted_weights import LiveWeights


class AdoptedRun:
    """One launch of a plan by the process that trains.

    Args:
        ledger: open for writing.
        plan: never launched.
        trainer: the one that the plan was made for.
        rows: its rows.
        weights: its model's.

    Raises:
        UsageError: `PLAN_STALE`, the trainer is no longer what the plan says.
    """

    def __init__(
        self, ledger: Ledger, plan: Record, trainer: Any, rows: AdoptedRows, weights: LiveWeights
    ) -> None:
        check_plan(plan, trainer, rows, weights)
        self.ledger, self.plan = ledger, plan
        self._trainer, self._rows, self._weights = trainer, rows, weights
        self._state, self._frozen = weights.digest(), weights.frozen_digest()
        self._loss, self._norm, self._parts = 0.0, 0.0, 0
        self._supervised: Supervised | None = None
        self._request: StopRequest | None = None

    def begin(self) -> None:
        """Launch the plan.

        Raises:
            UsageError: what the rules refuse.
        """
        body = {**this_process(), "seen": self.ledger.seen().model_dump()}
        launch = self.ledger.append("run.launched", body, {"plan": self.plan.id})
        self._supervised = self._supervising(launch)
        self._request = StopRequest(self.ledger, launch.id, launch.seq)
        if self._supervised.origin is not None:
            self._tell("restored", step=0, state=self._state, mode="weights", digests={})

    def _supervising(self, launch: Record) -> Supervised:
        parent = self.plan.ref("parent")
        decoded = (adopted_plan.NOT_DECODED,) if self._rows.decoded else ()
        return Supervised(
            self.ledger,
            self.plan,
            launch,
            None if parent is None else self.ledger.get(parent),
            frozenset(self._rows.digests),
            self.ledger.path / "work" / launch.id[7:23] / "attempt-1" / "output",
            _unheard,
            not_established=(*adopted_plan.NOT_ESTABLISHED, *decoded),
        )

    @property
    def launch(self) -> Record | None:
        """The launch, once it is on record."""
        return None if self._supervised is None else self._supervised.run

    @property
    def checkpoint(self) -> Record | None:
        """The newest checkpoint on record."""
        return None if self._supervised is None else self._supervised.checkpoint

    @property
    def _records(self) -> Supervised:
        assert self._supervised is not None  # begin made it
        return self._supervised

    # --- a step ----------------------------------------------------------------------------------------

    def chosen(self, positions: list[list[int]], tokens: int) -> None:
        """Record the batch of the next step: the rows of each micro-batch by position, the tokens its loss looks at."""
        digests = self._rows.digests
        rows = [[digests[position] for position in batch] for batch in positions]
        self._loss, self._norm, self._parts = 0.0, 0.0, len(rows)
        step = self._trainer.state.global_step + 1
        self._tell("batch", step=step, micro_batches=rows, trainable_tokens=tokens)

    def computed(self, loss: float) -> None:
        """Add a micro-batch's share to the step's loss."""
        self._loss += loss

    def normed(self, norm: float) -> None:
        """Keep the norm, and refuse a step without a signal.

        Raises:
            UsageError: `BAD_GRADIENT`.
        """
        self._norm = norm
        check_signal(self._trainer.state.global_step + 1, self._loss, norm)

    def check_state(self, when: str) -> None:
        """Refuse weights that are not those of the last update.

        Raises:
            UsageError: `STATE_BROKEN`.
        """
        found = self._weights.digest()
        if found != self._state:
            raise UsageError(
                "STATE_BROKEN",
                f"{when}, the weights are not those of the last update: something else changed them",
                field="model",
                expected=self._state,
                actual=found,
            )

    def acknowledge(self, learning_rate: float) -> None:
        """Record the update: the weights have changed and nothing else has."""
        before, self._state = self._state, self._weights.digest()
        self._tell(
            "update",
            step=self._trainer.state.global_step + 1,
            loss=real(self._loss),
            gradient_norm=real(self._norm),
            learning_rate=real(learning_rate),
            before=before,
            after=self._state,
            figures={"micro_batches": self._parts},
        )

    def asked_to_stop(self) -> bool:
        """Whether somebody asked the run to stop since its launch (`evidence run stop`)."""
        return self._request is not None and self._request()

    def publish(self) -> None:
        """Record what is trained as a checkpoint: weights, and nothing that would have to be unpickled.

        Raises:
            UsageError: `STATE_BROKEN`.
            EvidenceError: `CHECKPOINT_CHANGED`.
        """
        step = self._trainer.state.global_step
        self.check_state(f"at the checkpoint of step {step}")
        base = self.ledger.get(str(self.plan.ref("model")))
        output = self._records.output
        output.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=output) as folder:
            self._weights.save(Path(folder), self._state, str(base.body["name"]))
            self._tell("checkpoint", step=step, path=folder, state=self._state)

    # --- the end ---------------------------------------------------------------------------------------

    def over(self) -> None:
        """See that a training that came to its end is all on record, its last weights too.

        Raises:
            UsageError: `ADOPTION_REFUSED`, a step is not; `STATE_BROKEN`, the weights are others.
        """
        taken, live = self._trainer.state.global_step, self._live()
        if taken != live:
            raise refused("callbacks", f"{taken} steps were taken and {live} are on record")
        self.check_state("at the end")
        if self._weights.frozen_digest() != self._frozen:
            raise UsageError("STATE_BROKEN", "weights changed that are not trained", field="model")
        if live and self._records.newest_checkpoint() is None:
            self.publish()  # a run leaves its last weights, whatever the library was told to save

    def done(self) -> Record:
        """Record how a training ended that nothing broke off."""
        live, budget = self._live(), int(self.plan.body["budget_updates"])
        if live >= budget:
            return self._records.end("completed", None, "completed")
        detail = f"{live} of {budget} updates"
        if self.asked_to_stop():
            return self._records.end("stopped", None, f"it was asked to stop: {detail}")
        if self._trainer.control.should_training_stop:
            return self._records.end("stopped", None, f"the script stopped it: {detail}")
        return self._records.end("failed", "short_run", detail)

    def broke(self, error: BaseException) -> Record | None:
        """Record that the run broke off, where that can still be recorded; the error itself is the caller's to raise."""
        detail = f"{getattr(error, 'code', type(error).__name__)}: {error}"
        try:
            if self._supervised is None:
                # an interruption may fall between the launch and whoever waits for it
                launched = self.ledger.referrers(self.plan.id, "plan", "run.launched")
                if isinstance(error, LedgerError) or not launched or not _is_ours(launched[-1]):
                    return None
                self._supervised = self._supervising(launched[-1])
            if isinstance(error, KeyboardInterrupt):
                return self._records.end("stopped", None, "interrupted")
            return self._records.end("failed", _failure(error), detail)
        except LedgerError as second:
            error.add_note(f"and the end of the run could not be recorded: {second}")
            return None

    def _live(self) -> int:
        state = self.ledger.state().runs.get(self._records.run.id)
        return 0 if state is None else state.live

    def _tell(self, event: str, **fields: Any) -> None:
        self._records.answer({"event": event, **fields})


def _is_ours(launch: Record) -> bool:
    return all(launch.body[name] == value for name, value in this_process().items())


def _failure(error: BaseException) -> str:
    """The failure that a record names an error by."""
    if isinstance(error, LedgerError):
        return "bad_gradient" if error.code == "BAD_GRADIENT" else "refused"
    return (
        "out_of_memory" if isinstance(error, torch.OutOfMemoryError | MemoryError) else "internal"
    )


def _unheard(_event: str, _fields: dict[str, Any]) -> None:
    """The library shows its own progress."""
