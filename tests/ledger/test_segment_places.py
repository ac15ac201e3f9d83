"""Places of records that are named: the same from one pass, from segments, and from a tail beyond them."""

from __future__ import annotations

import pytest
from world import World, grown

from ledger.query import sealing
from ledger.query.columns import columns
from ledger.query.names import TABLES
from ledger.query.segments import History
from ledger.query.tables import load_folder

PLACED = [name for name in TABLES.values() if any(item.places for item in columns(name))]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory) -> tuple[World, dict, History]:
    """A ledger with every kind, and its history sealed but for the newest records."""
    world = grown()
    folder = world.write(tmp_path_factory.mktemp("places") / "ledger")
    history = History(folder.parent / "cache", 32)
    built = sealing.build(folder, history)
    assert 0 < built.sealed < built.size
    return world, folder, history


@pytest.mark.parametrize("way", ["one pass", "segments"])
def test_each_ref_has_the_place_of_the_record_that_it_names(sealed, way):
    """`ref_X_seq` is where the record stands that `ref_X` names, in every table, whether that is sealed or new."""
    world, folder, history = sealed
    places = {record.id: record.seq for record in world.records}
    loaded = load_folder(folder, frozenset(PLACED), history if way == "segments" else None)
    seen = 0
    for table in PLACED:
        rows = loaded.tables[table].to_pylist()
        if table in loaded.sealed:
            rows += loaded.sealed[table].to_table().to_pylist()
        for row in rows:
            for name in [name for name in row if f"{name}_seq" in row]:
                ids = row[name]
                if isinstance(ids, list):
                    assert row[f"{name}_seq"] == [places[item] for item in ids], (table, name)
                    seen += len(ids)
                else:
                    assert row[f"{name}_seq"] == (ids and places[ids]), (table, name)
                    seen += ids is not None
    assert seen > len(PLACED)
