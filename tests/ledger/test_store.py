"""The SQLite store: guards, pragmas, hostile databases, folders that cannot be written."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from pysqlite3 import dbapi2 as sqlite
from world import World, key, row_of

from ledger import book
from ledger.book import DATABASE, Ledger
from ledger.errors import EvidenceError, UsageError
from ledger.store import connection as store
from ledger.store.durable import FORMAT_VERSION
from ledger.store.sqlite import SqliteStore
from verifiers.verify import Options, verify

NOBODY = 65534


@pytest.fixture
def database(folder) -> Path:
    """The file of a small ledger."""
    world = World()
    world.add("note.added")
    world.write(folder)
    return folder / DATABASE


def raw(path: Path, *statements: str) -> None:
    """What somebody does to the file without us."""
    db = sqlite.connect(str(path), isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


GUARDED = {
    "update": "UPDATE records SET entry = x'00' WHERE seq = 1",
    "delete": "DELETE FROM records WHERE seq = 6",
    "or replace": "INSERT OR REPLACE INTO records SELECT * FROM records WHERE seq = 1",
    "replace": "REPLACE INTO records SELECT * FROM records WHERE seq = 6",
    "or ignore": "INSERT OR IGNORE INTO records SELECT * FROM records WHERE seq = 1",
    "upsert": "INSERT INTO records SELECT * FROM records WHERE seq = 1 "
    "ON CONFLICT (seq) DO UPDATE SET entry = x'00'",
    "gap": "INSERT INTO records SELECT seq + 2, id, id, signature, entry FROM records WHERE seq = 6",
    "fork": "INSERT INTO records SELECT 7, id, id, signature, entry FROM records WHERE seq = 1",
    "short id": "INSERT INTO records SELECT 7, x'00', id, signature, entry FROM records WHERE seq = 6",
    "text": "INSERT INTO records SELECT 7, id, id, signature, 'x' FROM records WHERE seq = 6",
    "seal changed": "UPDATE seals SET note = x'00'",
    "seal removed": "DELETE FROM seals",
}


@pytest.mark.parametrize("statement", GUARDED.values(), ids=GUARDED.keys())
def test_guards_refuse(database, statement):
    """By triggers and checks, the database itself refuses what an append-only table must."""
    raw(database, "INSERT INTO seals VALUES (1, x'00')")
    before = database.read_bytes()
    with pytest.raises(sqlite.IntegrityError):
        raw(database, statement)
    assert database.read_bytes() == before


def test_pragmas_are_as_asked(database):
    """Each setting that durability and safety rest on is read back from the connection."""
    opened = SqliteStore.open_writer(database)
    for name, value in store.PRAGMAS.items():
        assert opened._db.execute(f"PRAGMA {name}").fetchone()[0] == value, name
    opened.close()
    reader = SqliteStore.open_reader(database)
    for name, value in {"query_only": 1, "trusted_schema": 0, "mmap_size": 0}.items():
        assert reader._db.execute(f"PRAGMA {name}").fetchone()[0] == value, name
    reader.close()


def test_pragma_that_does_not_take_is_refused(tmp_path, monkeypatch):
    """SQLite ignores a pragma that it does not know; we do not."""
    monkeypatch.setitem(store.PRAGMAS, "no_such_pragma", 1)
    with pytest.raises(UsageError) as caught:
        SqliteStore.create(tmp_path / "x.sqlite")
    assert caught.value.code == "SQLITE_UNSAFE"


@pytest.mark.parametrize(
    ("version", "safe"),
    [((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 0), False),
     ((3, 50, 6), False), ((3, 50, 7), True), ((3, 51, 2), False), ((3, 51, 3), True), ((3, 53, 0), True)],
    ids=str,
)  # fmt: skip
def test_library_with_the_wal_reset_bug_is_refused(monkeypatch, version, safe):
    """Exactly the versions with the fix are let in."""
    monkeypatch.setattr(store.sqlite, "sqlite_version_info", version)
    if safe:
        store.check_library()
    else:
        with pytest.raises(UsageError) as caught:
            store.check_library()
        assert caught.value.code == "SQLITE_UNSAFE"


def test_dropped_trigger_is_noticed(database, folder):
    """A reader goes on and says so; a writer is refused."""
    raw(database, "DROP TRIGGER records_no_update")
    report = verify(folder, Options(workers=1))
    assert report.verdict == "verified"
    assert [item.code for item in report.warnings] == ["TRIGGER_MISSING"]
    with pytest.raises(EvidenceError) as caught:
        Ledger.open(folder, key=key("writer"))
    assert caught.value.code == "LEDGER_SCHEMA"


SCHEMAS = {
    "view instead of the table": (
        "ALTER TABLE records RENAME TO hidden",
        "CREATE VIEW records AS SELECT * FROM hidden WHERE seq <> 3",
    ),
    "table without checks": (
        "ALTER TABLE seals RENAME TO hidden",
        "CREATE TABLE seals (size, note)",
        "DROP TABLE hidden",
    ),
    "a trigger more": ("CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END",),
    "a table more": ("CREATE TABLE more (x)",),
    "an index more": ("CREATE INDEX more ON records (entry)",),
    "a trigger of other words": (
        "DROP TRIGGER records_append",
        "CREATE TRIGGER records_appended BEFORE INSERT ON records BEGIN SELECT 1; END",
    ),
    "a trigger under an inner name": (
        "PRAGMA writable_schema = ON",
        """INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_more', 'records', 0,
        'CREATE TRIGGER sqlite_more AFTER INSERT ON records BEGIN SELECT 1; END')""",
    ),
}


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_database_laid_out_in_another_way_is_refused(database, folder, statements):
    """Only plain tables as a ledger has them are read; anything more or else is refused."""
    raw(database, *statements)
    for open_it in (SqliteStore.open_reader, SqliteStore.open_writer):
        with pytest.raises(EvidenceError) as caught:
            open_it(database)
        assert caught.value.code == "LEDGER_SCHEMA"
    assert [item.code for item in verify(folder).wrong] == ["LEDGER_SCHEMA"]


def untyped(database: Path, *statements: str) -> None:
    """Fill the tables with other types and then write the proper schema's text over it."""
    wanted = store.expected_objects("schema.sql")
    texts = {name: text for (kind, name), text in wanted.items() if kind == "table"}
    rows = sqlite.connect(str(database)).execute("SELECT * FROM records").fetchall()
    database.unlink()
    db = sqlite.connect(str(database), isolation_level=None)
    db.execute("CREATE TABLE records (seq INTEGER PRIMARY KEY, id, prev, signature, entry)")
    db.execute("CREATE TABLE seals (size INTEGER PRIMARY KEY, note)")
    db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
    for statement in statements:
        db.execute(statement)
    db.execute("PRAGMA writable_schema = ON")
    for name, text in texts.items():
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (text, name))
    db.execute("PRAGMA writable_schema = RESET")
    for (kind, _), text in wanted.items():
        if kind == "trigger":
            db.execute(text)
    db.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    db.close()


