"""Draws of groups on disk, whole or not at all, before anything is made of them: after a crash they are read, not sampled.

A draw's folder is named after its number and the policy state that it was sampled from, so another state finds nothing.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger import canonical
from runners.train.checkpoints import sync
from runners.train.group_files import Group, read_group, samples_bytes, trace_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLES, TRACE = ".safetensors", ".jsonl"
SERVED = "sampler.json"
_STATE_CHARACTERS = slice(7, 23)


@dataclass(frozen=True)
class Draw:
    """The groups of a draw, and what was seen of the server that sampled them, as a record has it; None without one."""

    groups: list[Group]
    served: dict[str, str] | None = None


class Journal:
    """The draws of one run.

    Args:
        folder: where they lie; it outlives an attempt.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def draw(self, number: int, state: str, sampled: Callable[[], Draw]) -> Draw:
        """A draw: those on disk where they are there, else sampled now and kept before they are used.

        Args:
            number: of the draw, from 0.
            state: the policy's state digest.
            sampled: makes the draw.
        """
        place = self.place(number, state)
        if not place.is_dir():
            self._keep(place, sampled())
        groups = [
            read_group(path.read_bytes(), path.with_suffix(TRACE).read_bytes())
            for path in sorted(place.glob(f"*{SAMPLES}"))
        ]
        served = place / SERVED
        return Draw(groups, canonical.decode(served.read_bytes()) if served.is_file() else None)

    def place(self, number: int, state: str) -> Path:
        """Where a draw's files lie: `group-N.safetensors` and `group-N.jsonl`, and what is said of a server."""
        return self._folder / f"draw-{number:06d}-{state[_STATE_CHARACTERS]}"

    def _keep(self, place: Path, draw: Draw) -> None:
        partial = place.with_name(place.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for number, group in enumerate(draw.groups):
            path = partial / f"group-{number:04d}"
            path.with_suffix(SAMPLES).write_bytes(samples_bytes(group))
            path.with_suffix(TRACE).write_bytes(trace_bytes(group))
        if draw.served is not None:
            (partial / SERVED).write_bytes(canonical.encode(draw.served))
        for path in partial.iterdir():
            sync(path)
        sync(partial)
        partial.rename(place)
        sync(self._folder)
