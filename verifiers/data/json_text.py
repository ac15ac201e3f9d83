"""JSON from anybody, read strictly: bounded, no NaN, and no object with one key twice."""

from __future__ import annotations

import json
from typing import Any

from ledger.canonical import loads
from ledger.errors import EvidenceError

MAX_DIGITS = 40
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**64 - 1


def loads_unique(data: bytes, max_depth: int) -> Any:
    """The value of JSON bytes whose objects name each key once.

    The fast parser bounds the depth and refuses NaN, infinities and bad UTF-8, but keeps the last of two
    equal keys; the second parse is there to see them.

    Raises:
        EvidenceError: `NOT_CANONICAL`, the bytes are not JSON or nest too deep;
            `DUPLICATE_KEY`, an object names one key twice.
    """
    loads(data, max_depth)
    return json.loads(data, object_pairs_hook=_unique, parse_int=_integer)


def _integer(text: str) -> int:
    """An integer that the writer of rows can write again; the length is looked at first, since long ones cost more."""
    if len(text) > MAX_DIGITS:
        raise EvidenceError("NOT_CANONICAL", f"an integer has {len(text)} digits")
    value = int(text)
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise EvidenceError("NOT_CANONICAL", f"the integer {text} is beyond 64 bits")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise EvidenceError("DUPLICATE_KEY", f"the key {twice[:40]!r} stands twice in one object")
    return value
