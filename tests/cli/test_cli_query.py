"""`evidence query`: typed tables, named questions, and SQL that may reach for nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ledger.book import Ledger
from ledger.canonical import parse_real
from ledger.query.ask import ask
from ledger.query.named_queries import find, names
from ledger.query.names import ALL_TABLES, TABLES
from ledger.query.tables import columns
from ledger.records import KINDS


def rows(called) -> list[dict[str, object]]:
    """The answer's rows as objects."""
    result = called.result
    return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def test_every_kind_has_a_table_of_its_own():
    """Names of tables are one a kind, and none is used twice."""
    assert TABLES.keys() == KINDS.keys()
    assert len(set(ALL_TABLES)) == len(ALL_TABLES) == len(KINDS) + 2


def test_columns_of_a_table_are_distinct():
    """No field, opened or not, takes the name of another column."""
    for table in ALL_TABLES:
        found = [column.name for column in columns(table)]
        assert len(set(found)) == len(found), table


def test_every_table_holds_its_kinds_records(full, full_world):
    """Each table has exactly the seqs of its kind, and records has them all."""
    parts = " UNION ALL ".join(f"SELECT '{table}' AS t, seq FROM {table}" for table in TABLES.values())
    answer = ask(full.ledger, f"{parts} ORDER BY t, seq")
    wanted = sorted([TABLES[record.kind], record.seq] for record in full_world.records)
    assert answer.rows == wanted
    everything = ask(full.ledger, "SELECT seq, id, kind FROM records ORDER BY seq")
    assert everything.rows == [[item.seq, item.id, item.kind] for item in full_world.records]


def test_reals_are_numbers_and_nested_fields_are_columns(full, full_world):
    """A real string is the same float64 as a DOUBLE, and a field inside a field has its own column."""
    update = full_world.newest("update.acknowledged")
    sql = "SELECT loss, after_value, ref_batch, typeof(loss) AS type FROM updates ORDER BY seq DESC LIMIT 1"
    (found,) = rows(full.json("query", sql))
    assert found == {
        "loss": parse_real(update.body["loss"]),
        "after_value": update.body["after"]["value"],
        "ref_batch": update.ref_list("batch"),
        "type": "DOUBLE",
    }


def test_edges_are_the_refs(full, full_world):
    """The edges table has one row a ref, with the kinds at both ends."""
    answer = ask(full.ledger, "SELECT seq, role, target, target_kind FROM edges ORDER BY seq, role, target")
    kinds = {record.id: record.kind for record in full_world.records}
    wanted = sorted(
        [record.seq, role, ref, kinds[ref]]
        for record in full_world.records
        for role, ref in record.all_refs()
    )
    assert answer.rows == wanted


def test_answer_says_at_which_head_it_was_read(made):
    """as_of is the size and root of the records that were read."""
    made("note", "@0", "x")
    with Ledger.read(made.ledger) as ledger:
        size, root, _ = ledger.head()
    assert made.json("query", "SELECT 1").result["as_of"] == {"size": size, "root": root.hex()}


def test_a_value_of_another_type_than_its_column_is_null(made, monkeypatch):
    """Rows that a stranger spoiled are read as far as they go; only verify judges them."""
    assert made.json("query", "SELECT loss FROM updates").result["rows"] == []


def test_every_named_query_runs(full):
    """Each named query answers on a ledger with every kind, and its header says what it answers."""
    for name in names():
        query = find(name)
        assert query.meaning
        given = [f"--param={parameter}=sha256:" for parameter in query.parameters]
        called = full.json("query", name, *given)
        assert called.code == 0, (name, called.out)
        assert called.result["columns"]
        assert called.result["rows"], name


def test_there_are_named_queries_and_the_list_has_them(cli):
    """--list names each with its meaning and parameters; no ledger is needed."""
    listed = {item["name"]: item for item in cli.json("query", "--list").result["queries"]}
    assert sorted(listed) == names()
    assert len(listed) >= 6
    assert listed["curve"]["parameters"] == {"run": "the run's id or the beginning of it"}


