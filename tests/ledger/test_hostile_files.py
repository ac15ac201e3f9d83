"""Files that are made to harm: links, pipes, odd names and depths in the places that the record book reads and writes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pysqlite3 import dbapi2 as sqlite
from world import World, key

from ledger import canonical, digests, highwater, record
from ledger.blobs import TEXT, BlobStore
from ledger.book import DATABASE, Ledger
from ledger.digests import sha256
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, UsageError
from ledger.highwater import HighWater
from ledger.pkcs8 import rounds
from ledger.state import State
from ledger.store.index import Index
from ledger.store.sqlite import SqliteStore

LEDGER = sha256(b"record 0")


def opened(path) -> str:
    """How opening a database to read ends."""
    try:
        store = SqliteStore.open_reader(path)
    except EvidenceError as error:
        return error.code
    store.close()
    return "a guard is gone" if store.deviations else "as made"


def code_of(call, *arguments) -> str:
    """The code with which bytes are refused."""
    with pytest.raises(EvidenceError) as caught:
        call(*arguments)
    return caught.value.code


@pytest.mark.parametrize("name", ["blobs", "blobs/sha256", "blobs/sha256/{}"])
def test_nothing_is_written_through_a_folder_of_blobs_that_is_a_link(tmp_path, name):
    """A link on the way to a blob is refused before a byte is written behind it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    blobs = BlobStore(tmp_path / "blobs")
    link = tmp_path / name.format(sha256(b"abc")[7:9])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    assert code_of(blobs.put, b"abc", TEXT) == "UNSAFE_PATH"
    assert list(outside.rglob("*")) == []


def test_a_changed_blob_is_named_by_its_path(tmp_path):
    """Who finds other bytes is told where they lie, below the ledger folder."""
    blobs = BlobStore(tmp_path / "blobs")
    digest = blobs.put(b"abc", TEXT).digest
    blobs.path(digest).chmod(0o600)
    blobs.path(digest).write_bytes(b"abd")
    for call in (blobs.read, blobs.check):
        with pytest.raises(EvidenceError) as caught:
            call(digest)
        assert caught.value.field == f"blobs/sha256/{digest[7:9]}/{digest[9:]}"


def test_reading_reserves_no_more_than_there_is(tmp_path):
    """A blob of three bytes is read within any limit that the caller allows, however large."""
    blobs = BlobStore(tmp_path / "blobs")
    assert blobs.read(blobs.put(b"abc", TEXT).digest, max_bytes=1 << 46) == b"abc"


def test_a_file_that_fails_or_never_ends_leaves_nothing(tmp_path):
    """A read that fails half-way, or that goes beyond the limit, takes its temporary file with it."""
    blobs = BlobStore(tmp_path / "blobs")
    (tmp_path / "long").write_bytes(b"x" * 11)
    for path, code in ((Path("/proc/self/mem"), "OS_REFUSED"), (tmp_path / "long", "TOO_LARGE")):
        with pytest.raises(UsageError) as caught:
            blobs.put_file(path, TEXT, max_bytes=10)
        assert caught.value.code == code
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_folders_without_end_are_refused(tmp_path):
    """Folders in folders beyond the limit are refused, not walked until the stack is full."""
    inner = tmp_path
    for _ in range(digests.MAX_FOLDER_DEPTH + 1):
        inner /= "d"
        inner.mkdir()
    assert code_of(digests.inventory, tmp_path) == "UNSAFE_PATH"
    assert digests.inventory(tmp_path / "d") == []


def test_a_name_that_is_no_text_is_refused(tmp_path):
    """A file name of other bytes than UTF-8 has no digest."""
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"x")
    assert code_of(digests.inventory, tmp_path) == "UNSAFE_PATH"


@pytest.mark.parametrize("name", ["a\nb", "what?mode=rw", "50%00", "\udcff\udcfe", "#x", "\u202e"])
def test_a_ledger_folder_may_have_any_name(tmp_path, name):
    """Whatever bytes a folder's name has, the ledger in it is read, and the database beside it is not touched."""
    folder = World(staffed=False).write(tmp_path / "plain")
    folder.rename(tmp_path / name)
    with Ledger.read(tmp_path / name) as ledger:
        assert ledger.size == 2
    assert {path.name for path in tmp_path.iterdir()} == {name}


