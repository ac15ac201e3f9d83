"""How a child talks: one JSON line for each thing done, handed to the system in one call.

The lines go out by `writev`, which nothing of the ledger uses: a fault put into `write` never hits them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ledger.blobs import TEXT
from ledger.book import Ledger
from ledger.errors import LedgerError
from ledger.record import Record

_out = os.dup(1)  # its own: a command line may point 1 elsewhere
TIME = "2026-01-01T00:00:00.000Z"


def clock() -> str:
    """One fixed time: the campaigns are about crashes, not about clocks."""
    return TIME


def say(what: str, **fields: Any) -> None:
    """One line: it is with the system when this returns, whatever becomes of the process."""
    os.writev(_out, [json.dumps({"did": what, **fields}).encode() + b"\n"])


@contextmanager
def silent() -> Iterator[None]:
    """Nothing said in the block, by whatever means, is heard."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {handle: os.dup(handle) for handle in (1, _out)}
    for handle in kept:
        os.dup2(nowhere, handle)
    try:
        yield
    finally:
        for handle, copy in kept.items():
            os.dup2(copy, handle)


def acknowledge(records: list[Record], blobs: tuple[str, ...] = ()) -> None:
    """Say that an append returned: what a caller could rely on from here."""
    say("ack", records=[[record.seq, record.id] for record in records], blobs=list(blobs))


def refused(error: LedgerError) -> None:
    """Say that the ledger answered with an error of its own."""
    say("error", code=error.code, message=error.message)


def wait_for_go(options: dict[str, Any]) -> None:
    """Say that everything is loaded, and wait until the parent has done what it wants to this process."""
    say("ready", options=options)
    try:
        sys.stdin.readline()
    except OSError:
        # The fault that is injected met this very read, which is no call of the product's. It is spent; go on.
        sys.stdin.readline()


def options_given() -> dict[str, Any]:
    """What the parent asks for: one JSON object as the only argument."""
    given = json.loads(sys.argv[1])
    assert isinstance(given, dict)
    return given


def source(ledger: Ledger, label: str) -> tuple[dict[str, Any], str]:
    """A body that names a new blob, and the blob's digest."""
    blob = ledger.blobs.put(f"the bytes of {label}".encode() * 40, TEXT)
    body = {
        "name": label,
        "content": blob.model_dump(exclude_none=True),
        "licence": "CC0-1.0",
        "origin": "a campaign",
        "review": {"status": "reviewed", "reviewer": "nobody"},
    }
    return body, blob.digest