def test_tables_are_listed_with_their_columns(cli):
    """--tables names every table and the types of its columns."""
    tables = {item["table"]: item for item in cli.json("query", "--tables").result["tables"]}
    assert list(tables) == list(ALL_TABLES)
    assert {"name": "loss", "type": "real"} in tables["updates"]["columns"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("curve",), "USAGE"),
        (("kinds", "--param", "run=1"), "USAGE"),
        (("curve", "--param", "run"), "USAGE"),
        (("nothing_of_this_name",), "QUERY_UNKNOWN"),
    ],
    ids=["missing", "unknown", "no value", "no query"],
)
def test_named_queries_take_their_parameters_only(made, words, code):
    """A parameter that is missing, unknown or malformed is a usage error that shows the right call."""
    called = made.json("query", *words)
    assert (called.code, called.error["code"]) == (2, code)


def test_a_parameter_is_a_value_never_sql(made):
    """Quotes in a parameter's value end no string."""
    value = "x' OR 1=1 --"
    assert rows(made.json("query", "SELECT $a AS a", "--param", f"a={value}")) == [{"a": value}]


REFUSED = {
    "nothing": "",
    "only a comment": "-- hello",
    "two statements": "SELECT 1; SELECT 2",
    "explain": "EXPLAIN SELECT 1",
    "explain analyze copy": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
    "copy to": "COPY (SELECT 1) TO '{out}'",
    "copy database": "COPY FROM DATABASE memory TO other",
    "attach": "ATTACH '{out}' AS other",
    "create": "CREATE TABLE t AS SELECT 1",
    "insert": "INSERT INTO notes SELECT 1",
    "delete": "DELETE FROM notes",
    "drop": "DROP VIEW notes",
    "set": "SET threads = 8",
    "reset": "RESET enable_external_access",
    "pragma": "PRAGMA enable_profiling",
    "install": "INSTALL httpfs",
    "load": "LOAD '{out}'",
    "call": "CALL pragma_version()",
    "export": "EXPORT DATABASE '{out}'",
    "use": "USE memory",
    "prepare": "PREPARE q AS SELECT 1",
    "vacuum": "VACUUM",
    "begin": "BEGIN",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_select_is_refused(made, tmp_path, name):
    """Statements that write, configure or reach out are refused before they run, and leave no file."""
    out = tmp_path / "out"
    called = made.json("query", REFUSED[name].format(out=out))
    assert (called.code, called.error["code"]) in {(2, "QUERY_REFUSED"), (2, "QUERY_FAILED")}
    assert not out.exists()


REACHING = {
    "read_text": "SELECT * FROM read_text('{secret}')",
    "read_blob": "SELECT * FROM read_blob('{secret}')",
    "read_csv": "SELECT * FROM read_csv('{secret}')",
    "read_json": "SELECT * FROM read_json('{secret}')",
    "read_parquet": "SELECT * FROM read_parquet('{secret}')",
    "file as table": "SELECT * FROM '{secret}'",
    "glob": "SELECT * FROM glob('{folder}/*')",
    "sqlite_scan": "SELECT * FROM sqlite_scan('{ledger}/ledger.sqlite', 'records')",
    "python variable": "SELECT * FROM database",
    "getenv": "SELECT getenv('HOME')",
    "nested": "SELECT (SELECT content FROM read_text('{secret}'))",
    "query function": "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
    "http": "SELECT * FROM read_text('http://127.0.0.1:9/x')",
}


@pytest.mark.parametrize("name", REACHING)
def test_a_select_reaches_nothing_outside(made, tmp_path, name):
    """No SELECT reads a file, the network, a variable of the process or its environment."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    sql = REACHING[name].format(secret=secret, folder=tmp_path, ledger=made.ledger)
    called = made.json("query", sql)
    assert (called.code, called.error["code"]) in {(2, "QUERY_REFUSED"), (2, "QUERY_FAILED")}
    assert "the secret" not in called.out


def test_a_write_inside_a_select_changes_no_file(made, tmp_path):
    """A WITH that writes is at most a change in memory: the ledger's files stay as they are."""
    before = {path: path.read_bytes() for path in made.ledger.rglob("*") if path.is_file()}
    made.json("query", "WITH x AS (INSERT INTO notes (seq) VALUES (1) RETURNING seq) SELECT * FROM x")
    made.json("query", "SELECT * FROM notes")
    assert {path: path.read_bytes() for path in made.ledger.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("sql", "seconds"),
    [
        ("WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t", 3),
        ("SELECT count(*) FROM range(1000000000) a, range(1000000000) b", 3),
        ("SELECT repeat('x', 2000000000)", 30),
        ("SELECT length(repeat('x', 4000000000) || repeat('y', 4000000000))", 30),
        ("SELECT list(range) FROM range(2000000000)", 30),
    ],
    ids=["endless", "huge join", "2 GB cell", "8 GB cell", "huge list"],
)
def test_a_runaway_is_ended(made, sql, seconds):
    """A statement that would take for ever or all memory ends as an error, not as a dead machine."""
    called = made.json("query", sql, "--timeout", seconds, "--memory", 256)
    assert (called.code, called.error["code"]) == (2, "QUERY_LIMITS")


def test_many_rows_are_cut_and_said_to_be(made):
    """More rows than --limit are cut, and the answer says so."""
    result = made.json("query", "SELECT * FROM range(100)", "--limit", 7).result
    assert (len(result["rows"]), result["truncated"]) == (7, True)
    result = made.json("query", "SELECT * FROM range(7)", "--limit", 7).result
    assert (len(result["rows"]), result["truncated"]) == (7, False)


def test_every_sort_of_cell_is_json(made):
    """Numbers beyond float64 or JSON, bytes, times, lists and structs come back readable."""
    sql = (
        "SELECT 9007199254740993 AS big, 'nan'::DOUBLE AS nan, 'a'::BLOB AS bytes, DATE '2026-01-02' AS day, "
        "[1, NULL] AS list, {'k': 1.5} AS struct, 1.50::DECIMAL(4, 2) AS decimal, NULL AS nothing"
    )
    assert rows(made.json("query", sql)) == [
        {
            "big": "9007199254740993",
            "nan": "nan",
            "bytes": "61",
            "day": "2026-01-02",
            "list": [1, None],
            "struct": {"k": 1.5},
            "decimal": "1.50",
            "nothing": None,
        }
    ]


def test_the_passphrase_does_not_reach_the_query(made, monkeypatch):
    """The process that runs SQL gets none of the user's secrets in its environment."""
    seen: list[dict[str, str]] = []
    import subprocess

    real = subprocess.Popen

    class Watched(real):
        def __init__(self, *args, **kwargs):
            seen.append(kwargs["env"])
            super().__init__(*args, **kwargs)

    monkeypatch.setattr("ledger.query.ask.subprocess.Popen", Watched)
    monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", "secret")
    assert made("query", "SELECT 1").code == 0
    assert [env.keys() & {"EVIDENCE_KEY_PASSPHRASE", "EVIDENCE_KEY"} for env in seen] == [set()]


def test_a_module_in_the_current_folder_is_not_run(made, tmp_path):
    """A duckdb.py lying where the user stands is not imported by the query's process."""
    Path("duckdb.py").write_text("open('ran', 'w')")
    assert made("query", "SELECT 1").code == 0
    assert not Path("ran").exists()


@pytest.mark.parametrize("spoil", ["missing", "not a database", "another database"])
def test_a_query_on_no_ledger_is_an_error_not_a_traceback(made, spoil):
    """A folder without a readable ledger is exit 2 with its code."""
    file = made.ledger / "ledger.sqlite"
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    file.unlink()
    if spoil == "not a database":
        file.write_bytes(b"x" * 8192)
    elif spoil == "another database":
        db = sqlite3.connect(file)
        db.execute("CREATE TABLE t (a)")
        db.close()
    called = made.json("query", "SELECT 1")
    assert called.code == 2
    assert called.error["code"] in {"LEDGER_NOT_FOUND", "LEDGER_UNREADABLE"}


def test_a_person_sees_a_table_and_the_head(made):
    """The text has aligned columns, the number of rows and the head they were read at."""
    lines = made("query", "SELECT kind, seq FROM records ORDER BY seq").out.splitlines()
    assert lines[0].split() == ["kind", "seq"]
    assert lines[1].split() == ["ledger.created", "0"]
    assert lines[-1].startswith("3 rows, read at 3 records, root ")
