"""Cells of an answer as JSON values: exact where JSON can be, text where it cannot."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 16


def plain(value: Any, depth: int = 0) -> Any:
    """A cell as JSON; times are UTC in ISO form, bytes are hex."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else str(value)
    for types, convert in _CONVERT:
        if isinstance(value, types):
            return convert(value)
    if depth < MAX_DEPTH and isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if depth < MAX_DEPTH and isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    return str(value)


_CONVERT: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), lambda value: bytes(value).hex()),
)
