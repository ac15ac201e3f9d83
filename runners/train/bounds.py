"""Bounds on what a stranger's program may take of this process for one piece of work: processor time and memory.

Only for a process that has nothing else to do: where the time is over the system ends it, in the middle of whatever it
does. Memory that is not there is a `MemoryError`.
"""

from __future__ import annotations

import resource
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 10
MEMORY_BYTES = 1 << 30
WHOLE_SECONDS = 300
PIECES_PER_SECOND = 10
"""A row of a thousand tokens takes a few milliseconds; a template that takes its ten seconds at each row is ended early."""

_PAGES = Path("/proc/self/statm")


def whole_seconds(pieces: int) -> int:
    """What so many pieces of work may take together: on average far less than the longest of them."""
    return WHOLE_SECONDS + pieces // PIECES_PER_SECOND


@contextmanager
def bounded(
    seconds: int = SECONDS, memory_bytes: int = MEMORY_BYTES, *, whole: int | None = None
) -> Iterator[Callable[[], None]]:
    """Within the block each piece of work is bounded; yields what is called at the beginning of each.

    Args:
        seconds: processor time that one piece may take.
        memory_bytes: what it may take beyond what the process has.
        whole: processor time that all pieces may take together, in seconds; None for no such bound.
    """
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS)}

    ends = None if whole is None else int(time.process_time()) + 1 + whole

    def begin() -> None:
        limit = int(time.process_time()) + 1 + seconds
        _lower(resource.RLIMIT_CPU, limit if ends is None else min(limit, ends))
        if _PAGES.exists():  # Linux; elsewhere the time alone is bounded
            used = int(_PAGES.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            _lower(resource.RLIMIT_AS, used + memory_bytes)

    try:
        yield begin
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)


def _lower(kind: int, soft: int) -> None:
    hard = resource.getrlimit(kind)[1]
    limit = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(kind, (limit, hard))
