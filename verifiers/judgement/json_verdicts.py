"""A judge's written verdict: strict JSON, one retry, and nothing guessed.

The verdict is exactly one object `{"checks": {id: true|false}}` with every asked check and no other. A
reply like `GRID: C`, a verdict in a code fence, a duplicate key or a missing check can't be read.
"""

from __future__ import annotations

from typing import Any

from ledger.errors import EvidenceError
from verifiers.data.json_text import loads_unique

MAX_ATTEMPTS = 2
MAX_CHARACTERS = 4_000
MAX_DEPTH = 4


def read_attempts(attempts: Any, asked: tuple[str, ...]) -> dict[str, bool] | str:
    """The verdict of the last attempt, or why the case stays undecided.

    A second attempt counts only where the first can't be read: asking again after a readable verdict
    would be choosing among verdicts.
    """
    if not isinstance(attempts, list) or not 1 <= len(attempts) <= MAX_ATTEMPTS:
        return "attempts_malformed"
    read = [parse(text, asked) for text in attempts]
    if any(verdict is not None for verdict in read[:-1]):
        return "asked_again_after_a_verdict"
    return read[-1] if read[-1] is not None else "unreadable"


def parse(text: Any, asked: tuple[str, ...]) -> dict[str, bool] | None:
    """The checks of one reply, or None if it is anything but the exact object asked for."""
    value = _strict(text) if isinstance(text, str) and len(text) <= MAX_CHARACTERS else None
    if not isinstance(value, dict) or set(value) != {"checks"}:
        return None
    checks = value["checks"]
    if not isinstance(checks, dict) or set(checks) != set(asked):
        return None
    if any(type(verdict) is not bool for verdict in checks.values()):
        return None
    return {name: checks[name] for name in asked}


def _strict(text: str) -> Any:
    """The JSON value of a text; None if it is none, nests too deep or names a key twice."""
    try:
        return loads_unique(text.encode("utf-8", "surrogatepass"), MAX_DEPTH)
    except EvidenceError:
        # An unreadable verdict is a state of its own: the case becomes undecided.
        return None
