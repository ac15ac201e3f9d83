"""Starting from a snapshot: the chain as `snapshot.recorded` says it stood just before the record.

A short cut and no authority. What is started from here is as good as whoever vouches for the snapshot: the
writer's own high-water file, or a seal that somebody kept after checking what lies under it.
"""

from __future__ import annotations

from ledger.admission import Chain, Resolve
from ledger.blobs import BlobStore
from ledger.errors import LedgerError
from ledger.merkle import CompactRange
from ledger.record import Record, check_body
from ledger.state import State

SNAPSHOT = "snapshot.recorded"
STATE_MAX_BYTES = 1 << 26


def chain_at(record: Record, blobs: BlobStore, resolve: Resolve) -> Chain | None:
    """The chain of the records before a snapshot, or None where it cannot be had from it.

    Args:
        record: the record that may be a snapshot; admitting it to the chain checks it again (rule K4).
        blobs: where the snapshot's state lies.
        resolve: given to the chain to fetch earlier records.
    """
    if record.kind != SNAPSHOT:
        return None
    try:
        check_body(record.kind, record.schema, record.body)
        state = State.from_bytes(blobs.read(record.body["state"]["digest"], STATE_MAX_BYTES))
        hashes = [bytes.fromhex(item) for item in record.body["tree"]]
        tree = CompactRange.from_hashes(record.seq, hashes)
    except LedgerError:
        return None  # without it an earlier one, or all records, are taken
    return Chain(state, tree, record.prev, resolve)
