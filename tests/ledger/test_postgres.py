"""The shared store: the same ledger on a PostgreSQL server, its guards, its roles, and a server that lies or dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="needs the postgres extra")

import psycopg
from postgres_server import INITDB, running
from world import ORIGIN, WRITER_ROLES, clock_at, grown, key

from ledger.book import DATABASE, Ledger
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.query.ask import ask, seal
from ledger.query.lineage import fold, walk
from ledger.query.links import folded
from ledger.query.segments import History
from ledger.records.identity import NoteAdded
from ledger.store.address import POINTER, VARIABLE, parse, read_pointer
from ledger.store.choose import open_reader, open_writer
from verifiers.verify import Options, verify

pytestmark = pytest.mark.skipif(INITDB is None, reason="PostgreSQL's server is not installed")
ROOT = Path(__file__).resolve().parents[2]
NONCE = "ab" * 16


@pytest.fixture(scope="module")
def server():
    """A server of this module's own."""
    with running() as made:
        yield made


@pytest.fixture
def named(server, monkeypatch) -> str:
    """The server's address, named as a user does."""
    monkeypatch.setenv(VARIABLE, server.url())
    return server.url()


@pytest.fixture
def shared(named, folder):
    """A small ledger on the server."""
    made = begun(folder, named)
    made.append("note.added", NoteAdded(text="one"))
    made.seal()
    made.close()
    yield folder
    forget(named, folder)


def begun(folder, url) -> Ledger:
    """A new ledger on a server."""
    return Ledger.create(
        folder,
        origin=ORIGIN,
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=WRITER_ROLES,
        nonce=os.urandom(16).hex(),
        address=parse(url),
    )


def forget(url, folder) -> None:
    """Take the ledger's schema away: the server serves the next test too."""
    name = schema(folder)
    raw(
        url,
        f"DROP SCHEMA IF EXISTS {name} CASCADE",
        f"DROP ROLE IF EXISTS {name}_append, {name}_read",
    )


def schema(folder) -> str:
    """The schema that a folder's ledger lies in."""
    pointer = read_pointer(folder)
    assert pointer is not None
    return pointer.schema


def raw(url, *statements: str) -> list[tuple]:
    """What somebody does to the database without us; the last statement's rows."""
    with psycopg.connect(url, autocommit=True) as db:
        rows: list[tuple] = []
        for statement in statements:
            cursor = db.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
        return rows


def refusal(call, *arguments, **options) -> LedgerError:
    """What the call is refused with."""
    with pytest.raises(LedgerError) as caught:
        call(*arguments, **options)
    return caught.value


def test_every_kind_of_record_has_the_same_id_on_the_server(named, folder, tmp_path):
    """The same drafts give the same records, head and blobs in a file and on a server, and both verify."""
    world = grown()
    with world.replay(folder, parse(named)) as ledger:
        assert [record.id for record in ledger.records()] == [item.id for item in world.records]
        assert ledger.head() == (world.chain.size, world.chain.tree.root(), world.chain.last_id)
        assert not (folder / DATABASE).exists()
    world.replay(tmp_path / "file").close()
    reports = [verify(place, Options(workers=1)).as_dict() for place in (folder, tmp_path / "file")]
    assert reports[0] == reports[1]
    assert reports[0]["verdict"] == "verified"
    forget(named, folder)


GUARDED = {
    "update": "UPDATE {0}.records SET entry = '\\x00' WHERE seq = 1",
    "delete": "DELETE FROM {0}.records WHERE seq = 2",
    "truncate": "TRUNCATE {0}.records",
    "as a replica": "SET session_replication_role = replica; DELETE FROM {0}.records",
    "gap": "INSERT INTO {0}.records SELECT seq + 2, id, id, signature, entry FROM {0}.records WHERE seq = 2",
    "fork": "INSERT INTO {0}.records SELECT 4, id, id, signature, entry FROM {0}.records WHERE seq = 1",
    "again": "INSERT INTO {0}.records SELECT * FROM {0}.records WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET entry = '\\x00'",
    "short id": "INSERT INTO {0}.records SELECT 4, '\\x00', id, signature, entry FROM {0}.records WHERE seq = 3",
    "seal changed": "UPDATE {0}.seals SET note = '\\x00'",
    "seal removed": "DELETE FROM {0}.seals",
}


