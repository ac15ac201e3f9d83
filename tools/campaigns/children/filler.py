"""On a disk of its own that is nearly full: append until there is no room, make room, go on, verify."""

from __future__ import annotations

import sys
from pathlib import Path

from campaigns.children.saying import acknowledge, clock, options_given, refused, say, wait_for_go
from ledger.book import Draft, Ledger
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError
from verifiers.verify import Options, verify

GROUPS_MAX = 1000
NOTE_BYTES = 3000


def main() -> int:
    """Fill the disk to the brim and past it."""
    options = options_given()
    key = PrivateKey.from_seed(bytes.fromhex(options["key"]))
    ledger_path, state = Path(options["ledger"]), Path(options["state"])
    wait_for_go(options)
    try:
        with Ledger.open(ledger_path, key=key, clock=clock, state_dir=state) as ledger:
            _fill(ledger)
            Path(options["ballast"]).unlink()
            acknowledge([ledger.append("note.added", {"text": "there is room again"})])
    except LedgerError as error:
        refused(error)
    report = verify(ledger_path, Options(state_dir=state, workers=1))
    codes = [item.code for item in report.findings]
    say("end", verdict=report.verdict, records=report.records, codes=codes)
    return 0


def _fill(ledger: Ledger) -> None:
    for number in range(GROUPS_MAX):
        drafts = [Draft("note.added", {"text": f"{number} {'x' * NOTE_BYTES}"}) for _ in range(4)]
        try:
            acknowledge(ledger.append_many(drafts))
        except LedgerError as error:
            refused(error)
            return


if __name__ == "__main__":
    sys.exit(main())
