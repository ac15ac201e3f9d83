"""Append single records until a number of seconds is over, and say each append with what it took.

A store that is away for a moment is met as a program of a user's would: the ledger is opened again and the work goes on.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from campaigns.children.saying import clock, options_given, refused, say, wait_for_go
from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError

AGAIN_S = 0.05


def main() -> int:
    """Open and append, again and again until the time is over."""
    options = options_given()
    key = PrivateKey.from_seed(bytes.fromhex(options["key"]))
    Ledger.read(Path(options["ledger"])).close()  # everything is loaded before the time runs
    wait_for_go(options)
    until = time.monotonic() + options["seconds"]
    step = 0
    while step == 0 or time.monotonic() < until:
        try:
            step = _session(options, key, step, until)
        except LedgerError as error:
            refused(error)
            time.sleep(AGAIN_S)
    say("closed", warnings=[])
    return 0


def _session(options: dict[str, Any], key: PrivateKey, step: int, until: float) -> int:
    with Ledger.open(
        Path(options["ledger"]), key=key, clock=clock, state_dir=Path(options["state"])
    ) as ledger:
        while step == 0 or time.monotonic() < until:
            step += 1
            begun = time.monotonic()
            record = ledger.append("note.added", {"text": f"{options['name']}/{step}"})
            took_ms = round((time.monotonic() - begun) * 1000, 3)
            say("ack", records=[[record.seq, record.id]], blobs=[], took_ms=took_ms)
    return step


if __name__ == "__main__":
    sys.exit(main())