HOSTILE = {
    "entry a text": "UPDATE records SET entry = 'x' WHERE seq = 2",
    "entry nothing": "UPDATE records SET entry = NULL WHERE seq = 2",
    "signature a number": "UPDATE records SET signature = 5 WHERE seq = 2",
    "last id a text": "UPDATE records SET id = 'x' WHERE seq = 6",
    "id a number": "UPDATE records SET id = 7.5 WHERE seq = 2",
    "seal a number": "INSERT INTO seals VALUES (1, 4000000000000)",
    "seal a text": "INSERT INTO seals VALUES (1, 'x')",
}


@pytest.mark.parametrize("statement", HOSTILE.values(), ids=HOSTILE.keys())
def test_columns_of_other_types_are_findings(database, folder, statement):
    """Types that only a crafted file can hold end as a finding, never as an error of another kind."""
    untyped(database, statement)
    report = verify(folder, Options(workers=1))
    assert report.verdict == "wrong"
    assert [item.code for item in report.wrong] == ["LEDGER_UNREADABLE"]


def test_crafted_file_without_a_lie_is_read(database, folder):
    """The crafting itself is no finding: the rows are what counts."""
    untyped(database)
    assert verify(folder, Options(workers=1)).verdict == "verified"


REMOVED = {
    "a row from the middle": ("DELETE FROM records WHERE seq = 3", "SEQ_GAP", 4),
    "the first row": ("DELETE FROM records WHERE seq = 0", "SEQ_GAP", 1),
    "two rows swapped": (
        """UPDATE records SET entry = CASE seq WHEN 3 THEN (SELECT entry FROM records WHERE seq = 4)
        ELSE (SELECT entry FROM records WHERE seq = 3) END WHERE seq IN (3, 4)""",
        "SEQ_GAP",
        3,
    ),
    "a row far away": ("UPDATE records SET seq = 4000000000 WHERE seq = 6", "SEQ_GAP", 4000000000),
    "a row below zero": ("UPDATE records SET seq = -4 WHERE seq = 0", "SEQ_GAP", -4),
    "a row more, below zero": (
        "INSERT INTO records SELECT -5, id, prev, signature, entry FROM records WHERE seq = 3",
        "SEQ_GAP",
        -5,
    ),
    "a row more, at the end of all numbers": (
        """INSERT INTO records SELECT 9223372036854775807, id, prev, signature, entry
        FROM records WHERE seq = 3""",
        "SEQ_GAP",
        9223372036854775807,
    ),
    "the stored id": (
        "UPDATE records SET id = (SELECT id FROM records WHERE seq = 1) WHERE seq = 6",
        "ROW_ID_WRONG",
        6,
    ),
    "a signature": (
        "UPDATE records SET signature = zeroblob(64) WHERE seq = 4",
        "SIGNATURE_INVALID",
        4,
    ),
    "the last signature": (
        "UPDATE records SET signature = zeroblob(64) WHERE seq = 6",
        "SIGNATURE_INVALID",
        6,
    ),
}


