"""How far a long piece of work is, as one line on a terminal that is gone when the work is done."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

QUIET_S = 2.0
BETWEEN_S = 0.2
BAR_CHARACTERS = 24
_CLEAR = "\r\x1b[2K"


class Progress:
    """A counter of steps that draws itself; nothing is drawn in the first two seconds.

    Args:
        label: what is being done, printable.
        total: how many steps there are, None where nobody knows; may be set later.
        stream: the terminal, None to draw nothing.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        stream: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self._stream = stream
        self._clock = clock
        self._next = clock() + QUIET_S
        self._drawn = False

    def __call__(self, steps: int = 1) -> None:
        """Take steps."""
        self.to(self.done + steps)

    def to(self, done: int) -> None:
        """So many steps are done."""
        self.done = done
        if self._stream is not None and self._clock() >= self._next:
            self._next = self._clock() + BETWEEN_S
            self._draw(self._stream)

    def close(self) -> None:
        """Remove the line."""
        if self._stream is not None and self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn = False

    def line(self) -> str:
        """What is drawn."""
        if not self.total:
            return f"{self.label} {self.done:,}"
        share = min(self.done / self.total, 1.0)
        bar = ("#" * int(share * BAR_CHARACTERS)).ljust(BAR_CHARACTERS, ".")
        return f"{self.label} [{bar}] {self.done:,} of {self.total:,} ({share:.0%})"

    def _draw(self, stream: TextIO) -> None:
        stream.write(_CLEAR + self.line())
        stream.flush()
        self._drawn = True
