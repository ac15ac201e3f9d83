"""One process of the bare side: reads its messages, waits for a line, checks the signatures and nothing else.

    python -m benches.bare_signatures FOLDER START STOP

Prints `ready`, and after a line on standard input the wall and processor seconds that the checks took. What is
called is the library's own function, without the ledger's rule around it; a bad signature ends it with an error.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from world import key

from benches.verify import messages
from ledger import record as records
from ledger.dsse import pae


def main() -> None:
    """Check and print."""
    folder, start, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    publics = {
        key(name).id: Ed25519PublicKey.from_public_bytes(key(name).public)
        for name in ("root", "writer", "auditor", "reviewer", "reviewer2", "promoter")
    }
    tasks = [
        (
            publics[records.parse(entry, signature).actor],
            signature,
            pae(records.PAYLOAD_TYPE, entry),
        )
        for entry, signature in messages(folder, start, stop)
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    for public, signature, message in tasks:
        public.verify(signature, message)
    print(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    main()