@pytest.mark.parametrize(("statement", "code", "seq"), REMOVED.values(), ids=REMOVED.keys())
def test_rows_changed_behind_the_guards_are_found(database, folder, statement, code, seq):
    """With the triggers out of the way and put back, the verifier names the first bad record."""
    triggers = [
        text
        for (kind, _), text in store.expected_objects("schema.sql").items()
        if kind == "trigger"
    ]
    names = [name for (kind, name) in store.expected_objects("schema.sql") if kind == "trigger"]
    raw(database, *(f"DROP TRIGGER {name}" for name in names), statement, *triggers)
    report = verify(folder, Options(workers=1))
    assert [(item.code, item.seq) for item in report.wrong][:1] == [(code, seq)]


def test_format_of_the_future_is_refused(database, folder):
    """A ledger of another format version is told apart from a damaged one."""
    raw(database, "PRAGMA user_version = 2")
    assert [item.code for item in verify(folder).wrong] == ["FORMAT_UNKNOWN"]
    with pytest.raises(EvidenceError) as caught:
        Ledger.open(folder, key=key("writer"))
    assert (caught.value.code, caught.value.actual) == ("FORMAT_UNKNOWN", "2")


NO_LEDGERS = {
    "another application's": b"",
    "no database": b"hello " * 1000,
    "half a header": b"SQLite format 3\x00",
}


@pytest.mark.parametrize("data", NO_LEDGERS.values(), ids=NO_LEDGERS.keys())
def test_file_that_is_no_ledger_is_refused(tmp_path, data):
    """Anything else under the database's name is unreadable, by our code."""
    (tmp_path / DATABASE).write_bytes(data)
    for open_it in (SqliteStore.open_reader, SqliteStore.open_writer):
        with pytest.raises(EvidenceError) as caught:
            open_it(tmp_path / DATABASE)
        assert caught.value.code == "LEDGER_UNREADABLE"


@pytest.mark.parametrize("cut", [100, 8192, 12_000])
def test_file_that_was_cut_off_is_refused(database, folder, cut):
    """A database that lost its end is no crash of ours."""
    data = database.read_bytes()
    database.write_bytes(data[:cut])
    report = verify(folder, Options(workers=1))
    assert report.verdict == "wrong"
    assert report.wrong[0].code in ("LEDGER_UNREADABLE", "LEDGER_SCHEMA")


def test_random_damage_to_the_file_never_raises(database, folder):
    """Overwritten bytes anywhere give a verdict, and verified only where no row was touched."""
    data = database.read_bytes()
    rows = [row_of(record)[3:] for record in Ledger.read(folder).records()]
    for position in range(0, len(data), 499):
        spoiled = bytearray(data)
        spoiled[position : position + 8] = bytes(
            byte ^ 0x5A for byte in data[position : position + 8]
        )
        database.write_bytes(bytes(spoiled))
        report = verify(folder, Options(workers=1))
        if report.verdict == "verified":
            with Ledger.read(folder) as ledger:
                assert [row_of(record)[3:] for record in ledger.records()] == rows


