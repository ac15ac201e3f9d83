"""V20: what was run again is what a draw hits."""

from __future__ import annotations

from typing import Any

from ledger.record import Record
from verifiers.judgement.reruns import targets_of
from verifiers.replay.view import Replay, View, deriving, expect


def check(record: Record, view: View) -> str | None:
    """What was run again is what its draw hits at this index.

    Raises:
        EvidenceError: `CHECK_UNDRAWN`.
    """
    body = record.body
    made = view.ref(record, "draw")
    expect("CHECK_UNDRAWN", "drawn_from", body["drawn_from"], made.seq + 1)
    with deriving("CHECK_UNDRAWN"):
        targets = targets_of(made.id, view)
    hit: dict[str, Any] = {"index": "none"}
    if body["index"] < len(targets):
        target = targets[body["index"]]
        hit = {"role": target.role, "record": target.record, "case": target.case}
    named = [(role, record.ref(role)) for role in ("update", "arm", "pass") if record.ref(role)]
    role, name = named[0]
    expect("CHECK_UNDRAWN", "target", {"role": role, "record": name, "case": body["case"]}, hit)
    return "that a re-run was done by who signed it, and came out as it says"


REPLAYS: dict[str, Replay] = {"check.reproduced": check}
