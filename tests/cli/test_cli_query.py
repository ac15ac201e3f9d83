"""`evidence query`: typed tables, named questions, and SQL that may reach for nothing else."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path

import duckdb
import pytest

from ledger import canonical
from ledger.book import Ledger
from ledger.canonical import parse_real
from ledger.errors import UsageError
from ledger.query import describe, engine
from ledger.query.ask import ask
from ledger.query.columns import columns
from ledger.query.named_queries import names
from ledger.query.names import ALL_TABLES, DERIVED, READ, TABLES
from ledger.query.tables import Loaded, load
from ledger.records import KINDS
from runners.cli import boundary


@pytest.fixture(scope="module")
def everything(full_world) -> Loaded:
    """Every table of a ledger with every kind."""
    found = [(item.seq, b"", item.signature, item.entry) for item in full_world.records]
    return load(found, frozenset(READ))


def in_process(loaded: Loaded, sql: str, **parameters: str) -> dict[str, object]:
    """What the query's own process does, here: check, lock, run."""
    database = engine.connect()
    wanted = engine.check(database, sql)
    tables = {name: loaded.tables[name] for name in wanted.tables}
    engine.put(database, Loaded(tables, loaded.size, loaded.root), wanted.views)
    engine.lock(database, 256 << 20)
    return engine.run(database, sql, parameters, 1000)


def rows(called) -> list[dict[str, object]]:
    """The answer's rows as objects."""
    result = called.result
    return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def test_every_kind_has_a_table_of_its_own():
    """Names of tables are one a kind, and none is used twice."""
    assert TABLES.keys() == KINDS.keys()
    assert len(set(ALL_TABLES)) == len(ALL_TABLES)
    assert len(READ) == len(KINDS) + 3
    assert set(DERIVED) - set(READ) == {"judgements", "looks"}


def test_columns_of_a_table_are_distinct():
    """No field, opened or not, takes the name of another column."""
    for table in ALL_TABLES:
        found = [name for name, _ in describe.columns(table)]
        assert len(set(found)) == len(found), table


@pytest.mark.parametrize("table", DERIVED)
def test_a_derived_table_is_described_as_it_is(everything, table):
    """The columns that the list names are those that a SELECT of everything gives, in order; its meaning is there."""
    answer = in_process(everything, f"SELECT * FROM {table}")
    assert [name for name, _ in describe.columns(table)] == answer["columns"]
    assert describe.meaning(table).endswith(".")
    assert answer["rows"]
    if table in TABLES.values():
        recorded = [column.name for column in columns(table)]
        assert answer["columns"][: len(recorded)] == recorded


def test_every_table_holds_its_kinds_records(full, full_world):
    """Each table has exactly the seqs of its kind, and records has them all."""
    parts = " UNION ALL ".join(
        f"SELECT '{table}' AS t, seq FROM {table}" for table in TABLES.values()
    )
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
    answer = ask(
        full.ledger, "SELECT seq, role, target, target_kind FROM edges ORDER BY seq, role, target"
    )
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


@pytest.mark.parametrize("loss", [7, "seven", None, ["7.0"], {"a": 1}, True])
def test_a_value_of_another_type_than_its_column_is_null(full_world, loss):
    """Rows that a stranger spoiled are read as far as they go; only verify judges them."""
    update = full_world.newest("update.acknowledged")
    entry = canonical.decode(update.entry)
    entry["body"]["loss"] = loss
    entry["body"]["before"] = loss
    row = (update.seq, b"", update.signature, canonical.encode(entry))
    loaded = load([row], frozenset({"updates"}))
    loaded.tables |= load([], frozenset({"resumptions"})).tables
    answer = in_process(loaded, "SELECT loss, before_value, step FROM updates")
    assert answer["rows"] == [[None, None, update.body["step"]]]


def test_a_named_query_runs_from_the_command_line(full, full_world):
    """The learning curve of the newest run has one row an update."""
    update = full_world.newest("update.acknowledged")
    run = update.ref("run")
    mine = [
        item.body["step"]
        for item in full_world.records
        if item.ref("run") == run and "loss" in item.body
    ]
    found = rows(full.json("query", "curve", "--param", f"run={run[7:]}"))
    assert [row["step"] for row in found] == sorted(mine)


