"""Being asked to stop as a wish: the first time is remembered, the second is an interrupt like any other.

Ctrl-C (SIGINT), SIGTERM and a terminal that closes (SIGHUP) all ask. SIGHUP never insists: a shell repeats it.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

INSISTING = (signal.SIGINT, signal.SIGTERM)


class Wish:
    """Whether somebody asked to stop; call it often."""

    def __init__(self) -> None:
        self._asked = self._insisted = False
        self._held = 0

    def __call__(self) -> bool:
        """Whether it was asked for.

        Raises:
            KeyboardInterrupt: somebody insisted while it was held.
        """
        if self._insisted and not self._held:
            raise KeyboardInterrupt
        return self._asked

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block the second time raises nothing either; the next call after it does."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def note(self, number: int, _frame: FrameType | None) -> None:
        """A signal's handler."""
        if self._asked and number in INSISTING:
            if not self._held:
                raise KeyboardInterrupt
            self._insisted = True
        self._asked = True


@contextmanager
def first_is_a_wish() -> Iterator[Wish]:
    """Within the block the first signal raises nothing, so no record is left half written; yields whether it came.

    Outside the main thread, where Python delivers no signal, the answer is always no. A hang-up that this process
    was started to ignore (`nohup`) stays ignored. A block inside another has the same wish.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Wish()
        return
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(outer, Wish):
        yield outer
        return
    wish = Wish()
    numbers = [*INSISTING]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, wish.note) for number in numbers}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
