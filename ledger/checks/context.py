"""What a cross-record check may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.records.base import Body
from ledger.records.learning import WeightState
from ledger.state import RunState, State

Resolve = Callable[[str], Record | None]


@dataclass(slots=True)
class Context:
    """One record on trial: the state before it, its typed body, its refs already fetched."""

    state: State
    record: Record
    body: Body
    refs: dict[str, list[Record]]
    tree: CompactRange
    resolve: Resolve

    def ref(self, role: str) -> Record | None:
        """The record under a role with one ref, or None."""
        found = self.refs.get(role)
        return found[0] if found else None

    def need(self, role: str) -> Record:
        """The record under a required role."""
        return self.refs[role][0]

    def fetch(self, record_id: str) -> Record:
        """An earlier record that a ref's own ref names.

        Raises:
            EvidenceError: `REF_NOT_FOUND`.
        """
        record = self.resolve(record_id)
        if record is None:
            raise EvidenceError(
                "REF_NOT_FOUND", f"record {record_id[:19]} is not in this ledger", actual=record_id
            )
        return record

    def open_run(self, *, unconfirmed: bool = False) -> RunState:
        """The run that the record belongs to, running; or unconfirmed, where the caller takes that too.

        Raises:
            EvidenceError: `RUN_NOT_OPEN`.
        """
        run = self.state.runs.get(self.need("run").id)
        if run is not None and run.status == "unconfirmed" and not unconfirmed:
            raise self._not_open(
                "the run is unconfirmed since the ledger was restored; only a reconciliation fits"
            )
        if run is None or run.status == "ended":
            raise self._not_open("the run has ended; nothing more can be recorded under it")
        return run

    def _not_open(self, message: str) -> EvidenceError:
        run_id = self.need("run").id
        return EvidenceError("RUN_NOT_OPEN", message, field="refs.run", actual=run_id)

    def fail(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        expected: str | None = None,
        actual: str | None = None,
        hint: str | None = None,
    ) -> EvidenceError:
        """A finding about this record."""
        return EvidenceError(
            code, message, field=field, expected=expected, actual=actual, hint=hint
        )


Check = Callable[[Context], None]


def check_state(
    context: Context,
    expected: Mapping[str, str] | None,
    actual: WeightState | None,
    field: str,
    why: str,
    code: str = "STATE_BROKEN",
) -> None:
    """Refuse a weight state that is another one, by its scheme or its value; any will do where none is known.

    Raises:
        EvidenceError: the code given.
    """
    if expected is None or (actual is not None and actual.model_dump() == dict(expected)):
        return
    raise context.fail(
        code,
        why,
        field=field,
        expected=_said(expected),
        actual="none" if actual is None else _said(actual.model_dump()),
    )


def _said(state: Mapping[str, str]) -> str:
    return f"{state['scheme']} {state['value']}"
