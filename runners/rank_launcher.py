"""The launcher of a run's ranks: torch's own, which also leaves how each of them ended (loads torch).

    python -m runners.rank_launcher --nproc-per-node=2 … COMMAND

Only a process's parent is told the signal that ended it, and the launcher would say it to the log alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main as launch

from runners.rank_notes import RankNotes
from runners.torchrun import MEETING


def main(words: list[str]) -> int:
    """Start the ranks and stay until they have ended; 1 where one of them failed."""
    try:
        launch(words)
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        RankNotes(Path(os.environ[MEETING]).parent).ended(codes)
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