def test_link_to_a_database_is_refused(database, tmp_path):
    """A link under the database's name could lead anywhere, so it is not followed."""
    other = tmp_path / "other"
    other.mkdir()
    (other / DATABASE).symlink_to(database)
    with pytest.raises(EvidenceError) as caught:
        Ledger.read(other)
    assert caught.value.code == "UNSAFE_PATH"


def test_path_with_odd_characters_is_opened(tmp_path):
    """Question marks, hashes and percent signs in a path do not change which file is opened."""
    folder = tmp_path / "a?b#c%20d"
    World().write(folder)
    assert verify(folder, Options(workers=1)).verdict == "verified"
    assert [item.name for item in tmp_path.iterdir()] == ["a?b#c%20d"]


def test_busy_ledger_is_told_after_the_wait(database, folder):
    """A writer that waits too long for another one is told so, and nothing was written."""
    with Ledger.open(folder, key=key("writer"), busy_timeout_ms=50) as ledger:
        other = sqlite.connect(str(database), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError) as caught:
            ledger.append("note.added", {"text": "x"})
        assert caught.value.code == "LEDGER_BUSY"
        other.execute("ROLLBACK")
        other.close()
        assert ledger.append("note.added", {"text": "x"}).seq == 7


def test_full_disk_fails_the_append_and_the_next_one_goes_on(database, folder):
    """Where the database cannot grow, the append is refused, nothing is half there, and later it works."""
    with Ledger.open(folder, key=key("writer")) as ledger:
        size = ledger.size
        pages = ledger.store._db.execute("PRAGMA page_count").fetchone()[0]
        ledger.store._db.execute(f"PRAGMA max_page_count = {pages}")
        drafts = [book.Draft("note.added", {"text": "x" * 3000}) for _ in range(100)]
        with pytest.raises((EvidenceError, UsageError)) as caught:
            ledger.append_many(drafts)
        assert caught.value.code == "DISK_FULL"
        ledger.store._db.execute("PRAGMA max_page_count = 100000")
        here = ledger.size
        assert here == size
        assert ledger.append("note.added", {"text": "x"}).seq == here
    assert verify(folder, Options(workers=1)).verdict == "verified"


