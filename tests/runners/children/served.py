"""What stands in for an interpreter that has vLLM: it says its version, and serves a real tiny model over vLLM's wire.

served.py -I -c ...                       the version
served.py -m MODULE --model DIR --port N  a server; after `SERVED_DIES_AFTER` completions it is gone with status 7
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> None:
    """Do as the arguments say."""
    if "-c" in sys.argv:
        sys.stdout.write("0.0.loopback\n")
        return
    from loopback_sampler import LoopbackSampler, serving  # noqa: PLC0415 - saying a version needs no torch

    model, port = (sys.argv[sys.argv.index(name) + 1] for name in ("--model", "--port"))
    sampler = LoopbackSampler(Path(model))
    sampler.most_completions = int(os.environ.get("SERVED_DIES_AFTER", "1000000"))
    sampler.dies = lambda: os._exit(7)  # type: ignore[method-assign]  # the process is the server
    with serving(sampler, int(port)):
        signal.pause()


if __name__ == "__main__":
    main()