def test_there_are_named_queries_and_the_list_has_them(cli):
    """--list names each with its meaning and parameters; no ledger is needed."""
    listed = {item["name"]: item for item in cli.json("query", "--list").result["queries"]}
    assert sorted(listed) == names()
    assert len(listed) >= 20
    assert listed["curve"]["parameters"] == {"run": "the run (run.launched)"}
    assert all(item["meaning"].endswith(".") and item["units"] for item in listed.values())


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
        (("curve", "--param", "run=ffffff"), "REF_NOT_FOUND"),
        (("curve", "--param", "run=@0"), "REF_KIND"),
        (("nothing_of_this_name",), "QUERY_UNKNOWN"),
    ],
    ids=["missing", "unknown", "no value", "no record", "another kind", "no query"],
)
def test_named_queries_take_their_parameters_only(made, words, code):
    """A parameter that is missing, unknown or malformed is a usage error that shows the right call."""
    called = made.json("query", *words)
    assert (called.code, called.error["code"]) == (boundary.exit_code(code), code)


def test_a_parameter_is_a_value_never_sql(made):
    """Quotes in a parameter's value end no string."""
    value = "x' OR 1=1 --"
    assert rows(made.json("query", "SELECT $a AS a", "--param", f"a={value}")) == [{"a": value}]


REFUSED = {
    "nothing": "",
    "only a comment": "/* hello */",
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
    "copy to an allowed file": "COPY (SELECT 1) TO '{out}' (USE_TMP_FILE false)",
    "copy from": "COPY notes FROM '{out}'",
    "import": "IMPORT DATABASE '{out}'",
    "detach": "DETACH memory",
    "create macro": "CREATE MACRO f(x) AS read_text(x)",
    "create secret": "CREATE SECRET s (TYPE s3)",
    "create view over a file": "CREATE VIEW v AS SELECT * FROM '{out}'",
    "create function": "CREATE TEMP FUNCTION f() AS TABLE SELECT 1",
    "alter": "ALTER TABLE notes ADD COLUMN x INTEGER",
    "update": "UPDATE notes SET text = 'x'",
    "merge": "MERGE INTO notes USING notes AS n ON true WHEN MATCHED THEN DELETE",
    "truncate": "TRUNCATE notes",
    "set variable": "SET VARIABLE x = 1",
    "set global": "SET GLOBAL enable_external_access = true",
    "update extensions": "UPDATE EXTENSIONS",
    "force install": "FORCE INSTALL httpfs FROM community",
    "checkpoint": "CHECKPOINT",
    "analyze": "ANALYZE notes",
    "execute": "EXECUTE q",
    "describe": "DESCRIBE notes; SELECT 1",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_select_is_refused(everything, tmp_path, name):
    """Statements that write, configure or reach out are refused before they run, and leave no file."""
    out = tmp_path / "out"
    with pytest.raises(UsageError) as caught:
        in_process(everything, REFUSED[name].format(out=out))
    assert caught.value.code == "QUERY_REFUSED"
    assert not out.exists()


def test_two_statements_are_refused_from_the_command_line(made):
    """The refusal reaches the caller with what was there instead of one SELECT."""
    called = made.json("query", "SELECT 1; DROP VIEW notes")
    assert (called.code, called.error["code"]) == (2, "QUERY_REFUSED")
    assert called.error["actual"] == "SELECT, DROP"


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
    "https as table": "SELECT * FROM 'https://127.0.0.1:9/x.parquet'",
    "s3": "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "parquet metadata": "SELECT * FROM parquet_metadata('{secret}')",
    "sniff csv": "SELECT * FROM sniff_csv('{secret}')",
    "read_ndjson": "SELECT * FROM read_ndjson_auto('{secret}')",
    "lateral": "SELECT c.content FROM (SELECT '{secret}' AS f) AS t, read_text(t.f) AS c",
    "query_table": "SELECT * FROM query_table('{secret}')",
    "arrow scan": "SELECT * FROM arrow_scan(1, 2, 3)",
    "pandas scan": "SELECT * FROM pandas_scan(1)",
    "sql in json": "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{secret}'')'))",
    "duckdb file": "SELECT * FROM read_duckdb('{secret}')",
    "recursive glob": "SELECT * FROM glob('/**')",
}


