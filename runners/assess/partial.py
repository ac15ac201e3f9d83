"""What a child of an evaluation has done so far, batch by batch, so that one that died goes on where it stopped.

The file is the child's own: lines are kept only where they are the expected ones, whole batches from the start. What it
belongs to (cases, weights, settings, code) is the caller's to put into its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from pathlib import Path

Line = dict[str, Any]


class Partial:
    """Lines of one output file, `lines` being those that are there.

    Args:
        path: the file; it need not exist.
        batches: what each batch's lines must be about, in order.
        about: what a line is about.
    """

    def __init__(
        self, path: Path, batches: Sequence[Sequence[object]], about: Callable[[Line], object]
    ) -> None:
        self.path = path
        self.lines: list[Line] = []
        self.batches = 0
        found = _read(path)
        for expected in batches:
            lines = found[len(self.lines) : len(self.lines) + len(expected)]
            if [about(line) for line in lines] != list(expected):
                break
            self.lines += lines
            self.batches += 1
        _write(path, self.lines)

    def add(self, lines: Sequence[Line]) -> None:
        """Keep one more batch, on disk before this returns."""
        self.lines += lines
        self.batches += 1
        with self.path.open("ab") as stream:
            stream.write(_bytes(lines))
            stream.flush()
            os.fsync(stream.fileno())


def _read(path: Path) -> list[Line]:
    """The whole lines of a file up to the first that is no JSON object."""
    if not path.exists():
        return []
    found: list[Line] = []
    for raw in path.read_bytes().splitlines(keepends=True):
        try:
            line = orjson.loads(raw) if raw.endswith(b"\n") else None
        except orjson.JSONDecodeError:
            line = None  # torn when its writer died: what follows is done again
        if not isinstance(line, dict):
            break
        found.append(line)
    return found


def _write(path: Path, lines: Sequence[Line]) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(_bytes(lines))
    new.replace(path)


def _bytes(lines: Sequence[Line]) -> bytes:
    return b"".join(orjson.dumps(line, option=orjson.OPT_SORT_KEYS) + b"\n" for line in lines)
