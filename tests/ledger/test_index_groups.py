"""The derived index: how much is held in memory, and that what a crash took is made again."""

from __future__ import annotations

import shutil

import pytest
from world import World, key

from ledger.book import INDEX, Ledger
from ledger.store import index
from verifiers.verify import Options, verify


@pytest.mark.parametrize(
    ("size", "group"),
    [(0, 4096), (65_536, 4096), (160_000, 10_000), (1_000_000, 16_384), (10**8, 16_384)],
    ids=str,
)
def test_a_group_grows_with_the_file_and_is_bounded(size, group):
    """A larger file gets larger groups, so that a record's share of rewritten pages stays the same."""
    assert index._flush_at(size) == group


def test_what_a_crash_took_from_the_index_is_made_again(tmp_path, monkeypatch):
    """A folder left behind with half of its index unwritten answers like one that was closed."""
    monkeypatch.setattr(index, "FLUSH_RECORDS", 7)
    world = World()
    for _ in range(5):
        world.add("update.acknowledged") if world.live_run()[1].live < 2 else world.add(
            "note.added"
        )
    running = world.replay(tmp_path / "running")
    shutil.copytree(tmp_path / "running", tmp_path / "killed")
    with Ledger.open(tmp_path / "killed", key=key("writer")) as ledger:
        assert not ledger.index_was_stale
        for record in world.records:
            assert ledger.find(record.id) == record
            assert ledger.referrers(record.id) == running.referrers(record.id)
            assert ledger.of_kind(record.kind) == running.of_kind(record.kind)
    running.close()
    for name in ("running", "killed"):
        report = verify(tmp_path / name, Options(level="records", workers=1))
        assert (report.verdict, report.warnings) == ("verified", [])
        with index.IndexReader(tmp_path / name / INDEX) as reader:
            edges = sum(len(record.all_refs()) for record in world.records)
            assert reader.counts() == (len(world.records), len(world.records), edges)
