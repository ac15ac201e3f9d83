"""The campaigns' worker on a store that leaves a failed commit in its log: for a harness to find out."""

from __future__ import annotations

import sys

from campaigns.children import worker

from ledger.store.sqlite import SqliteStore

SqliteStore._write_over = lambda self: True
sys.exit(worker.main())
