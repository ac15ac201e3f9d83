"""One process of the bare side: reads its messages, waits for a line, checks the signatures and nothing else.

    python -m benches.bare_signatures FOLDER START STOP

Prints `ready`, and after a line on standard input the wall and processor seconds that the checks took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from world import key

from benches.verify import messages
from ledger import ed25519
from ledger import record as records
from ledger.dsse import pae
from ledger.records.identity import LedgerCreated  # noqa: F401 - the kinds are loaded before the clock starts


def main() -> None:
    """Check and print."""
    folder, start, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    publics = {key(name).id: key(name).public for name in ("root", "writer")}
    tasks = [
        (
            publics[records.parse(entry, signature).actor],
            pae(records.PAYLOAD_TYPE, entry),
            signature,
        )
        for entry, signature in messages(folder, start, stop)
    ]
    library_verify = ed25519.verify
    print("ready", flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    good = all(library_verify(*task) for task in tasks)
    print(time.perf_counter() - wall, time.process_time() - cpu)
    if not good:
        sys.exit("a signature does not verify")


if __name__ == "__main__":
    main()
