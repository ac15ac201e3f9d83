"""A database made to answer otherwise when it is asked otherwise: indexes, triggers and statistics nobody sees by name."""

from __future__ import annotations

import hashlib
import shutil

import pytest
from pysqlite3 import dbapi2 as sqlite
from world import World, key

from ledger.book import DATABASE, INDEX, Ledger
from ledger.errors import EvidenceError
from ledger.records.identity import NoteAdded
from ledger.store.connection import QUERIES, expected_objects
from ledger.store.sqlite import SqliteStore
from verifiers.verify import Options, verify

NOTES = 12


@pytest.fixture
def state(tmp_path):
    """Where the high-water file lies."""
    return tmp_path / "state"


@pytest.fixture
def written(folder, state):
    """A ledger of some notes, and its high-water file."""
    world = World()
    for _ in range(NOTES):
        world.add("note.added")
    world.replay(folder).close()
    with Ledger.open(folder, key=key("writer"), state_dir=state) as ledger:
        ledger.append("note.added", NoteAdded(text="last"))
    return folder


def hidden_index(folder, place: str, change: str, *values, name: str = "sqlite_zz") -> None:
    """A covering index with other rows than the table, under a name of SQLite's own, only over a place.

    Args:
        folder: the ledger's.
        place: the condition under which the index answers.
        change: what its rows are to hold, as an UPDATE that is undone in the table.
        values: of the statement.
        name: what the index is called in the end.
    """
    guards = [
        text for (kind, _), text in expected_objects("schema.sql").items() if kind == "trigger"
    ]
    path = folder / DATABASE
    kept = folder.parent / "kept.sqlite"
    shutil.copy(path, kept)
    db = sqlite.connect(str(path), isolation_level=None)
    for kind, guard in expected_objects("schema.sql"):
        if kind == "trigger":
            db.execute(f"DROP TRIGGER {guard}")
    db.execute(change, values)
    text = f"ON records(seq, id, signature, entry) WHERE {place}"
    db.execute(f"CREATE INDEX zz {text}")
    db.execute("PRAGMA writable_schema = ON")
    root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'zz'").fetchone()[0]
    db.execute("DELETE FROM sqlite_master WHERE name = 'zz'")
    db.close()
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("ATTACH ? AS kept", (str(kept),))
    db.execute(
        "UPDATE records SET (id, signature, entry) ="
        " (SELECT id, signature, entry FROM kept.records WHERE seq = main.records.seq)"
    )
    for guard in guards:
        db.execute(guard)
    db.execute("PRAGMA writable_schema = ON")
    db.execute(
        "INSERT INTO sqlite_master VALUES ('index', ?, 'records', ?, ?)",
        (name, root, f"CREATE INDEX {name} {text}"),
    )
    db.execute("PRAGMA writable_schema = RESET")
    db.close()


def two_faced(folder, seq: int) -> None:
    """Another record at a seq, for whoever asks for that one alone."""
    db = sqlite.connect(str(folder / DATABASE))
    signature, entry = db.execute(
        "SELECT signature, entry FROM records WHERE seq = ?", (seq,)
    ).fetchone()
    db.close()
    other = entry.replace(b"seen", b"SEEN")
    assert other != entry
    raw_id = hashlib.sha256(b"\0" + signature + other).digest()
    hidden_index(
        folder,
        f"seq >= {seq} AND seq <= {seq}",
        f"UPDATE records SET id = ?, entry = ? WHERE seq = {seq}",
        raw_id,
        other,
    )


def a_note(folder) -> int:
    """The seq of a note that says `seen`."""
    with Ledger.read(folder) as ledger:
        return next(
            item.seq for item in ledger.of_kind("note.added") if item.body["text"] == "seen"
        )


def test_attack_is_real(written):
    """The same question without a word about indexes is answered by the hidden one: what is refused below would work."""
    seq = a_note(written)
    two_faced(written, seq)
    db = sqlite.connect(str(written / DATABASE))
    asked = QUERIES["rows"].replace(" NOT INDEXED", "")
    alone = db.execute(asked, (seq, seq)).fetchone()
    among = db.execute(asked, (0, 2**62)).fetchall()[seq]
    db.close()
    assert b"SEEN" in alone[3]
    assert b"SEEN" not in among[3]


@pytest.mark.parametrize("level", ["records", "blobs"])
def test_index_under_a_name_of_sqlite_s_own_is_refused(written, state, level):
    """Verifier, reader and writer refuse a database that has an index nobody made for it, whatever its name."""
    two_faced(written, a_note(written))
    (written / INDEX).unlink()
    report = verify(written, Options(workers=1, level=level, state_dir=state))
    assert [item.code for item in report.wrong] == ["LEDGER_SCHEMA"]
    for opened in (Ledger.read, lambda path: Ledger.open(path, key=key("writer"), state_dir=state)):
        with pytest.raises(EvidenceError) as caught:
            opened(written)
        assert caught.value.code == "LEDGER_SCHEMA"


