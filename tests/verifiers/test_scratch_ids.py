"""The verifier's own memory of ids: found again wherever they lie."""

from __future__ import annotations

import random

from verifiers import scratch


def test_ids_are_found_in_memory_and_on_disk(monkeypatch):
    """Every id that was added has its seq, whichever group it was written with, and no other id has one."""
    monkeypatch.setattr(scratch, "RECENT_IDS", 7)
    ids = [random.Random(seq).randbytes(32) for seq in range(50)]
    memory = scratch.Scratch()
    for seq, raw in enumerate(ids):
        memory.add(raw, seq)
        assert [memory.seq_of(item) for item in ids[: seq + 1]] == list(range(seq + 1))
        assert memory.seq_of(raw[::-1]) is None
    for seq, raw in enumerate(ids):
        low, high = raw[:4] + bytes(28), raw[:4] + b"\xff" * 28
        assert memory.with_prefix(low, high) == [seq]
    assert len(memory.with_prefix(bytes(32), b"\xff" * 32)) == 3
    memory.close()
