"""The tasks of a reinforcement run: rows of its split, what they ask, and which of them each draw takes (torch-free).

A row answers with nothing; it asks. A desk row holds its own prompt; a scenario's is made here of its facts, its context
and the customer's opening. Which rows a draw takes is a pure function of the rows, the seed and the draw's number: rows
are put in the order of SHA-256(seed, epoch, row), epochs follow one another without a break.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError
from runners.prepare.data import roles_of, split_rows
from verifiers.data.hand_out import HandedOut, hand_out
from verifiers.rewards.episodes import script_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record

KIND_OF_REWARD = {"desk": "desk", "support": "scenario"}
"""What kind of row each reward judges."""
SCRIPTED = "scripted_turns"
"""The reason for which a scenario is left out: its customer speaks again, and an episode here has one turn."""


@dataclass(frozen=True)
class Task:
    """One row that asks: its digest, that of its script, its turns, the row."""

    digest: str
    script: str
    messages: list[dict[str, Any]]
    row: Mapping[str, Any]


def task_rows(
    ledger: Ledger, split: Record, reward: str
) -> tuple[list[HandedOut], list[HandedOut]]:
    """A split's training rows that a reward judges: those that can be tasks here, and those that are left out.

    Raises:
        EvidenceError: `HELD_OUT_ROW`.
        UsageError: `ROW_UNTRAINABLE`, none is left.
    """
    kind = KIND_OF_REWARD[reward]
    rows = hand_out(split_rows(ledger, split), roles_of(ledger, split), "train", kind)
    kept = [item for item in rows if not item.row.get("turns")]
    if not kept:
        more = f" without scripted turns ({len(rows)} have some)" if rows else ""
        raise UsageError(
            "ROW_UNTRAINABLE", f"the split has no {kind} rows with role train{more}", field="split"
        )
    return kept, [item for item in rows if item.row.get("turns")]


def asking_rows(ledger: Ledger, split: Record) -> list[HandedOut]:
    """Every training row of a split that asks something, whatever reward judges it.

    Raises:
        EvidenceError: `HELD_OUT_ROW`.
    """
    rows, roles = split_rows(ledger, split), roles_of(ledger, split)
    kinds = sorted(set(KIND_OF_REWARD.values()))
    return [item for kind in kinds for item in hand_out(rows, roles, "train", kind)]


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file that the supervisor wrote: a row a line, its digest under `row`."""
    return [task_of(json.loads(line)) for line in path.read_bytes().splitlines()]


def task_of(value: Mapping[str, Any]) -> Task:
    """The task of a row with its digest under `row`."""
    row = {name: item for name, item in value.items() if name != "row"}
    return Task(str(value["row"]), script_digest(row), messages_of(row), row)


def messages_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The turns that wait for the assistant."""
    if row.get("kind") != "scenario":
        return list(row["messages"])
    facts = "\n".join(f"- {fact}" for fact in row["policy_facts"])
    system = (
        f"You answer a customer. Keep to the policy.\nPolicy:\n{facts}\nRecord: {row['context']}"
    )
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": row["opening"]},
    ]


def drawn(digests: Sequence[str], seed: int, size: int, draw: int) -> list[int]:
    """The tasks of a draw, as positions.

    Args:
        digests: of all tasks.
        seed: of the run.
        size: how many one draw takes.
        draw: its number, from 0.
    """
    return list(islice(_stream(digests, seed), draw * size, (draw + 1) * size))


def _stream(digests: Sequence[str], seed: int) -> Iterator[int]:
    epoch = 0
    while True:
        yield from sorted(
            range(len(digests)), key=lambda place: (_key(seed, epoch, digests[place]), place)
        )
        epoch += 1


def _key(seed: int, epoch: int, digest: str) -> bytes:
    return hashlib.sha256(f"task\0{seed}\0{epoch}\0{digest}".encode()).digest()