@pytest.mark.parametrize("statement", GUARDED.values(), ids=GUARDED.keys())
def test_guards_refuse(named, shared, statement):
    """The database itself refuses what an append-only table must, to its owner too."""
    everything = f"SELECT * FROM {schema(shared)}.records ORDER BY seq"
    before = raw(named, everything)
    with pytest.raises(psycopg.Error, match=r"appended|changed|check constraint"):
        raw(named, statement.format(schema(shared)))
    assert raw(named, everything) == before


@pytest.mark.parametrize(
    ("role", "statement", "allowed"),
    [
        ("append", "SELECT count(*) FROM {0}.records", True),
        ("append", "DELETE FROM {0}.records", False),
        ("append", "UPDATE {0}.records SET entry = entry", False),
        ("append", "TRUNCATE {0}.seals", False),
        ("append", "ALTER TABLE {0}.records DISABLE TRIGGER ALL", False),
        ("append", "DROP TABLE {0}.records", False),
        ("append", "CREATE TABLE {0}.more (n int)", False),
        ("read", "SELECT count(*) FROM {0}.seals", True),
        ("read", "INSERT INTO {0}.seals VALUES (9, '\\x00')", False),
    ],
)
def test_roles_may_append_or_read_and_nothing_else(named, shared, role, statement, allowed):
    """Who was granted a role can do what its name says; the server refuses the rest before any trigger."""
    name = schema(shared)
    as_role = f"SET ROLE {name}_{role}"
    if allowed:
        raw(named, as_role, statement.format(name))
    else:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw(named, as_role, statement.format(name))


def test_user_who_may_append_appends_and_one_who_may_read_reads(named, server, shared, monkeypatch):
    """A login with the append role works through the book; one with the read role verifies and is refused to append."""
    name = schema(shared)
    for role in ("append", "read"):
        raw(named, f"CREATE ROLE {name}_u{role} LOGIN IN ROLE {name}_{role}")
    try:
        monkeypatch.setenv(VARIABLE, server.url(f"{name}_uappend"))
        with Ledger.open(shared, key=key("writer"), clock=lambda: clock_at(9999)) as ledger:
            ledger.append("note.added", NoteAdded(text="two"))
            ledger.seal()
        monkeypatch.setenv(VARIABLE, server.url(f"{name}_uread"))
        assert verify(shared, Options(workers=1)).verdict == "verified"
        assert refusal(Ledger.open, shared, key=key("writer")).code == "LEDGER_READ_ONLY"
    finally:
        raw(named, f"DROP ROLE {name}_uappend, {name}_uread")


