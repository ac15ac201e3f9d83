"""The processes of one run and what they exchange, over gloo on this machine (loads torch).

Bytes are exchanged as tensors of bytes; nothing is pickled. Each exchange is entered by every rank in the same order. An
exchange that a rank does not come to ends with an error in all others: at once where that rank is gone, after
`rank_wait_s` where it hangs. The error names the ranks that did not come.
"""

from __future__ import annotations

import random
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed
from torch.distributed import (  # type: ignore[attr-defined]  # public, and not in its list of exports
    FileStore,
    PrefixStore,
)

from ledger import canonical
from ledger.errors import EvidenceError, UsageError
from runners.rank_notes import RankNotes
from runners.seeding import derive
from runners.torchrun import RANK_WAIT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runners.torchrun import Place

LAST_WORD_S = 20.0
"""How long a rank that has finished or failed waits until rank 0 has said so to the supervisor."""

_ENDED, _FAILED = "ended", "failed"


class Ranks:
    """One process's view of all processes of its run.

    Args:
        rank: its own number, from 0.
        size: how many there are.
        store: what they share beside the exchanges; None where the process is alone.
        notes: where each leaves how far it came; None where the process is alone.
        wait_s: how long an exchange waits for those who have not come.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        store: Any = None,
        notes: RankNotes | None = None,
        wait_s: int = RANK_WAIT_S,
    ) -> None:
        self.rank = rank
        self.size = size
        self._store = store
        self._notes = notes
        self._wait_s = wait_s
        self._exchanges = 0

    @property
    def first(self) -> bool:
        """Whether this one speaks and writes for all."""
        return self.rank == 0

    def gather(self, data: bytes) -> list[bytes]:
        """What each rank gives, in the order of ranks, at every rank.

        Raises:
            LedgerError: another rank's error; `CHILD_DIED`, a rank is gone.
        """
        if self.size == 1:
            return [data]
        with self._together():
            lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
            distributed.all_gather(lengths, torch.tensor([len(data)]))
            counts = [int(length) for length in lengths]
            mine = torch.zeros(max(counts), dtype=torch.uint8)
            mine[: len(data)] = _as_tensor(data)
            parts = [torch.empty_like(mine) for _ in range(self.size)]
            distributed.all_gather(parts, mine)
        pairs = zip(parts, counts, strict=True)
        return [part[:count].numpy().tobytes() for part, count in pairs]

    def from_first(self, data: bytes | None) -> bytes:
        """What rank 0 gives, at every rank; the others give None.

        Raises:
            LedgerError: see `gather`.
        """
        if self.size == 1:
            return data or b""
        with self._together():
            length = torch.tensor([len(data or b"")])
            distributed.broadcast(length, src=0)
            whole = torch.zeros(int(length), dtype=torch.uint8)
            if data is not None:
                whole[:] = _as_tensor(data)
            distributed.broadcast(whole, src=0)
        return whole.numpy().tobytes()

    def add_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Let every rank hold the sum of all ranks' gradients; each comes to the same bits.

        Raises:
            LedgerError: see `gather`.
        """
        if self.size == 1:
            return
        with self._together():
            for parameter in parameters:
                if parameter.requires_grad:
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
                    distributed.all_reduce(parameter.grad)

    def seed_apart(self, seed: int) -> None:
        """Give each rank but the first random streams of its own: equal dropout masks would halve what they are for."""
        if not self.first:
            own = derive(seed, "rank", self.rank)
            random.seed(own)
            np.random.seed(own)  # noqa: NPY002 - libraries draw from this one
            torch.manual_seed(own)

    # --- the end -------------------------------------------------------------------------------------

    def tell_end(self) -> None:
        """Rank 0 has told the supervisor how the run ended: the others may go."""
        self._store.set(_ENDED, "1")

    def await_end(self, error: dict[str, Any] | None) -> None:
        """Leave the exchanges, with an error or without, and stay until rank 0 has said how it ended."""
        if error is not None:
            self._store.set(_FAILED, canonical.encode({"rank": self.rank, **error}))
        distributed.destroy_process_group()
        deadline = time.monotonic() + LAST_WORD_S
        while not self._store.check([_ENDED]) and time.monotonic() < deadline:
            time.sleep(0.05)

    @contextmanager
    def _together(self) -> Iterator[None]:
        self._exchanges += 1
        if self._notes is not None:
            self._notes.came(self.rank, self._exchanges)
        began = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            sys.stderr.write(f"rank {self.rank}: {error}\n")
            raise self._lost(time.monotonic() - began) from error

    def _lost(self, waited_s: float) -> UsageError | EvidenceError:
        """Why an exchange failed: another rank said so before it left, or it is known by whom it was not come to."""
        if not self._store.check([_FAILED]):
            return UsageError("CHILD_DIED", self._missing(waited_s))
        said = canonical.decode(self._store.get(_FAILED))
        return UsageError(str(said["code"]), f"rank {said['rank']}: {said['message']}")

    def _missing(self, waited_s: float) -> str:
        """Who did not come to the exchange that failed, and whether they were waited for."""
        behind = self._notes.behind(self.size, self._exchanges) if self._notes else []
        if not behind:
            return "a process of the run is gone; the log says which"
        who = ("rank " if len(behind) == 1 else "ranks ") + ", ".join(map(str, behind))
        if self._notes is not None and waited_s >= self._wait_s:
            why = f"{who} did not answer within {self._wait_s} seconds (rank_wait_s)"
            self._notes.say(why)
            return why
        return f"{who} did not answer and is gone"


ALONE = Ranks()


def join(place: Place) -> Ranks:
    """Meet the other processes of the run; returns when all are there."""
    store = FileStore(str(place.meeting), place.size)
    distributed.init_process_group(
        "gloo",
        store=PrefixStore("exchange", store),
        rank=place.rank,
        world_size=place.size,
        timeout=timedelta(seconds=place.wait_s),
    )
    notes = RankNotes(place.meeting.parent)
    return Ranks(place.rank, place.size, PrefixStore("end", store), notes, place.wait_s)


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
