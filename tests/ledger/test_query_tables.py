"""Reading tables: one moment of the ledger, and memory that does not grow with it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from world import World, grown, row_of

from ledger.book import Ledger
from ledger.errors import UsageError
from ledger.query.names import READ
from ledger.query.spool import Spool
from ledger.query.tables import load, load_folder
from ledger.store.sqlite import SqliteStore

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def batch(start: int, rows: int = 100) -> pa.RecordBatch:
    """A batch of numbers and their names."""
    numbers = list(range(start, start + rows))
    return pa.record_batch([numbers, [str(number) for number in numbers]], schema=SCHEMA)


@pytest.mark.parametrize("held_bytes", [0, 3000, 1 << 20])
def test_a_spool_gives_back_what_it_took(held_bytes):
    """Whether it fits in memory, does not at all, or does for a while, the table is that of the batches."""
    made = Spool(SCHEMA, held_bytes)
    parts = [batch(start) for start in range(0, 1000, 100)]
    for part in parts:
        made.add(part)
    assert made.finish().equals(pa.Table.from_batches(parts))


def test_an_empty_spool_is_an_empty_table():
    """No batch is a table without rows, with its columns."""
    assert Spool(SCHEMA).finish().equals(SCHEMA.empty_table())


def test_a_spool_leaves_no_file(monkeypatch, tmp_path):
    """What is spilled has no name in the folder for temporary files, not even while it is used."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Spool(SCHEMA, held_bytes=0)
    made.add(batch(0))
    table = made.finish()
    assert list(tmp_path.iterdir()) == []
    assert table.num_rows == 100


def test_a_folder_for_temporary_files_that_is_not_there_is_one_error(monkeypatch, tmp_path):
    """Where nothing can be spilled, the error names the folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    made = Spool(SCHEMA, held_bytes=0)
    with pytest.raises(UsageError, match="absent") as caught:
        made.add(batch(0))
    assert caught.value.code == "OS_REFUSED"


def test_spilled_tables_are_the_same_tables():
    """Every table of a ledger with every kind is the same whether it is held or spilled."""
    rows = [(item.seq, b"", item.signature, item.entry) for item in grown().records]
    held = load(rows, frozenset(READ))
    spilled = load(rows, frozenset(READ), held_bytes=0)
    assert held.tables.keys() == spilled.tables.keys() == set(READ)
    for name, table in held.tables.items():
        assert table.equals(spilled.tables[name]), name


def test_what_is_appended_meanwhile_is_not_read(folder):
    """A read transaction shows the ledger of its beginning, although another connection commits records."""
    world = World()
    path = world.write(folder) / "ledger.sqlite"
    store = SqliteStore.open_reader(path)
    writer = SqliteStore.open_writer(path)
    with store.snapshot():
        before = store.tail()[0]
        world.add("note.added")
        with writer.transaction():
            writer.append([row_of(world.records[-1])])
        assert len(list(store.rows(0))) == store.tail()[0] == before
    assert store.tail()[0] == before + 1
    writer.close()
    store.close()


def test_the_head_is_that_of_the_rows_read(folder):
    """Size and root are computed from the rows, whichever tables are wanted."""
    world = World()
    path = world.write(folder)
    with Ledger.read(folder) as ledger:
        size, root, _ = ledger.head()
    for wanted in (frozenset[str](), frozenset({"notes"}), frozenset(READ)):
        loaded = load_folder(path, wanted)
        assert (loaded.size, loaded.root) == (size, root.hex())
