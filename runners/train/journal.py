"""Draws of groups on disk, whole or not at all, before anything is made of them: after a crash they are read, not sampled.

A draw's folder is named after its number and the policy state that it was sampled from, so another state finds nothing.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from runners.train.checkpoints import sync
from runners.train.group_files import Group, read_group, samples_bytes, trace_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLES, TRACE = ".safetensors", ".jsonl"
_STATE_CHARACTERS = slice(7, 23)


class Journal:
    """The draws of one run.

    Args:
        folder: where they lie; it outlives an attempt.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def draw(self, number: int, state: str, sampled: Callable[[], list[Group]]) -> list[Group]:
        """The groups of a draw: those on disk where they are there, else sampled now and kept before they are used.

        Args:
            number: of the draw, from 0.
            state: the policy's state digest.
            sampled: gives the groups.
        """
        place = self.place(number, state)
        if not place.is_dir():
            self._keep(place, sampled())
        return [
            read_group(path.read_bytes(), path.with_suffix(TRACE).read_bytes())
            for path in sorted(place.glob(f"*{SAMPLES}"))
        ]

    def place(self, number: int, state: str) -> Path:
        """Where a draw's files lie: `group-N.safetensors` and `group-N.jsonl`."""
        return self._folder / f"draw-{number:06d}-{state[_STATE_CHARACTERS]}"

    def _keep(self, place: Path, groups: list[Group]) -> None:
        partial = place.with_name(place.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for number, group in enumerate(groups):
            path = partial / f"group-{number:04d}"
            path.with_suffix(SAMPLES).write_bytes(samples_bytes(group))
            path.with_suffix(TRACE).write_bytes(trace_bytes(group))
        for path in partial.iterdir():
            sync(path)
        sync(partial)
        partial.rename(place)
        sync(self._folder)
