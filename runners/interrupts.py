"""Ctrl-C as a wish: the first one is remembered, the second is an interrupt like any other."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


@contextmanager
def first_is_a_wish() -> Iterator[Callable[[], bool]]:
    """Within the block the first SIGINT raises nothing, so no record is left half written; yields whether it came.

    Outside the main thread, where Python delivers no signal, the answer is always no.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    wished = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        if wished.is_set():
            raise KeyboardInterrupt
        wished.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield wished.is_set
    finally:
        signal.signal(signal.SIGINT, before)
