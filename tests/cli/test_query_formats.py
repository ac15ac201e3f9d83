"""`evidence query --format`: what a program reads on, with the head that it was read at."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ledger.query.ask import Limits, ask, ask_parquet

MIXED = (
    "SELECT kind, seq, seq / 4 AS quarter, seq = 0 AS first, NULL AS nothing, [seq, seq + 1] AS pair, time "
    "FROM records WHERE seq < 2 ORDER BY seq"
)
ODD = "SELECT 'a,b' AS comma, 'say \"hi\"' AS quoted, chr(10) || 'x' AS broken, '' AS empty, 'é' AS accent"


def test_csv_has_a_heading_and_whole_cells(made):
    """CSV reads back as the answer's cells: numbers bare, truth as words, null empty, lists as JSON."""
    called = made("query", MIXED, "--format", "csv")
    rows = list(csv.reader(io.StringIO(called.out)))
    expected = made.json("query", MIXED).result
    assert rows[0] == expected["columns"]
    assert rows[1][:4] == ["ledger.created", "0", "0.0", "true"]
    assert rows[2][:5] == ["key.enrolled", "1", "0.25", "false", ""]
    assert [json.loads(row[5]) for row in rows[1:]] == [[0, 1], [1, 2]]
    assert [row[6] for row in rows[1:]] == [row[6] for row in expected["rows"]]
    assert "2 rows, read at 3 records, root " in called.err


def test_csv_keeps_odd_text_as_it_is(made):
    """Commas, quotes, line breaks and letters of any script come out of a CSV reader as they went in."""
    rows = list(csv.reader(io.StringIO(made("query", ODD, "--format", "csv").out)))
    assert rows[1] == ["a,b", 'say "hi"', "\nx", "", "é"]


def test_csv_gives_every_row(made):
    """A table shows the first rows, CSV all of them up to the limit, and says where there were more."""
    many = "SELECT range AS n FROM range(120)"
    assert made("query", many).out.count("\n") < 60
    assert made("query", many, "--format", "csv").out.count("\n") == 121
    cut = made("query", many, "--format", "csv", "--limit", 7)
    assert cut.out.count("\n") == 8
    assert "there are more" in cut.err


def test_json_is_the_result_as_a_document(made):
    """--format json prints what --json has as its result."""
    document = json.loads(made("query", MIXED, "--format", "json").out)
    assert document == made.json("query", MIXED).result
    assert document["as_of"]["size"] == 3


def test_parquet_keeps_the_types_and_names_the_head(made):
    """A Parquet answer has the engine's types, and its metadata says at which size and root it was read."""
    answer = ask_parquet(made.ledger, MIXED)
    table = pq.read_table(io.BytesIO(answer.data))
    plain = ask(made.ledger, MIXED)
    assert table.schema.names == plain.columns
    assert [str(kind) for kind in table.schema.types[1:4]] == ["int64", "double", "bool"]
    assert table.column("pair").to_pylist() == [[0, 1], [1, 2]]
    assert (answer.rows, answer.truncated, answer.as_of) == (2, False, plain.as_of)
    metadata = table.schema.metadata
    assert metadata[b"as_of_size"] == b"3"
    assert metadata[b"as_of_root"] == plain.as_of.root.encode()


def test_parquet_is_cut_at_the_limit(made):
    """The rows of a Parquet answer stop at the limit, whatever the batches are, and it says so."""
    answer = ask_parquet(
        made.ledger, "SELECT * FROM range(1000000000)", None, Limits(max_rows=5000)
    )
    assert (answer.rows, answer.truncated) == (5000, True)
    assert pq.read_table(io.BytesIO(answer.data)).num_rows == 5000
    whole = ask_parquet(made.ledger, "SELECT * FROM range(5000)", None, Limits(max_rows=5000))
    assert (whole.rows, whole.truncated) == (5000, False)


def test_parquet_goes_through_a_pipe(made):
    """The bytes on stdout are the file, nothing before or after them."""
    command = [sys.executable, "-P", "-m", "runners.cli.entry", "query", MIXED]
    command += ["--format", "parquet", "--ledger", str(made.ledger)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert pq.read_table(io.BytesIO(done.stdout)).num_rows == 2
    assert b"read at 3 records" in done.stderr


def test_times_with_a_zone_are_utc(made):
    """A time with a zone is shown in UTC whatever the machine's zone is, in the process that can open no file."""
    sql = "SELECT TIMESTAMPTZ '2026-01-01 02:00:00+02' AS time, now() IS NOT NULL AS now"
    assert made.json("query", sql).result["rows"] == [["2026-01-01T00:00:00+00:00", True]]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM read_text('/etc/hostname')", "QUERY_REFUSED"),
        ("SELECT nothing_of_this_name", "QUERY_FAILED"),
        ("COPY (SELECT 1) TO '/tmp/x'", "QUERY_REFUSED"),
        ("SELECT error('stop') FROM range(10)", "QUERY_FAILED"),
        ("SELECT repeat('x', 2000000000)", "QUERY_LIMITS"),
    ],
)
def test_parquet_is_refused_like_any_answer(made, sql, code):
    """A statement that may not be answered is refused with the same code in this form."""
    called = made("query", sql, "--format", "parquet", "--memory", 256)
    assert (called.code, called.out) == (2, "")
    assert f"[{code}]" in called.err


def test_parquet_and_json_do_not_go_together(made):
    """--json promises one JSON object, a Parquet file is none."""
    called = made.json("query", MIXED, "--format", "parquet")
    assert (called.code, called.error["field"]) == (2, "--format")


def test_parquet_is_not_sent_to_a_terminal(made, monkeypatch):
    """A terminal is told how to send the file elsewhere."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    called = made("query", MIXED, "--format", "parquet")
    assert called.code == 2
    assert "> answer.parquet" in called.err


def test_csv_on_a_terminal_is_cleaned(made, monkeypatch):
    """What a terminal would obey is shown as its code there, and sent as it is through a pipe."""
    sql = "SELECT chr(27) || '[31mred' AS text"
    assert "\x1b[31mred" in made("query", sql, "--format", "csv").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown = made("query", sql, "--format", "csv").out
    assert "\\x1b[31mred" in shown


def test_a_table_shows_short_ids_unless_asked(made):
    """Ids are shown by their first twelve digits in a table, whole with --whole, and `short` gives the same in SQL."""
    sql = "SELECT id, [id] AS ids, actor, short(id) AS short FROM records WHERE seq = 1"
    record = made.json("show", "@1").result
    digits = record["id"][7:19]
    cells = made("query", sql).out.splitlines()[1].split()
    assert cells == [digits, digits, record["actor"][8:20], digits]
    assert record["id"] in made("query", sql, "--whole").out
    assert record["id"] in made("query", sql, "--format", "csv").out


def test_sql_is_read_from_stdin(made, monkeypatch):
    """`-` reads the statement from stdin; bytes that are no text are refused like any other bad SQL."""
    for text, code in ((b"SELECT 7 AS seven", 0), (b"SELECT '\xff\xfe", 2), (b"", 2)):
        stream = io.TextIOWrapper(io.BytesIO(text))
        monkeypatch.setattr("sys.stdin", stream)
        called = made.json("query", "-")
        assert called.code == code
        if code == 0:
            assert called.result["rows"] == [[7]]


def test_as_of_is_a_table_too(made):
    """SQL can put the head beside its rows, so that a file of any form can carry it."""
    (row,) = made.json("query", "SELECT size, root FROM as_of").result["rows"]
    assert row == list(made.json("query", "SELECT 1").result["as_of"].values())
