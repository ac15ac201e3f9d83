"""Time as records write it. The only place where the ledger reads a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], str]


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def system_clock() -> str:
    """The time now."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}{milliseconds:03d}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """A second since 1970 as `format_time` begins it; thousands of records may fall into one."""
    return format_time(datetime.fromtimestamp(seconds, tz=UTC))[: -len("000Z")]
