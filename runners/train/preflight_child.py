"""Rows counted in a process of its own: a chat template is a stranger's program and may never end.

    python -m runners.train.preflight_child          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` (its folder), `rows` (JSON Lines), `settings`, `template` (a file), `at` (a file in which the number of the
row that is being rendered stands), `seconds` (of processor time for a row), `whole` (for all rows together), `output` (the file for the figures). Events:
`progress` a few times a second, then `end`. A row also has a gigabyte of memory; beyond its time the system ends the process.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import RawIOBase

BETWEEN_S = 0.25


class Stopped(Exception):
    """The parent wants no more."""


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(count)


def count(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Write the figures of `runners.train.preflight.preflight` where the job says.

    Raises:
        LedgerError: what that raises.
    """
    import json

    from runners.train.bounds import bounded
    from runners.train.config import SftSettings
    from runners.train.preflight import preflight

    settings = SftSettings.from_values(job["settings"])
    try:
        with (
            bounded(job["seconds"], whole=job["whole"]) as begin,
            Path(job["at"]).open("wb", buffering=0) as at,
        ):
            figures = preflight(
                Path(job["model"]),
                Path(job["rows"]),
                settings,
                Path(job["template"]),
                _telling(channel, at, begin),
            )
        _say(channel, figures["rows"]["input"], figures["rows"]["input"])
    except Stopped:
        return {"outcome": "stopped"}
    Path(job["output"]).write_text(json.dumps(figures), encoding="utf-8")
    return {}


def _telling(
    channel: Channel, at: RawIOBase, begin: Callable[[], None]
) -> Callable[[int, int], None]:
    """What is called before each row: the number is noted, the parent told now and then, the bounds begin again."""
    last = time.monotonic()

    def tell(number: int, total: int) -> None:
        nonlocal last
        at.seek(0)
        at.write(b"%12d" % number)
        if time.monotonic() - last > BETWEEN_S:
            last = time.monotonic()
            _say(channel, number, total)
        begin()

    return tell


def _say(channel: Channel, done: int, total: int) -> None:
    """Tell the parent how far it is, and hear whether it wants more: at the end too, so that no Ctrl-C is lost."""
    channel.ask("progress", done=done, total=total)
    if channel.stop:
        raise Stopped


if __name__ == "__main__":
    sys.exit(main())
