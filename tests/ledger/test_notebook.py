"""`Ledger.duckdb()`: a ledger's tables for a notebook, in one's own process."""

from __future__ import annotations

import duckdb
import pytest
from world import World, grown

from ledger.book import DATABASE, Ledger
from ledger.errors import UsageError
from ledger.query.names import ALL_TABLES
from ledger.query.segments import History


@pytest.fixture(scope="module")
def world() -> World:
    """A world with every kind."""
    return grown()


@pytest.fixture
def read(world, folder):
    """Its ledger, opened to read."""
    with Ledger.read(world.write(folder)) as ledger:
        yield ledger


def test_every_table_is_there(read, world):
    """All tables can be asked at once, and the head is the ledger's own."""
    database = read.duckdb()
    for table in ALL_TABLES:
        database.sql(f"SELECT count(*) FROM {table}").fetchall()
    size, root, _ = read.head()
    assert database.sql("SELECT size, root FROM as_of").fetchall() == [(size, root.hex())]
    assert database.sql("SELECT count(*) FROM records").fetchall() == [(len(world.records),)]


def test_tables_named_are_read_with_what_they_need(read, world):
    """A derived table brings those that it is made of; others are not read."""
    database = read.duckdb("updates")
    steps = [item.body["step"] for item in world.records if item.kind == "update.acknowledged"]
    found = database.sql("SELECT step, superseded FROM updates ORDER BY seq").fetchall()
    assert found == [(step, False) for step in steps]
    with pytest.raises(duckdb.CatalogException):
        database.sql("SELECT * FROM notes")


def test_answers_come_as_pandas_and_arrow(read):
    """A relation becomes a data frame or an Arrow table with the columns' own types."""
    relation = read.duckdb("updates").sql("SELECT step, loss, time FROM updates ORDER BY seq")
    frame, arrow = relation.df(), relation.to_arrow_table()
    assert str(frame.dtypes["loss"]) == "float64"
    assert str(arrow.schema.field("step").type) == "int64"
    assert frame["loss"].tolist() == arrow.column("loss").to_pylist()


def test_a_table_that_is_not_there_is_named(read):
    """A misspelt table is an error of the caller that says which."""
    with pytest.raises(UsageError, match="updatez") as caught:
        read.duckdb("updates", "updatez")
    assert (caught.value.code, caught.value.field) == ("QUERY_FAILED", "tables")


def test_nothing_is_downloaded_and_no_second_library_reads_the_file(read):
    """Extensions are neither installed nor loaded, so DuckDB cannot open a ledger's file by a library of its own."""
    database = read.duckdb("notes")
    for sql in (f"ATTACH '{read.path / DATABASE}' AS other (TYPE sqlite)", "LOAD httpfs"):
        with pytest.raises(duckdb.Error):
            database.execute(sql)


def test_a_writer_sees_what_it_has_appended(ledger):
    """While a ledger is open to append, its tables are those of the last acknowledged record."""
    before = ledger.duckdb("notes")
    ledger.append("note.added", {"text": "later"}, {})
    assert before.sql("SELECT count(*) FROM notes").fetchall() == [(0,)]
    assert ledger.duckdb("notes").sql("SELECT text FROM notes").fetchall() == [("later",)]
    ledger.append("note.added", {"text": "later still"}, {})


def test_a_long_ledger_is_read_from_its_segments(read, world, tmp_path):
    """Where segments are due they are made first, and the tables are the same."""
    history = History(tmp_path / "cache", 32)
    sealed, plain = (
        read.duckdb("records", "updates", history=history),
        read.duckdb("records", "updates"),
    )
    assert list(history.folder.rglob("*-records.parquet"))
    for table in ("records", "updates", "as_of"):
        rows = f"SELECT * FROM {table} ORDER BY ALL"
        assert sealed.sql(rows).fetchall() == plain.sql(rows).fetchall()