CHANGED = {
    "a guard dropped": ("DROP TRIGGER records_append ON {0}.records", None),
    "a guard switched off": ("ALTER TABLE {0}.records DISABLE TRIGGER ALL", None),
    "a guard that does nothing": (
        "CREATE OR REPLACE FUNCTION {0}.unchanging() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;END'",
        None,
    ),
    "a view for a table": (
        "ALTER TABLE {0}.records RENAME TO hidden; CREATE VIEW {0}.records AS SELECT * FROM {0}.hidden WHERE seq < 2",
        "LEDGER_SCHEMA",
    ),
    "a row policy": ("ALTER TABLE {0}.records ENABLE ROW LEVEL SECURITY", "LEDGER_SCHEMA"),
    "a rule": ("CREATE RULE r AS ON INSERT TO {0}.seals DO INSTEAD NOTHING", "LEDGER_SCHEMA"),
    "a child table": ("CREATE TABLE {0}.child () INHERITS ({0}.records)", "LEDGER_SCHEMA"),
    "another column": ("ALTER TABLE {0}.records ADD COLUMN more text", "LEDGER_SCHEMA"),
    "another table": ("CREATE TABLE {0}.more (n int)", "LEDGER_SCHEMA"),
    "another type": (
        "ALTER TABLE {0}.records DROP COLUMN prev; ALTER TABLE {0}.records ADD COLUMN prev text",
        "LEDGER_SCHEMA",
    ),
    "a trigger of its own": (
        "CREATE TRIGGER mine BEFORE INSERT ON {0}.seals FOR EACH ROW EXECUTE FUNCTION {0}.unchanging()",
        "LEDGER_SCHEMA",
    ),
    "unlogged": ("ALTER TABLE {0}.seals SET UNLOGGED", "LEDGER_SCHEMA"),
    "another format": ("UPDATE {0}.about SET format = 2", "FORMAT_UNKNOWN"),
    "none of ours": ("UPDATE {0}.about SET application = 'shop'", "LEDGER_UNREADABLE"),
    "no schema": ("ALTER SCHEMA {0} RENAME TO elsewhere", "LEDGER_NOT_FOUND"),
}


@pytest.mark.parametrize(("statements", "code"), CHANGED.values(), ids=CHANGED.keys())
def test_schema_that_is_not_as_made_is_told(named, shared, statements, code):
    """What hides rows or is laid out in another way is refused; a guard that is gone stops writers, readers are told."""
    name = schema(shared)
    raw(named, *statements.format(name).split("; "))
    try:
        assert refusal(open_writer, shared).code == (code or "LEDGER_SCHEMA")
        if code is None:
            store = open_reader(shared)
            assert store.deviations
            store.close()
            assert "TRIGGER_MISSING" in [item.code for item in verify(shared).warnings]
        else:
            assert refusal(open_reader, shared).code == code
    finally:
        raw(named, "DROP SCHEMA IF EXISTS elsewhere CASCADE")


ALTERED = {
    "entry": (
        "UPDATE {0}.records SET entry = entry || '\\x20'::bytea WHERE seq = 2",
        "NOT_CANONICAL",
    ),
    "signature": ("UPDATE {0}.records SET signature = id || id WHERE seq = 2", "SIGNATURE_INVALID"),
    "tail cut": ("DELETE FROM {0}.records WHERE seq >= 2", "TAIL_CUT"),
    "middle gone": ("DELETE FROM {0}.records WHERE seq = 1", "SEQ_GAP"),
    "all gone": ("DELETE FROM {0}.records", "LEDGER_EMPTY"),
}


@pytest.mark.parametrize(("statement", "code"), ALTERED.values(), ids=ALTERED.keys())
def test_rows_that_the_owner_altered_are_found(named, shared, statement, code):
    """Whoever owns the database can switch the guards off and change rows; no report calls that verified."""
    name = schema(shared)
    guards = ("records_append", "records_unchanging")
    on = [f"ALTER TABLE {name}.records ENABLE ALWAYS TRIGGER {guard}" for guard in guards]
    off = f"ALTER TABLE {name}.records DISABLE TRIGGER USER"
    raw(named, off, statement.format(name), *on)
    report = verify(shared, Options(workers=1))
    assert report.verdict != "verified"
    assert [item.code for item in (*report.wrong, *report.missing)][:1] == [code]


