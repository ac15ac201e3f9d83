"""Lineage from sealed history: the graph that walking the records gives."""

from __future__ import annotations

import pytest
from descent import launch, next_update, plan, publish
from world import World

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


@pytest.mark.parametrize("direction", ["up", "impact"])
def test_every_record_has_the_lineage_that_walking_gives(long, direction):
    """Whatever record is asked about, sealed or new, up and down, the folded graph is the same."""
    world, ledger, history = long
    with ledger:
        for record in world.records:
            plain = fold(walk(ledger, record, direction))
            assert same(folded(ledger, record, history, direction), plain), record.kind


@pytest.mark.parametrize("direction", ["up", "impact"])
def test_after_a_revocation_folded_members_that_may_be_suspect_are_named(tmp_path, direction):
    """From the first seq that a revocation reaches back to, a stretch names its members; nothing else changes."""
    world = World()
    run = launch(world, plan(world, budget_updates=40))
    updates = [world.admit(next_update(world, run)) for _ in range(20)]
    checkpoint = publish(world, run)
    world.add("key.revoked", key=updates[0].actor, from_seq=updates[10].seq)
    folder = world.write(tmp_path / "ledger")
    history = History(tmp_path / "cache", 32)
    sealing.build(folder, history)
    with Ledger.read(folder) as ledger:
        root = checkpoint if direction == "up" else run
        graph = folded(ledger, root, history, direction)
        assert same(graph, fold(walk(ledger, root, direction)))
        named = {name for node in graph.nodes.values() for name in node.members}
        ids = {item.seq: item.id for item in world.records}
        stretches = [node for node in graph.nodes.values() if node.kind == "folded"]
        last = max(node.last_seq for node in stretches)
        assert ids[last] in named
        assert {item.id for item in updates[:10]}.isdisjoint(named)


def test_without_segments_the_records_are_walked(long, tmp_path):
    """Where none are, or they are another ledger's, nothing is told from them."""
    world, ledger, history = long
    with ledger:
        assert folded(ledger, world.records[-1], History(tmp_path / "none")) is None
        for path in history.folder.rglob("*-edges.parquet"):
            path.unlink()
        assert folded(ledger, world.records[-1], history) is None
