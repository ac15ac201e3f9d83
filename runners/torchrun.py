"""Starting a child as several processes: the command, its environment, and how they end together (torch-free).

`torch.distributed.run` (`runners.rank_launcher`) starts one process a rank and ends all where one fails. Nothing of it listens beyond this machine:
the launcher and the ranks meet through files in a private folder, and what the ranks exchange goes over loopback.
Standard input and output belong to rank 0; the others' output goes to the log.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runners.environment import interpreter
from runners.rank_notes import RankNotes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MEETING = "EVIDENCE_RANKS"
"""Environment variable: the file through which the ranks of one child meet."""

WAIT = "EVIDENCE_RANK_WAIT_S"
"""Environment variable: how long a rank waits for the others at an exchange."""

RANK_WAIT_S = 600
"""The same where nobody says otherwise: a step, a checkpoint and a slow disk fit in."""

SHUTDOWN_S = 10
"""How long the other ranks may take to end after one has failed, before they are killed."""

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Place:
    """One process among those of a child: its rank, how many there are, the file where they meet, how long it waits."""

    rank: int
    size: int
    meeting: Path
    wait_s: int = RANK_WAIT_S


def place_of(environment: Mapping[str, str]) -> Place | None:
    """This process's place among several; None where the child is one process."""
    if MEETING not in environment:
        return None
    rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    wait_s = int(environment.get(WAIT, RANK_WAIT_S))
    return Place(rank, size, Path(environment[MEETING]), wait_s)


@contextmanager
def launching(
    module: str, processes: int, rank_wait_s: int = RANK_WAIT_S
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The command that starts `python -m module` as so many processes, and what joins its environment.

    The folder where they meet is gone after the block.

    Args:
        module: its `main` serves one job.
        processes: with 1 it is started directly.
        rank_wait_s: how long each of several waits for the others at an exchange.
    """
    command = [interpreter(), "-P", "-m", module]
    if processes == 1:
        yield command, {}
        return
    # Ranks that were killed may still be letting go of a file.
    with tempfile.TemporaryDirectory(prefix="evidence-ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        yield [*_launcher(folder, processes), *command], _environment(folder, rank_wait_s)


def _launcher(folder: Path, processes: int) -> list[str]:
    return [
        interpreter(),
        "-P",
        "-m",
        "runners.rank_launcher",
        f"--nproc-per-node={processes}",
        "--nnodes=1",
        "--max-restarts=0",
        "--monitor-interval=0.5",
        f"--shutdown-timeout={SHUTDOWN_S}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={folder / 'launcher'}",
        "--rdzv-conf=store_type=file",
        "--rdzv-id=run",
        "--local-addr=127.0.0.1",
        f"--log-dir={folder / 'log'}",
        "--no-python",
    ]


def notes_of(environment: Mapping[str, str]) -> RankNotes | None:
    """What the ranks of a child leave, from what `launching` put into its environment; None where it is one process."""
    return RankNotes(Path(environment[MEETING]).parent) if MEETING in environment else None


def _environment(folder: Path, rank_wait_s: int) -> dict[str, str]:
    return {
        MEETING: str(folder / "ranks"),
        WAIT: str(rank_wait_s),
        "GLOO_SOCKET_IFNAME": _LOOPBACK,
        # The launcher would offer its ranks a store of its own, which listens everywhere.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        # The library would take one process for the whole of it where it is not told.
        "ACCELERATE_USE_CPU": "true",
        "CUDA_VISIBLE_DEVICES": "",
    }


def end_with_the_launcher() -> None:
    """Have the system kill this process when its launcher is gone: each rank is in a group of its own.

    Only Linux can; elsewhere a rank ends at its next word to the others.

    Raises:
        OSError: the system refused.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def hush() -> None:
    """Keep a rank that is not the first off standard input and output: they carry the first one's words."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
