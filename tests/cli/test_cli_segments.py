"""Sealed history: the same answers, only from files that this user's own process wrote of this very ledger."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from world import World, grown, row_of

from ledger.book import DATABASE
from ledger.errors import EvidenceError, UsageError
from ledger.query import engine, sealing, views
from ledger.query.named_queries import find, names
from ledger.query.names import ALL_TABLES, EDGES, READ
from ledger.query.segments import MANIFEST, History, Manifest, stretches
from ledger.query.tables import load_folder
from ledger.store.sqlite import SqliteStore

FROM = 32
SIZES = "SELECT kind, count(*), max(seq) FROM records GROUP BY kind"


@pytest.fixture
def history(tmp_path) -> History:
    """Segments of two records and more, in a cache of the test's own."""
    return History(tmp_path / "cache" / "segments", FROM)


@pytest.fixture
def folder(tmp_path, full_world) -> Path:
    """The file of a ledger that holds every kind."""
    return full_world.write(tmp_path / "ledger")


def rows_of(table: str, loaded) -> list[tuple]:
    """A table's rows, sealed and new, in the order of the ledger."""
    connection = engine.connect_open()
    engine.put(connection, loaded, views.wanted({table}).views)
    return connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()


def files_in(history: History) -> list[Path]:
    """Every file of every segment."""
    return sorted(history.folder.rglob("*.parquet"))


def put(path: Path, data: bytes) -> None:
    """Another file in a file's place."""
    path.unlink()
    path.write_bytes(data)


@pytest.mark.parametrize("table", ALL_TABLES)
def test_sealed_tables_are_the_same_tables(table, folder, history):
    """Segments and tail together give the rows that reading every record gives, and the same head."""
    built = sealing.build(folder, history)
    wanted = views.wanted({table}).tables
    plain = load_folder(folder, wanted)
    sealed = load_folder(folder, wanted, history)
    assert 0 < built.sealed <= built.size == sealed.size == plain.size
    assert sealed.root == plain.root
    assert rows_of(table, sealed) == rows_of(table, plain)


def test_a_tail_names_what_is_sealed(full_world, tmp_path, history):
    """Edges of new records lead to the places of sealed ones."""
    folder = full_world.write(tmp_path / "ledger")
    sealing.build(folder, history)
    world = grown()
    about = world.records[3]
    note = world.admit(world.draft("note.added"))
    store = SqliteStore.open_writer(folder / DATABASE)
    with store.transaction():
        store.append([row_of(note)])
    store.close()
    loaded = load_folder(folder, frozenset({EDGES}), history)
    ends = {(row["target"], row["target_seq"]) for row in loaded.tables[EDGES].to_pylist()}
    named = {ref for _, ref in note.all_refs()}
    places = {record.id: record.seq for record in world.records}
    assert EDGES in loaded.sealed
    assert about.seq < note.seq
    assert named
    assert {(ref, places[ref]) for ref in named} <= ends


@pytest.mark.parametrize("stop", [0, 1, 7, 8, 127, 128, 129, 300])
def test_stretches_are_complete_subtrees_without_a_gap(stop):
    """They cover all but less than a unit, and each begins at a multiple of its size."""
    found = list(stretches(stop, 8))
    assert [item[0] for item in found] == [0, *(item[1] for item in found)][: len(found)]
    assert stop - (found[-1][1] if found else 0) < 8
    assert all(start % (end - start) == 0 for start, end in found)


def test_growth_keeps_what_is_whole(tmp_path, history):
    """A longer ledger keeps the segments that are still in its list and removes files that no list names."""
    world = World()
    while len(world.records) < 70:
        world.add("note.added")
    folder = world.write(tmp_path / "ledger")
    first = sealing.build(folder, history)
    before = {path.name: path.stat().st_ino for path in files_in(history)}
    store = SqliteStore.open_writer(folder / DATABASE)
    for _ in range(60):
        note = world.add("note.added")
        with store.transaction():
            store.append([row_of(note)])
    store.close()
    second = sealing.build(folder, history)
    after = {path.name: path.stat().st_ino for path in files_in(history)}
    assert (first.sealed, second.sealed) == (70, 130)
    assert 0 < second.made < second.segments
    assert {name for name in before if before[name] == after.get(name)}
    assert load_folder(folder, frozenset(READ), history).size == 130