@pytest.mark.parametrize(
    "row",
    [
        (
            "TRIGGER",
            "sqlite_t",
            "CREATE TRIGGER sqlite_t BEFORE INSERT ON records WHEN NEW.seq >= 8 BEGIN SELECT RAISE(IGNORE); END",
        ),
        (
            "trigger",
            "sqlite_t",
            "CREATE TRIGGER sqlite_t BEFORE INSERT ON seals BEGIN SELECT RAISE(IGNORE); END",
        ),
    ],
)
def test_trigger_under_another_spelling_is_refused(written, row):
    """A trigger that drops rows is refused, whatever its kind is spelt like and whatever its name."""
    db = sqlite.connect(str(written / DATABASE), isolation_level=None)
    db.execute("PRAGMA writable_schema = ON")
    kind, name, text = row
    db.execute("INSERT INTO sqlite_master VALUES (?, ?, 'records', 0, ?)", (kind, name, text))
    db.close()
    with pytest.raises(EvidenceError) as caught:
        SqliteStore.open_writer(written / DATABASE)
    assert caught.value.code in (
        "LEDGER_SCHEMA",
        "LEDGER_UNREADABLE",
    )  # the library itself refuses a reserved name
    assert verify(written, Options(workers=1)).verdict == "wrong"


def test_statistics_are_refused(written):
    """Statistics would steer by which way a question is answered: a ledger has none."""
    db = sqlite.connect(str(written / DATABASE), isolation_level=None)
    db.execute("ANALYZE")
    db.close()
    assert [item.code for item in verify(written, Options(workers=1)).wrong] == ["LEDGER_SCHEMA"]


class TwoFaced:
    """A store whose answer for one row alone differs, however that is brought about."""

    def __init__(self, monkeypatch, seq: int, old: bytes, new: bytes) -> None:
        rows = SqliteStore.rows

        def answer(store, start=0, stop=None):
            for row in rows(store, start, stop):
                narrow = stop is not None and stop - start <= NOTES * 4
                lied = narrow and row[0] == seq
                yield (*row[:3], row[3].replace(old, new)) if lied else row

        monkeypatch.setattr(SqliteStore, "rows", answer)


def test_record_that_is_another_when_asked_again_is_not_derived_from(written, monkeypatch):
    """A pass that reads records again takes only those that passed: another record at a seq is named."""
    TwoFaced(monkeypatch, a_note(written), b"seen", b"SEEN")
    report = verify(written, Options(workers=1, level="blobs"))
    assert report.verdict == "wrong"
    assert any("when asked again" in item.message for item in report.wrong)


def test_named_record_is_the_one_that_passed(written, monkeypatch):
    """`verify @N` says nothing of a record that did not pass."""
    seq = a_note(written)
    TwoFaced(monkeypatch, seq, b"seen", b"SEEN")
    report = verify(written, Options(workers=1, record=f"@{seq}"))
    assert report.verdict == "wrong"
    assert report.scope is None


def test_record_0_that_is_another_when_asked_alone_is_named(written, state, monkeypatch):
    """The high-water file is found by record 0: where the store gives two of them, neither reader nor writer goes on."""
    TwoFaced(monkeypatch, 0, b"2026", b"2025")
    assert verify(written, Options(workers=1, state_dir=state)).verdict == "wrong"
    with pytest.raises(EvidenceError):
        Ledger.open(written, key=key("writer"), state_dir=state).append(
            "note.added", NoteAdded(text="x")
        )


def test_store_that_drops_a_record_acknowledges_nothing(written, monkeypatch):
    """An append whose rows did not come to stand is refused, and the next one goes on from what is there."""
    append = SqliteStore.append
    with Ledger.open(written, key=key("writer")) as ledger:
        size = ledger.size
        monkeypatch.setattr(SqliteStore, "append", lambda _store, _rows: None)
        with pytest.raises(EvidenceError) as caught:
            ledger.append("note.added", NoteAdded(text="dropped"))
        assert caught.value.code == "LEDGER_UNREADABLE"
        monkeypatch.setattr(SqliteStore, "append", append)
        assert ledger.append("note.added", NoteAdded(text="kept")).seq == size


def test_blob_of_another_size_is_not_hashed(written):
    """A hole of a terabyte in place of a blob is told by its size at once."""
    with Ledger.read(written) as ledger:
        digest = ledger.blobs.put(b"small", "text/plain").digest
        path = ledger.blobs.path(digest)
        path.chmod(0o600)
        with path.open("r+b") as stream:
            stream.truncate(1 << 40)
        with pytest.raises(EvidenceError) as caught:
            ledger.blobs.check(digest, 5)
    assert (caught.value.code, caught.value.actual) == ("BLOB_WRONG", str(1 << 40))