@pytest.mark.parametrize(
    "change",
    [
        "type = x'ff'",
        "name = x'ff00'",
        "name = 7",
        "sql = x'ff'",
        "sql = 'CREATE TRIGGER \xff'",
        "rootpage = -1",
    ],
)
def test_a_schema_table_of_other_types_is_refused(tmp_path, change):
    """Whatever stands in SQLite's own table, a reader ends with an error of ours or without the guard."""
    path = World(staffed=False).write(tmp_path / "ledger") / DATABASE
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("PRAGMA writable_schema = ON")
    db.execute(f"UPDATE sqlite_master SET {change} WHERE name = 'records_append'")
    db.close()
    assert opened(path) in {"LEDGER_UNREADABLE", "LEDGER_SCHEMA", "a guard is gone"}


def test_an_index_with_text_that_is_none_is_done_without(tmp_path):
    """Bytes that are no UTF-8 where the index keeps a role hide an edge and raise nothing."""
    path = tmp_path / "index.sqlite"
    index = Index(path)
    for item in World(staffed=False).records:
        index.add(item, [])
    index.close()
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("INSERT INTO edges VALUES (0, 1, CAST(x'ff' AS TEXT))")
    db.close()
    again = Index(path, writable=False)
    assert ("\ufffd", 1) in again.referrers(0)
    again.close()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/full")])
def test_a_pipe_or_link_in_the_temporary_files_place_is_put_aside(tmp_path, make):
    """The high-water file is written although something waits where its temporary file goes."""
    mark = HighWater(LEDGER, 1, bytes(32), LEDGER)
    make(highwater.path_of(tmp_path, LEDGER).with_suffix(".tmp"))
    highwater.write(tmp_path, mark)
    assert highwater.read(tmp_path, LEDGER) == mark


def test_closing_without_a_place_for_the_high_water_file_is_a_warning(tmp_path):
    """What was appended stays appended: that the mark lags is told, and the files are closed."""
    World(staffed=False).replay(tmp_path / "ledger").close()
    state = tmp_path / "state"
    ledger = Ledger.open(tmp_path / "ledger", key=key("writer"), state_dir=state)
    made = ledger.append("note.added", {"text": "kept", "tags": []})
    shutil.rmtree(state)
    state.write_text("a file where the folder should be")
    ledger.close()
    assert ("HIGHWATER_LAGS", made.seq) in ledger.warnings


@pytest.mark.parametrize(
    "value",
    [[[[[[]]]]] * 9, 16**5000, "x" * 10**6, {"a": {"b": {"c": {"d": 1}}}}],
    ids=["lists", "digits", "text", "objects"],
)
def test_a_value_of_any_size_is_shown_in_a_few_words(value):
    """The error of a wrong field quotes the value briefly, however deep, large or long it is."""
    deep = value
    for _ in range(5000):
        deep = [deep]
    for wrong in (value, deep):
        with pytest.raises(EvidenceError) as caught:
            record.check_body("note.added", 1, {"text": wrong, "tags": []})
        assert caught.value.code == "BODY_INVALID"
        assert len(caught.value.actual) <= 120


def test_a_state_with_other_fields_is_no_state():
    """A snapshot's bytes are exactly those of the state read from them: no field more, none left out."""
    plain = canonical.decode(State(origin="a").to_bytes())
    less = {name: value for name, value in plain.items() if name != "runs"}
    for other in ({**plain, "more": 1}, less):
        assert code_of(State.from_bytes, canonical.encode(other)) == "SNAPSHOT_WRONG"


def test_the_rounds_of_our_own_key_files_are_read(tmp_path):
    """A key that this program locks says its rounds, and opens."""
    path = tmp_path / "key.pem"
    key("writer").save(path, b"words")
    assert rounds(path.read_bytes()) >= 2048
    assert PrivateKey.load(path, b"words").id == key("writer").id


@pytest.mark.parametrize("cut", range(0, 300, 7))
def test_rounds_of_a_cut_file_are_unknown(tmp_path, cut):
    """A key file cut anywhere gives its rounds or None, and raises nothing."""
    path = tmp_path / "key.pem"
    key("writer").save(path, b"words")
    assert rounds(path.read_bytes()[:cut]) in {None, rounds(path.read_bytes())}
