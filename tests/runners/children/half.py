"""An evaluation's child that is killed after its first batch: the real one, and the plug pulled."""

from __future__ import annotations

import os
import sys

from runners.assess import generate
from runners.assess.partial import Partial


class Cut(Partial):
    """Keeps one batch, then the process is gone without a word."""

    def add(self, lines) -> None:
        """Keep a batch and die."""
        super().add(lines)
        os._exit(9)


if __name__ == "__main__":
    generate.Partial = Cut
    sys.exit(generate.main())