@pytest.mark.parametrize("name", REACHING)
def test_a_select_reaches_nothing_outside(everything, tmp_path, name):
    """No SELECT reads a file, the network, a variable of the process or its environment."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    sql = REACHING[name].format(secret=secret, folder=tmp_path, ledger=tmp_path)
    with pytest.raises(UsageError) as caught:
        in_process(everything, sql)
    assert caught.value.code in {"QUERY_REFUSED", "QUERY_FAILED"}
    assert "the secret" not in str(caught.value)


def test_the_system_refuses_files_too(made, monkeypatch, tmp_path):
    """With the engine's own lock left out, the query's process still can open no file and no socket."""
    (tmp_path / "secret.txt").write_text("the secret")
    script = (
        "import sys; from ledger.query import child, engine\n"
        "engine.lock = lambda database, memory_bytes: None\n"
        "sys.exit(child.main())\n"
    )
    (tmp_path / "unlocked.py").write_text(script)
    real = subprocess.Popen

    class Unlocked(real):
        def __init__(self, command, **kwargs):
            super().__init__([command[0], str(tmp_path / "unlocked.py")], **kwargs)

    monkeypatch.setattr("ledger.query.ask.subprocess.Popen", Unlocked)
    for sql in (
        f"SELECT * FROM read_text('{tmp_path}/secret.txt')",
        f"SELECT * FROM glob('{tmp_path}/*')",
    ):
        called = made.json("query", sql)
        assert "the secret" not in called.out
        assert not called.answer["ok"] or called.result["rows"] == []


def test_a_file_is_not_read_from_the_command_line(made, tmp_path):
    """The lock holds in the query's own process too."""
    (tmp_path / "secret.txt").write_text("the secret")
    called = made.json("query", f"SELECT * FROM read_text('{tmp_path}/secret.txt')")
    assert (called.code, called.error["code"]) == (2, "QUERY_REFUSED")


@pytest.mark.parametrize(
    "setting",
    [
        "enable_external_access = true",
        "lock_configuration = false",
        "memory_limit = '99GB'",
        "threads = 9",
    ],
)
def test_a_locked_database_stays_locked(setting):
    """No setting is changed after the lock, not even by us."""
    database = engine.connect()
    engine.lock(database, 256 << 20)
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        database.execute(f"SET {setting}")


def test_a_write_inside_a_select_changes_no_file(made, tmp_path):
    """A WITH that writes is at most a change in memory: the ledger's files stay as they are."""
    before = tree(made.ledger)
    made.json(
        "query", "WITH x AS (INSERT INTO notes (seq) VALUES (1) RETURNING seq) SELECT * FROM x"
    )
    assert tree(made.ledger) == before
    assert made.json("query", "SELECT * FROM notes").result["rows"] == []


def tree(folder: Path) -> dict[Path, bytes]:
    """The bytes of every file but SQLite's own lock and journal files, which reading makes too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}


@pytest.mark.parametrize(
    ("sql", "seconds"),
    [
        (
            "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t",
            3,
        ),
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


def test_a_billion_rows_are_cut_or_refused(made):
    """An answer of a billion rows is cut at the limit without being made first."""
    called = made.json("query", "SELECT * FROM range(1000000000)", "--limit", 3, "--memory", 256)
    assert (called.result["rows"], called.result["truncated"]) == ([[0], [1], [2]], True)


def test_an_answer_of_too_many_bytes_is_refused(made):
    """More than the answer may have in bytes is an error that says so, not a cut answer."""
    called = made.json("query", "SELECT repeat('x', 1000000) AS x FROM range(100)")
    assert (called.code, called.error["code"]) == (2, "QUERY_LIMITS")
    assert "MiB" in called.error["message"]


def test_many_rows_are_cut_and_said_to_be(made):
    """More rows than --limit are cut, and the answer says so."""
    result = made.json("query", "SELECT * FROM range(100)", "--limit", 7).result
    assert (len(result["rows"]), result["truncated"]) == (7, True)
    result = made.json("query", "SELECT * FROM range(7)", "--limit", 7).result
    assert (len(result["rows"]), result["truncated"]) == (7, False)


def test_every_sort_of_cell_is_json(everything):
    """Numbers beyond float64 or JSON, bytes, times, lists and structs come back readable."""
    sql = (
        "SELECT 9007199254740993 AS big, 'nan'::DOUBLE AS nan, 'a'::BLOB AS bytes, DATE '2026-01-02' AS day, "
        "[1, NULL] AS list, {'k': 1.5} AS struct, 1.50::DECIMAL(4, 2) AS decimal, "
        "0.12345678901234567891::DECIMAL(38, 20) AS fine, NULL AS nothing"
    )
    answer = in_process(everything, sql)
    assert [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]] == [
        {
            "big": "9007199254740993",
            "nan": "nan",
            "bytes": "61",
            "day": "2026-01-02",
            "list": [1, None],
            "struct": {"k": 1.5},
            "decimal": 1.5,
            "fine": "0.12345678901234567891",
            "nothing": None,
        }
    ]


def test_the_passphrase_does_not_reach_the_query(made, monkeypatch):
    """The process that runs SQL gets none of the user's secrets in its environment."""
    seen: list[dict[str, str]] = []
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
