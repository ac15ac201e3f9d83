"""The verifier's own memory of ids: found again wherever they lie."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from world import World

from ledger.errors import UsageError
from verifiers import scratch
from verifiers.chain import Row, verify_chain


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


def _open_files() -> dict[str, int]:
    """Sizes in bytes of the scratch files that this process holds open, by what their handles point to."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            name, size = str(link.readlink()), link.stat().st_size
        except FileNotFoundError:  # the handle that listed the folder
            continue
        found[name] = size
    return {name: size for name, size in found.items() if "evidence-ids-" in name}


def test_what_is_not_recent_lies_in_a_file_that_has_no_name(monkeypatch, tmp_path):
    """Ids beyond the recent ones are on the disk, not in memory, in a file that no crash leaves behind."""
    monkeypatch.setattr(scratch, "RECENT_IDS", 64)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory = scratch.Scratch()
    for seq in range(63):
        memory.add(seq.to_bytes(32, "big"), seq)
    assert not _open_files()  # a short ledger needs no file
    for seq in range(63, 20_000):
        memory.add(seq.to_bytes(32, "big"), seq)
    ((name, size),) = _open_files().items()
    assert name.endswith(" (deleted)")
    assert size > 19_000 * 32
    assert list(tmp_path.iterdir()) == []
    memory.close()
    assert not _open_files()


def test_a_folder_that_takes_no_file_is_one_clear_error(monkeypatch, tmp_path):
    """Where the temporary folder is gone, the system's refusal is an error of ours."""
    monkeypatch.setattr(scratch, "RECENT_IDS", 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    memory = scratch.Scratch()
    memory.add(bytes(32), 0)
    with pytest.raises(UsageError) as refused:
        memory.add(bytes(31) + b"1", 1)
    assert refused.value.code == "OS_REFUSED"


def test_a_pass_that_is_interrupted_leaves_no_file_open(monkeypatch):
    """A Ctrl-C in the middle of a pass closes what the pass remembered."""
    monkeypatch.setattr(scratch, "RECENT_IDS", 3)
    world = World()
    records = [*world.records]

    def rows() -> Iterator[Row]:
        for record in records[:6]:
            yield record.seq, None, record.signature, record.entry
        assert _open_files()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_chain(rows(), lambda seq: None)
    assert not _open_files()
