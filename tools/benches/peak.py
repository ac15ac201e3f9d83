"""Verify one ledger and print the peak resident memory of this process and of each of its workers, in KiB.

    python -m benches.peak FOLDER

Peaks are `VmHWM` of /proc, which begins with the program; `ru_maxrss` would also count what the process that
started it held. Pages that several processes share, as those of libraries, are counted in each.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

from verifiers.verify import verify

SAMPLE_EVERY_S = 0.02
_PEAK = re.compile(r"^VmHWM:\s+([0-9]+) kB$", re.MULTILINE)


def main() -> None:
    """Verify and print."""
    workers: dict[str, int] = {}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(workers, done))
    watcher.start()
    try:
        report = verify(Path(sys.argv[1]))
    finally:
        done.set()
        watcher.join()
    assert report.verdict == "verified", report.wrong  # a figure for a pass that failed is none
    print(json.dumps([_peak_kib("self"), list(workers.values())]))


def _watch(peaks: dict[str, int], done: threading.Event) -> None:
    """Keep the newest peak of every child; a peak never falls, so the last one that is seen is it."""
    while not done.wait(SAMPLE_EVERY_S):
        for children in Path("/proc/self/task").glob("*/children"):
            for child in children.read_text(encoding="ascii").split():
                peaks[child] = max(peaks.get(child, 0), _peak_kib(child))


def _peak_kib(process: str) -> int:
    """The peak of a process, 0 where it has just ended."""
    try:
        status = Path("/proc", process, "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = _PEAK.search(status)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main()
