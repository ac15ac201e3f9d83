"""Where the command begins: nothing is imported before a Ctrl-C would be answered in one line."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command line; the exit code, 130 where it was interrupted while it started."""
    try:
        from runners.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted [INTERRUPTED]\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