def test_folder_alone_makes_nobody_dial_a_host(named, shared, monkeypatch):
    """A stranger's folder names a server: it is not contacted until the user names the same one."""
    monkeypatch.delenv(VARIABLE)
    assert refusal(open_reader, shared).code == "STORE_NOT_NAMED"
    monkeypatch.setenv(VARIABLE, "postgresql://keeper@127.0.0.1:1/postgres")
    error = refusal(Ledger.read, shared)
    assert (error.code, error.actual) == ("STORE_NOT_NAMED", "postgresql://127.0.0.1:1/postgres")
    assert verify(shared).verdict == "incomplete"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("postgresql://a:secret@h/d", "password"),
        ("postgresql://h", "database"),
        ("postgresql:///d", "host"),
        ("postgresql://h:port/d", "read"),
        ("postgresql://h/d?sslmode=disable", "folder"),
        ("postgresql://h/d?folder=a&folder=b", "folder"),
        ("postgresql://h/d/e", "database"),
    ],
)
def test_address_that_is_none_is_refused_without_repeating_it(text, word):
    """A wrong address gives one error that says what is wrong and repeats neither address nor password."""
    error = refusal(parse, text)
    assert error.code == "STORE_ADDRESS"
    assert word in error.message
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"host":"h","port":1,"database":"d","schema":"public"}',
        b"[" * 5000,
    ],
)
def test_pointer_that_is_none_of_ours_is_refused(folder, data):
    """A file in a folder that does not say where a store lies gives one error, and nothing is dialled."""
    folder.mkdir()
    (folder / POINTER).write_bytes(data)
    assert refusal(Ledger.read, folder).code == "LEDGER_UNREADABLE"


def test_folder_with_two_stores_is_refused(named, shared):
    """A folder that has a file of records and names a server says two things: neither is read."""
    (shared / DATABASE).write_bytes(b"")
    assert refusal(Ledger.read, shared).code == "LEDGER_SCHEMA"


