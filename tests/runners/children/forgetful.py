"""The trainer with one thing missing: it never puts the random states back, and says that it did."""

from __future__ import annotations

import sys

from ledger.digests import sha256
from runners.protocol import serve
from runners.train import recorded, sft


def train(channel, job):
    """As the trainer does it, the generators left as they are."""
    recorded.restore_random = lambda _folder, _rank: None
    recorded.check_restored = lambda folder, files: {
        name: sha256((folder / name).read_bytes()) for name in files
    }
    return sft.train(channel, job)


if __name__ == "__main__":
    sys.exit(serve(train))
