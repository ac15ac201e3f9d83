"""The rows that a run is evaluated on while it trains: of role validation, never of role test (torch-free).

The figures help to choose a run; they are no evidence for a promotion, which takes an evaluation under a protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from runners.prepare.data import roles_of, split_rows
from verifiers.data.hand_out import SUPERVISED_KIND, HandedOut, hand_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.config import SftSettings

ROLE = "validation"
TEST_NAMES = frozenset({"test", "testing", "eval-test", "held-out-test"})


def validation_rows(ledger: Ledger, split: Record, settings: SftSettings) -> list[HandedOut]:
    """The chat rows that a run with `eval_steps` evaluates on: up to `eval_rows`, the first by digest; else none.

    Raises:
        UsageError: `ROW_UNTRAINABLE`, the split has no chat row with this role.
        EvidenceError: `HELD_OUT_ROW`, one of them says of itself that it is for tests.
    """
    if not settings.eval_steps:
        return []
    rows = hand_out(split_rows(ledger, split), roles_of(ledger, split), ROLE, SUPERVISED_KIND)
    if not rows:
        raise UsageError(
            "ROW_UNTRAINABLE",
            "eval_steps is set and the split has no chat rows with role validation",
            field="eval_steps",
            hint="set eval_steps to 0, or declare a split whose validation role has chat rows",
        )
    for item in rows:
        _refuse_test(item)
    return sorted(rows, key=lambda item: item.digest)[: settings.eval_rows]


def newest_figures(updates: Iterable[Record]) -> dict[str, Any] | None:
    """The figures of the newest evaluation among updates in their order: step, loss in nats, labelled tokens."""
    found = None
    for update in updates:
        figures = update.body.get("figures", {})
        if "validation_loss" in figures:
            found = {
                "step": update.body["step"],
                "loss": figures["validation_loss"],
                "labelled": figures.get("validation_labelled", 0),
            }
    return found


def _refuse_test(item: HandedOut) -> None:
    metadata = item.row.get("metadata")
    places = (item.row, metadata if isinstance(metadata, dict) else {})
    said = [str(place[name]) for place in places for name in ("split", "role") if name in place]
    if any(text.strip().casefold() in TEST_NAMES for text in said):
        name = str(item.row.get("id", item.digest))
        raise EvidenceError(
            "HELD_OUT_ROW",
            f"row {name!r} declares itself a test row and is not evaluated on while training",
            field=name,
        )