def test_server_that_may_lose_what_it_acknowledged_is_refused(server, named, shared):
    """With fsync off an acknowledged record could be lost: nobody may append there."""
    raw(named, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        for _ in range(100):
            if raw(named, "SHOW fsync") == [("off",)]:
                break
        assert refusal(open_writer, shared).code == "STORE_UNSAFE"
        open_reader(shared).close()
    finally:
        raw(named, "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_busy_store_is_told_after_the_wait(named, shared):
    """While another process holds the lock, a writer waits as long as it was told, and then says so."""
    with psycopg.connect(named) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [schema(shared)])
        with Ledger.open(shared, key=key("writer"), busy_timeout_ms=200) as ledger:
            error = refusal(ledger.append, "note.added", NoteAdded(text="x"))
    assert (type(error), error.code) == (UsageError, "LEDGER_BUSY")


def test_threads_and_openings_at_once_make_one_chain(named, shared):
    """Four openings append at once: every acknowledged record is there, once, in one chain."""
    made: list[str] = []

    def work(number: int) -> None:
        with Ledger.open(shared, key=key("writer")) as ledger:
            made.extend(
                ledger.append("note.added", NoteAdded(text=f"{number}/{n}")).id for n in range(10)
            )

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Ledger.read(shared) as ledger:
        ids = [record.id for record in ledger.records()]
    assert len(made) == 40
    assert set(made) <= set(ids)
    assert verify(shared, Options(workers=1)).verdict == "verified"


def test_server_killed_under_a_writer_loses_nothing_acknowledged(server, named, shared):
    """The server is killed and started again: what was acknowledged is there, and the same writer goes on."""
    with Ledger.open(shared, key=key("writer")) as ledger:
        kept = [ledger.append("note.added", NoteAdded(text=str(n))).id for n in range(5)]
        server.kill()
        server.start()
        kept.append(ledger.append("note.added", NoteAdded(text="after")).id)
    with Ledger.read(shared) as ledger:
        assert [record.id for record in ledger.records()][-6:] == kept
    assert verify(shared, Options(workers=1)).verdict == "verified"


def test_server_that_is_gone_is_named_and_nothing_is_half_written(server, named, shared):
    """While the server is down reading and appending say so in one error; afterwards the ledger is whole."""
    with Ledger.open(shared, key=key("writer"), busy_timeout_ms=300) as ledger:
        server.kill()
        error = refusal(ledger.append, "note.added", NoteAdded(text="lost"))
        assert error.code in ("STORE_UNREACHABLE", "LEDGER_UNREADABLE")
        assert refusal(Ledger.read, shared).code == "STORE_UNREACHABLE"
        server.start()
    with Ledger.read(shared) as ledger:
        assert all(record.body.get("text") != "lost" for record in ledger.records())
    assert verify(shared, Options(workers=1)).verdict == "verified"


def test_questions_are_asked_of_the_server_s_records(named, shared):
    """A query sees the same records, and says of which size and root."""
    answer = ask(shared, "SELECT count(*) FROM records")
    with Ledger.read(shared) as ledger:
        size, root, _ = ledger.head()
    assert answer.rows == [[size]]
    assert (answer.as_of.size, answer.as_of.root) == (size, root.hex())


def test_segments_are_made_of_the_server_s_records(named, shared, tmp_path):
    """History is sealed from the server, and questions and lineage give from it what they give without."""
    with Ledger.open(shared, key=key("writer")) as ledger:
        for number in range(20):
            ledger.append("note.added", NoteAdded(text=f"note {number}"))
    history = History(tmp_path / "cache", 16)
    built = seal(shared, history)
    assert built["sealed"] > 16
    with Ledger.open(shared, key=key("writer")) as ledger:
        first, last = ledger.at(0), ledger.append("note.added", NoteAdded(text="new"))
        assert first is not None
        ledger.append("note.added", NoteAdded(text="about both"), {"about": [first.id, last.id]})
    sql = "SELECT seq, id, target_seq FROM records LEFT JOIN edges USING (seq, id) ORDER BY ALL"
    plain, sealed = ask(shared, sql), ask(shared, sql, history=history)
    assert (sealed.rows, sealed.as_of) == (plain.rows, plain.as_of)
    with Ledger.read(shared) as ledger:
        found, walked = folded(ledger, first, history, "impact"), walk(ledger, first, "impact")
        assert found is not None
        assert list(found.nodes) == list(fold(walked).nodes)
        assert len(found.nodes) > 1


def test_creation_that_fails_leaves_nothing_on_the_server(named, folder):
    """A ledger that could not be begun leaves no schema, no role and an empty folder."""
    before = raw(named, "SELECT nspname FROM pg_namespace ORDER BY 1")
    with pytest.raises((UsageError, EvidenceError)):
        Ledger.create(
            folder,
            origin=ORIGIN,
            root_key=key("root"),
            writer_key=key("writer"),
            writer_roles=["emperor"],
            nonce=NONCE,
            address=parse(named),
        )
    assert raw(named, "SELECT nspname FROM pg_namespace ORDER BY 1") == before
    assert raw(named, f"SELECT 1 FROM pg_roles WHERE rolname LIKE 'evidence_{NONCE[:8]}%'") == []
    assert list(folder.iterdir()) == []


def test_command_line_takes_an_address_for_a_ledger(server, tmp_path):
    """`init`, `note add`, `query` and `verify` work with --ledger postgresql://…?folder=DIR, in processes of their own."""
    place = tmp_path / "shared"
    environment = {
        **{name: value for name, value in os.environ.items() if name != VARIABLE},
        "HOME": str(tmp_path / "home"),
        "EVIDENCE_KEY_PASSPHRASE": "a long passphrase",
        "EVIDENCE_LEDGER": server.url(folder=place),
        "PYTHONPATH": str(ROOT),
    }

    def evidence(*words: str) -> dict:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "runners.cli.main", "--json", *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict = json.loads(done.stdout)["result"]
        return found

    evidence("init", "--origin", "example.com/shared")
    evidence("note", "@0", "seen by two machines")
    evidence("seal")
    assert evidence("verify")["verdict"] == "verified"
    assert evidence("query", "SELECT count(*) AS n FROM records")["rows"] == [[5]]
    assert not (place / DATABASE).exists()
    forget(server.url(), place)
