"""Run a command and end it when whoever started us is gone, however that ended: our standard input closes then.

    python -m runners.train.serving.guard COMMAND...

A server's own parent may be killed without a word, and a server of several gigabytes would be left behind. Ends with the
command's exit status; its standard input is empty.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys

LOOK_S = 0.2
END_S = 15.0


def main() -> int:
    """Run the command that the arguments are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (
        subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, env=environment) as process,
        selectors.DefaultSelector() as selector,
    ):
        selector.register(0, selectors.EVENT_READ)
        while process.poll() is None:
            if selector.select(LOOK_S) and not os.read(0, 1):
                end(process)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force where it takes too long."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
