"""Verify one ledger and print the peak resident memory of this process and of its largest worker, in KiB.

    python -m benches.peak FOLDER

Pages that several processes share, as those of libraries, are counted in each.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from verifiers.verify import verify


def main() -> None:
    """Verify and print."""
    report = verify(Path(sys.argv[1]))
    assert report.verdict == "verified", report.wrong  # a figure for a pass that failed is none
    own, ended = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cores = len(os.sched_getaffinity(0))
    print(json.dumps([own, ended, cores if ended else 0]))


if __name__ == "__main__":
    main()
