"""Which rows each step reads: a pure function of the rows, the seed and the settings.

No random generator of a library is involved, so the batches of a run can be derived again anywhere, years later:
rows are put in the order of SHA-256(seed, epoch, row). Each row is read once an epoch; epochs follow one another without
a break, so every micro-batch is full.

`random` shuffles rows. `grouped` shuffles blocks of up to `block_rows` rows that open with the same turns, so that a
batch shares its prompts' beginnings (`runners.train.loss` then computes those once) and sees rows side by side that
differ in what decides the answer.

Several processes read the same order: of each step's micro-batches the first `accumulation` are rank 0's, the next rank
1's, and so on. So two processes read, step by step, what one reads with twice the accumulation.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runners.train.config import SftSettings
    from runners.train.tokens import EncodedRow


def micro_batches(rows: Sequence[EncodedRow], settings: SftSettings) -> list[list[int]]:
    """The rows of every micro-batch of the run, as positions in `rows`, in order.

    Returns:
        `steps * processes * accumulation` lists of `batch_size` positions.

    Raises:
        UsageError: `ROW_UNTRAINABLE`, there is no row.
    """
    if not rows:
        raise UsageError("ROW_UNTRAINABLE", "no row is left to train on")
    stream = _stream(rows, settings)
    count = settings.steps * settings.processes * settings.accumulation
    return [list(islice(stream, settings.batch_size)) for _ in range(count)]


def rows_of_step(settings: SftSettings) -> int:
    """How many rows one optimizer step reads, in all processes together."""
    return settings.processes * settings.accumulation * settings.batch_size


def share(order: Sequence[int], settings: SftSettings, rank: int) -> list[int]:
    """What one process reads of an order that begins with a step, in its order."""
    own = settings.accumulation * settings.batch_size
    begins = range(rank * own, len(order), rows_of_step(settings))
    return [position for begin in begins for position in order[begin : begin + own]]


def sampler_position(step: int, rows: int, settings: SftSettings) -> dict[str, int | str]:
    """Where the order stands after a step: epoch and rows of it read, counted from 0, and the rows of an epoch."""
    epoch, position = divmod(step * rows_of_step(settings), rows)
    return {"order": settings.order, "epoch": epoch, "position": position, "rows": rows}


def _stream(rows: Sequence[EncodedRow], settings: SftSettings) -> Iterator[int]:
    epoch = 0
    while True:
        if settings.order == "grouped":
            yield from _grouped(rows, settings.seed, epoch, settings.block_rows)
        else:
            yield from _shuffled(rows, range(len(rows)), settings.seed, epoch)
        epoch += 1


def _shuffled(
    rows: Sequence[EncodedRow], positions: Sequence[int], seed: int, epoch: int
) -> list[int]:
    return sorted(
        positions, key=lambda position: (_key(seed, epoch, rows[position].digest), position)
    )


def _grouped(rows: Sequence[EncodedRow], seed: int, epoch: int, block_rows: int) -> Iterator[int]:
    groups: dict[str, list[int]] = {}
    for position in _shuffled(rows, range(len(rows)), seed, epoch):
        groups.setdefault(rows[position].group, []).append(position)
    blocks, rest = [], []
    for members in groups.values():
        whole = len(members) - len(members) % block_rows
        blocks += [members[start : start + block_rows] for start in range(0, whole, block_rows)]
        rest += members[whole:]
    # What is left over shares blocks too, so that blocks seldom straddle batches.
    blocks += [rest[start : start + block_rows] for start in range(0, len(rest), block_rows)]
    for block in sorted(
        blocks, key=lambda block: _key(seed, epoch, "block", rows[block[0]].digest)
    ):
        yield from block


def _key(*parts: int | str) -> bytes:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