def without_privileges(call) -> str:
    """What a call gives in a process that may not write where it is not allowed to."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writer, call().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def read_and_try_to_write(folder) -> str:
    """The verdict, and the code with which a writer is refused."""
    verdict = verify(folder, Options(workers=1)).verdict
    with pytest.raises(UsageError) as caught:
        Ledger.open(folder, key=key("writer"))
    return f"{verdict} {caught.value.code}"


@pytest.mark.parametrize("indexed", [True, False])
def test_folder_that_cannot_be_written_is_read_and_left_alone(indexed):
    """A reader needs no write permission; a writer is refused; no file appears."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))
    folder = base / "ledger"
    try:
        world = World()
        if indexed:
            world.replay(folder).close()
        else:
            world.write(folder)
        for path in [base, folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        names = sorted(path.name for path in folder.rglob("*"))
        said = without_privileges(lambda: read_and_try_to_write(folder))
        assert said == "verified LEDGER_READ_ONLY"
        assert sorted(path.name for path in folder.rglob("*")) == names
    finally:
        for path in [base, folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(base)


def spread(folder: Path) -> tuple[Path, list[int]]:
    """A ledger over several pages, and where the pages begin that hold its records."""
    world = World()
    for number in range(40):
        world.add("note.added", text=f"note {number}")
    database = world.write(folder) / DATABASE
    data = database.read_bytes()
    starts = range(store.PAGE_BYTES, len(data), store.PAGE_BYTES)
    leaves = [start for start in starts if data[start] == 0x0D and b"note 3" in data[start:][:8192]]
    return database, leaves


def test_damaged_tree_that_gives_rows_twice_ends(folder):
    """A page of rows in another's place is a finding where rows were due, not a reading without end."""
    database, leaves = spread(folder)
    data = bytearray(database.read_bytes())
    first, second = leaves[0], leaves[1]
    data[second : second + store.PAGE_BYTES] = data[first : first + store.PAGE_BYTES]
    database.write_bytes(data)
    reader = SqliteStore.open_reader(database)
    with pytest.raises(EvidenceError) as caught:
        list(reader.rows(0, 40))
    reader.close()
    assert caught.value.code == "LEDGER_UNREADABLE"
    report = verify(folder, Options(workers=1))
    assert [item.code for item in report.wrong] == ["LEDGER_UNREADABLE"]
    assert report.wrong[0].seq == report.records > 0


def test_page_that_cannot_be_read_hides_nothing_before_it(folder):
    """A bad signature in a page before the damage is the first finding, though both lie in one stretch of rows."""
    database, leaves = spread(folder)
    triggers = [
        text
        for (kind, _), text in store.expected_objects("schema.sql").items()
        if kind == "trigger"
    ]
    names = [name for (kind, name) in store.expected_objects("schema.sql") if kind == "trigger"]
    change = "UPDATE records SET signature = zeroblob(64) WHERE seq = 3"
    raw(database, *(f"DROP TRIGGER {name}" for name in names), change, *triggers)
    data = bytearray(database.read_bytes())
    data[leaves[-1] : leaves[-1] + 64] = b"\xff" * 64
    database.write_bytes(data)
    codes = [(item.code, item.seq) for item in verify(folder, Options(workers=1)).wrong]
    assert codes == [("SIGNATURE_INVALID", 3)]


def test_ledger_whose_rows_are_all_below_zero_is_wrong(database, folder):
    """Rows that were renumbered below zero are not no rows: the first is named."""
    raw(database, "DROP TRIGGER records_no_update", "UPDATE records SET seq = -seq - 1")
    report = verify(folder, Options(workers=1))
    assert [(item.code, item.seq, item.expected) for item in report.wrong] == [("SEQ_GAP", -7, "0")]


def test_reading_leaves_no_file_beside_the_database(database):
    """Whoever only reads a ledger leaves its folder as it was, byte for byte."""
    before = {path: path.read_bytes() for path in database.parent.iterdir() if path.is_file()}
    for _ in range(2):
        reader = SqliteStore.open_reader(database)
        assert len(list(reader.rows())) == 7
        reader.close()
    after = {path: path.read_bytes() for path in database.parent.iterdir() if path.is_file()}
    assert after == before


def test_a_reader_and_a_writer_do_not_harm_one_another(database):
    """A reader that came first sees what a writer adds, and whoever closes last leaves every record."""
    reader = SqliteStore.open_reader(database)
    assert reader.tail()[0] == 7
    writer = Ledger.open(database.parent, key=key("writer"))
    made = writer.append("note.added", {"text": "more", "tags": []})
    assert reader.row(made.seq)[3] == made.entry
    writer.close()
    assert reader.row(made.seq)[3] == made.entry
    reader.close()
    assert not list(database.parent.glob("*-wal"))
    again = SqliteStore.open_reader(database)
    assert again.tail()[0] == 8
    again.close()


def test_a_reader_cannot_write(database):
    """The connection of a reader refuses every change, although the file could be written."""
    reader = SqliteStore.open_reader(database)
    with pytest.raises(UsageError) as caught:
        reader.put_seal(7, b"x")
    assert caught.value.code == "LEDGER_READ_ONLY"
    reader.close()


def test_damage_quoted_in_the_library_s_message_is_no_raw_error(database, folder):
    """SQLite quotes the damaged text, whatever its bytes; where they are no Unicode the finding is still ours."""
    text = b"CREATE TAB\xcc (x)".hex()
    raw(
        database,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = CAST(x'{text}' AS TEXT) WHERE name = 'seals'",
    )
    assert [item.code for item in verify(folder, Options(workers=1)).wrong] == ["LEDGER_UNREADABLE"]


def test_a_file_system_that_is_read_only_is_named(tmp_path):
    """Another key would not help there, and a hint says what would; elsewhere it is a matter of whose the files are."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    fixed = [Path(line[1]) for line in mounts if "ro" in line[3].split(",") and Path(line[1]).is_dir()]  # fmt: skip
    assert "belong" in store.read_only(tmp_path / "ledger.sqlite").hint
    if not fixed:
        pytest.skip("no file system here is read-only")
    error = store.read_only(fixed[0] / "ledger.sqlite")
    assert "file system that is read-only" in error.message
    assert "key" not in error.hint
