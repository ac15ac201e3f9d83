"""What the ranks of one run leave for each other and for the supervisor, in the private folder where they meet (torch-free).

Each rank counts the exchanges that it has come to, so that those who wait for another can say whom. The launcher, whose
children they are, leaves how each ended. Files of a few bytes, written over: they do not grow with the run.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_COUNT_BYTES = 8
_LAST_WORD = "last-word"


@dataclass(frozen=True)
class RankNotes:
    """The notes of one run's ranks.

    Attributes:
        folder: where its ranks meet.
    """

    folder: Path

    def came(self, rank: int, count: int) -> None:
        """A rank has come to so many exchanges."""
        with self._counter(rank).open("r+b" if self._counter(rank).exists() else "wb") as stream:
            stream.write(count.to_bytes(_COUNT_BYTES, "little"))

    def behind(self, size: int, count: int) -> list[int]:
        """Which of so many ranks have not come to so many exchanges."""
        return [rank for rank in range(size) if self._count(rank) < count]

    def say(self, words: str) -> None:
        """Leave for whom a rank waited in vain, where the supervisor may hear nothing else; the first words stay."""
        try:
            with (self.folder / _LAST_WORD).open("x", encoding="utf-8") as stream:
                stream.write(words)
        except FileExistsError:
            return

    def ended(self, exit_codes: Mapping[int, int]) -> None:
        """Leave, as their launcher saw it, how the ranks ended that ended badly and first."""
        lines = [f"{rank} {code}\n" for rank, code in sorted(exit_codes.items())]
        (self.folder / "ended").write_text("".join(lines), encoding="ascii")

    def why(self) -> str | None:
        """Why a run of several ranks broke off: whom a rank waited for in vain, else a signal; None where nobody knows.

        Where one has failed the launcher ends the others by SIGTERM, which explains nothing.
        """
        word = self.folder / _LAST_WORD
        if word.exists():
            return word.read_text(encoding="utf-8")
        ends = self._ends()
        first = [(rank, code) for rank, code in ends if code != -signal.SIGTERM] or ends
        killed = [f"rank {rank} ended with {named(code)}" for rank, code in first if code < 0]
        return "; ".join(killed) or None

    def _ends(self) -> list[tuple[int, int]]:
        path = self.folder / "ended"
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        pairs = [line.split() for line in lines]
        return [(int(rank), int(code)) for rank, code in pairs]

    def _counter(self, rank: int) -> Path:
        return self.folder / f"came-{rank}"

    def _count(self, rank: int) -> int:
        path = self._counter(rank)
        return int.from_bytes(path.read_bytes(), "little") if path.exists() else 0


def named(exit_code: int) -> str:
    """A negative exit code as the signal that it stands for, in words."""
    number = -exit_code
    try:
        name = f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        name = f"signal {number}"
    return f"{name}, often because memory ran out" if number == signal.SIGKILL else name