def test_the_same_ledger_gives_the_same_bytes(folder, history, tmp_path):
    """Two builds of one ledger are the same files, byte for byte."""
    other = History(tmp_path / "elsewhere", FROM)
    sealing.build(folder, history)
    sealing.build(folder, other)
    assert files_in(history)
    assert [(item.name, item.read_bytes()) for item in files_in(history)] == [
        (item.name, item.read_bytes()) for item in files_in(other)
    ]


# --- what is not the ledger's is refused -----------------------------------------------------------


def _flip(history: History, name: str) -> None:
    path = next(item for item in files_in(history) if item.name.endswith(f"-{name}.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    put(path, bytes(data))


def _hostile(history: History, name: str) -> None:
    path = next(item for item in files_in(history) if item.name.endswith(f"-{name}.parquet"))
    path.unlink()
    duckdb.sql("SELECT 1 AS seq, 'sha256:00' AS id").write_parquet(str(path))


def _padded(history: History, name: str) -> None:
    path = next(item for item in files_in(history) if item.name.endswith(f"-{name}.parquet"))
    size = path.stat().st_size
    put(path, b"PAR1" + bytes(size - 8) + b"PAR1")


def _linked(history: History, name: str) -> None:
    path = next(item for item in files_in(history) if item.name.endswith(f"-{name}.parquet"))
    kept = path.rename(path.with_suffix(".kept"))
    path.symlink_to(kept)


def _gone(history: History, name: str) -> None:
    next(item for item in files_in(history) if item.name.endswith(f"-{name}.parquet")).unlink()


def _exchanged(history: History, name: str) -> None:
    """One segment's file in the place of another's."""
    found = [item for item in files_in(history) if item.name.endswith(f"-{name}.parquet")]
    put(found[0], found[-1].read_bytes())


@pytest.mark.parametrize("spoil", [_flip, _hostile, _padded, _linked, _gone, _exchanged])
def test_a_file_that_was_not_written_is_refused_and_made_anew(spoil, folder, history):
    """Whatever is put in a segment's place is not read; the next build makes the segment again, and says why."""
    sealing.build(folder, history)
    good = {path.name: path.read_bytes() for path in files_in(history)}
    spoil(history, "records")
    with pytest.raises(EvidenceError) as caught:
        load_folder(folder, frozenset({"records"}), history)
    assert caught.value.code in ("SEGMENT_INVALID", "UNSAFE_PATH")
    built = sealing.build(folder, history)
    assert built.made
    assert built.refused
    assert {path.name: path.read_bytes() for path in files_in(history)} == good
    assert load_folder(folder, frozenset({"records"}), history).size == built.size


def _cut(manifest: dict) -> None:
    manifest["segments"].pop(0)


def _renamed(manifest: dict) -> None:
    """A table whose name leads out of the folder."""
    files = manifest["segments"][0]["files"]
    files["../../../x"] = files.pop("records")


def _shifted(manifest: dict) -> None:
    manifest["segments"][0]["stop"] += 1


def _relabelled(manifest: dict) -> None:
    manifest["ledger"] = "sha256:" + "0" * 64


def _other_last(manifest: dict) -> None:
    manifest["segments"][-1]["last"] = manifest["segments"][0]["last"]


def _other_columns(manifest: dict) -> None:
    manifest["layouts"]["records"] = manifest["layouts"]["edges"]


def _more(manifest: dict) -> None:
    manifest["more"] = 1


@pytest.mark.parametrize(
    "spoil", [_cut, _shifted, _relabelled, _other_last, _other_columns, _more, _renamed]
)
def test_a_list_that_does_not_fit_is_refused_and_made_anew(spoil, folder, history):
    """A list of segments that is damaged, another ledger's or of other tables is not used."""
    sealing.build(folder, history)
    (path,) = history.folder.rglob(MANIFEST)
    manifest = json.loads(path.read_bytes())
    spoil(manifest)
    put(path, json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(EvidenceError) as caught:
        load_folder(folder, frozenset({"records"}), history)
    assert caught.value.code == "SEGMENT_INVALID"
    assert sealing.build(folder, history).refused
    assert load_folder(folder, frozenset({"records"}), history).sealed


def test_segments_of_another_history_are_refused(tmp_path, history):
    """A ledger that parts from the sealed one before its end is answered from its own records."""
    one = World()
    while len(one.records) < 40:
        one.add("note.added")
    sealing.build(one.write(tmp_path / "one"), history)
    other = World()
    while len(other.records) < 40:
        other.add("note.added", text="another story")
    folder = other.write(tmp_path / "other")
    assert other.records[0].id == one.records[0].id
    with pytest.raises(EvidenceError, match="another record"):
        load_folder(folder, frozenset({"notes"}), history)
    sealing.build(folder, history)
    found = rows_of("notes", load_folder(folder, frozenset({"notes"}), history))
    assert all("another story" in row for row in found)


def test_check_finds_what_a_question_would_not(folder, history):
    """A list and files that were forged together pass for sealed history until every record is read again."""
    sealing.build(folder, history)
    assert sealing.check(folder, history).sealed
    (path,) = history.folder.rglob(MANIFEST)
    manifest = Manifest.read(path.parent, "sha256:" + path.parent.name)
    assert manifest is not None
    plain = json.loads(path.read_bytes())
    plain["segments"][0]["root"] = "0" * 64
    put(path, json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(EvidenceError, match="another root"):
        sealing.check(folder, history)


def test_a_long_tail_is_sealed_first(folder, history):
    """Where more records wait than a question should read, it says so instead of reading them."""
    with pytest.raises(UsageError) as caught:
        load_folder(folder, frozenset({"records"}), history)
    assert caught.value.code == "SEGMENTS_DUE"


# --- from the command line ------------------------------------------------------------------------


def test_a_question_seals_a_long_ledger_and_answers_the_same(full, monkeypatch):
    """Above the threshold the first question makes the segments; every answer is as without them."""
    plain = full.json("query", SIZES + " ORDER BY 1").result
    assert not (full.home / "cache").exists()
    monkeypatch.setenv("EVIDENCE_SEGMENTS_FROM", str(FROM))
    assert full.json("query", SIZES + " ORDER BY 1").result == plain
    assert files_in(History(full.home / "cache", FROM))
    assert full.json("segments", "check").result["sealed"]


def test_a_hostile_file_from_the_command_line_is_replaced(full, monkeypatch):
    """A Parquet file that somebody put there changes no answer."""
    monkeypatch.setenv("EVIDENCE_SEGMENTS_FROM", str(FROM))
    plain = full.json("query", SIZES + " ORDER BY 1").result
    _hostile(History(full.home / "cache", FROM), "records")
    assert full.json("segments", "check").error["code"] == "SEGMENT_INVALID"
    assert full.json("query", SIZES + " ORDER BY 1").result == plain
    assert full.json("segments", "check").code == 0


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e6", "٣"])
def test_a_threshold_that_is_no_number_is_refused(full, monkeypatch, text):
    """The variable is a number of records."""
    monkeypatch.setenv("EVIDENCE_SEGMENTS_FROM", text)
    assert full.json("query", "SELECT 1").error["code"] == "USAGE"


@pytest.mark.parametrize("sql", ["SELECT * FROM '{}'", "SELECT * FROM read_parquet('{}')"])
def test_sql_reaches_no_segment_by_its_name(full, monkeypatch, sql):
    """The files are mapped; SQL that names one is refused like any other file."""
    monkeypatch.setenv("EVIDENCE_SEGMENTS_FROM", str(FROM))
    assert full.json("segments", "build").code == 0
    path = next(item for item in files_in(History(full.home / "cache", FROM)))
    called = full.json("query", sql.format(path) + ", (SELECT count(*) FROM records)")
    assert called.error["code"] in ("QUERY_REFUSED", "QUERY_FAILED")


@pytest.mark.parametrize("name", names())
def test_named_questions_run_over_segments(name, folder, history):
    """Each question's answer over segments is the one over records."""
    sealing.build(folder, history)
    found = []
    for lies in (None, history):
        connection = engine.connect()
        wanted = engine.check(connection, find(name).sql)
        engine.put(connection, load_folder(folder, wanted.tables, lies), wanted.views)
        engine.lock(connection, 256 << 20)
        values = {item.name: "sha256:" + "0" * 64 for item in find(name).parameters}
        found.append(engine.run(connection, find(name).sql, values, 1000))
    assert found[0] == found[1]


def test_a_killed_build_leaves_a_list_that_holds(folder, history):
    """What a build that was killed left is either read or made anew, never half of it."""
    command = [sys.executable, "-P", "-m", "ledger.query.sealing"]
    request = {"ledger": str(folder), "folder": str(history.folder), "from_records": FROM}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(request).encode())
        child.stdin.close()
        child.stdout.readline()  # a first segment is in the list
        child.kill()
    built = sealing.build(folder, history)
    assert built.made < built.segments
    assert load_folder(folder, frozenset(READ), history).size == built.size
    shutil.rmtree(history.folder)
