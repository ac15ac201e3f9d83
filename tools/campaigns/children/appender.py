"""Append to a ledger until done or killed, and say after each append that it returned.

One of several that share a ledger: single records, groups, blobs with records that name them, seals.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

from campaigns.children.saying import (
    acknowledge,
    clock,
    options_given,
    refused,
    say,
    source,
    wait_for_go,
)
from ledger.book import Draft, Ledger
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError

Act = Callable[[Ledger, random.Random, str], None]


def _one(ledger: Ledger, _: random.Random, label: str) -> None:
    acknowledge([ledger.append("note.added", {"text": label})])


def _group(ledger: Ledger, choices: random.Random, label: str) -> None:
    texts = [f"{label}.{part}" for part in range(choices.randint(2, 12))]
    acknowledge(ledger.append_many([Draft("note.added", {"text": text}) for text in texts]))


def _blob(ledger: Ledger, _: random.Random, label: str) -> None:
    body, digest = source(ledger, label)
    acknowledge([ledger.append("source.ingested", body)], (digest,))


def _seal(ledger: Ledger, _: random.Random, label: str) -> None:
    say("seal", label=label, bytes=len(ledger.seal()))


def _reopen(ledger: Ledger, _: random.Random, label: str) -> None:
    """The derived index is written and read back."""
    ledger._index.flush()  # noqa: SLF001 - closing does it too, and this child must go on
    say("flushed", label=label)


ACTS: tuple[Act, ...] = (_one, _one, _one, _group, _group, _blob, _blob, _seal, _reopen)


def main() -> int:
    """Open, append, close; an error of the ledger's own is said and the next act tried."""
    options = options_given()
    choices = random.Random(options["seed"])  # noqa: S311 - choices, no secrets
    key = PrivateKey.from_seed(bytes.fromhex(options["key"]))
    wait_for_go(options)
    try:
        with Ledger.open(
            Path(options["ledger"]), key=key, clock=clock, state_dir=Path(options["state"])
        ) as ledger:
            for step in range(options["steps"]):
                _act(ledger, choices, f"{options['seed']}/{step}")
    except LedgerError as error:
        refused(error)
        return 1
    say("closed", warnings=[code for code, _ in ledger.warnings])
    return 0


def _act(ledger: Ledger, choices: random.Random, label: str) -> None:
    try:
        choices.choice(ACTS)(ledger, choices, label)
    except LedgerError as error:
        refused(error)


if __name__ == "__main__":
    sys.exit(main())
