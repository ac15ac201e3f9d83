"""Time as records write it. The only place where the ledger reads a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], str]


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def system_clock() -> str:
    """The time now."""
    return format_time(datetime.now(tz=UTC))
