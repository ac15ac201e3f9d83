"""Lineage from sealed history: the graph that walking the records gives."""

from __future__ import annotations

import pytest
from descent import launch, next_update, plan, publish
from world import World, grown

from ledger.book import Ledger
from ledger.query import sealing
from ledger.query.lineage import Graph, fold, walk
from ledger.query.links import folded
from ledger.query.segments import History


def same(one: Graph | None, other: Graph) -> bool:
    """Whether two graphs show the same nodes, in the same order, and the same edges."""
    assert one is not None
    edges = [
        {(edge.source, edge.target, edge.role) for edge in graph.edges} for graph in (one, other)
    ]
    return list(one.nodes.items()) == list(other.nodes.items()) and edges[0] == edges[1]


@pytest.fixture
def long(tmp_path) -> tuple[World, Ledger, History]:
    """A run of thirty updates with two checkpoints, its history sealed but for the newest records."""
    world = World()
    run = launch(world, plan(world, budget_updates=40))
    for step in range(30):
        world.admit(next_update(world, run))
        if step in (14, 29):
            publish(world, run)
    folder = world.write(tmp_path / "ledger")
    history = History(tmp_path / "cache", 128)
    sealing.build(folder, history)
    return world, Ledger.read(folder), history


def test_every_record_has_the_lineage_that_walking_gives(long):
    """Whatever record is asked about, sealed or new, the folded graph is the same."""
    world, ledger, history = long
    with ledger:
        for record in world.records:
            plain = fold(walk(ledger, record, "up"))
            assert same(folded(ledger, record, history), plain), record.kind


def test_where_a_key_was_revoked_the_records_are_walked(tmp_path):
    """What is suspect inside a folded stretch must be named, so sealed edges alone do not do."""
    world = grown()
    folder = world.write(tmp_path / "ledger")
    history = History(tmp_path / "cache", 32)
    sealing.build(folder, history)
    with Ledger.read(folder) as ledger:
        assert ledger.of_kind("key.revoked")
        assert folded(ledger, world.records[-1], history) is None


def test_without_segments_the_records_are_walked(long, tmp_path):
    """Where none are, or they are another ledger's, nothing is told from them."""
    world, ledger, history = long
    with ledger:
        assert folded(ledger, world.records[-1], History(tmp_path / "none")) is None
        for path in history.folder.rglob("*-edges.parquet"):
            path.unlink()
        assert folded(ledger, world.records[-1], history) is None
