"""`evidence init` killed by signal 9 at every point: what is left is begun again, and nothing else ever is."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import beginnings
from ledger.book import DATABASE, INDEX
from ledger.store.sqlite import SqliteStore

ORIGIN = "example.com/begun"
KILLED = """
import os, signal, sys
from ledger import book
from ledger.store import sqlite
from runners.cli.main import main

def die(*_args, **_named):
    os.kill(os.getpid(), signal.SIGKILL)

place, name = {place}
setattr(place, name, die)
sys.exit(main(["init", *sys.argv[1:]]))
"""
POINTS = {
    "before the database": "book.Ledger, 'create'",
    "an empty database": "sqlite, 'set_pragmas'",
    "a database without tables": "sqlite, 'sql'",
    "a database without records": "sqlite.SqliteStore, '_check_schema'",
    "before record 0": "book.Ledger, '_begin'",
    "before record 0 is durable": "sqlite.SqliteStore, 'append'",
    "record 0 alone": "book.Ledger, 'append_stated'",
}


def killed_init(folder: Path, place: str) -> None:
    """An init that is killed at a point."""
    script = KILLED.replace("{place}", place)
    command = [sys.executable, "-c", script, str(folder), "--origin", ORIGIN]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", POINTS)
def test_a_beginning_that_was_cut_short_is_begun_again(cli, tmp_path, point):
    """The same command once more gives a whole ledger with keys that fit; the first one's keys are left alone."""
    folder = tmp_path / "l"
    killed_init(folder, POINTS[point])
    before = cli.key_files()
    assert len(before) == 2
    cli.ledger = folder
    called = cli("init", folder, "--origin", ORIGIN)
    assert called.code == 0, called.err
    assert ("cut short" in called.err) == (point != "before the database")
    assert set(before) < set(cli.key_files())
    assert cli.json("note", "@0", "goes on").code == 0
    assert cli.json("verify", "--workers", 1).result["verdict"] == "verified"
    assert cli.json("log").result["size"] == 4


def test_a_ledger_that_was_begun_is_not_begun_again(cli, tmp_path):
    """Killed after its writer was enrolled it is whole: a second init refuses, and it can be written."""
    folder = tmp_path / "l"
    killed_init(folder, "book.Ledger, 'seal'")
    assert cli.json("init", folder, "--origin", ORIGIN).error["code"] == "LEDGER_EXISTS"
    cli.ledger = folder
    assert cli.json("seal").result["size"] == 3


def cut_to_record_0(folder: Path) -> None:
    """Cut everything but record 0 out of a ledger's database, its seals too, and take its other files away."""
    db = sqlite3.connect(folder / DATABASE)
    guards = [
        name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    ]
    texts = [text for (text,) in db.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
    db.executescript("".join(f"DROP TRIGGER {name};" for name in guards))
    db.executescript("DELETE FROM seals; DELETE FROM records WHERE seq > 0;")
    db.executescript(";".join(texts) + ";")
    db.close()
    shutil.rmtree(folder / "blobs")


def test_a_ledger_that_was_cut_to_record_0_is_no_beginning(made):
    """It looks like one; the high-water file knows that there was more."""
    cut_to_record_0(made.ledger)
    before = (made.ledger / DATABASE).read_bytes()
    assert made.json("init", made.ledger, "--origin", ORIGIN).error["code"] == "LEDGER_EXISTS"
    assert (made.ledger / DATABASE).read_bytes() == before
    shutil.rmtree(made.home / "state")
    assert made.json("init", made.ledger, "--origin", ORIGIN).code == 0


def foreign_database(folder):
    """Another program's database under our name."""
    db = sqlite3.connect(folder / DATABASE)
    db.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (1);")
    db.close()


def foreign_empty_database(folder):
    """Another program's database without tables, marked as its own."""
    db = sqlite3.connect(folder / DATABASE)
    db.executescript("PRAGMA application_id = 77; CREATE TABLE x (y); DROP TABLE x;")
    db.close()


NOT_OURS = {
    "a file of somebody's": lambda folder: (folder / "notes.txt").write_text("mine"),
    "a folder beside the database": lambda folder: (folder / "blobs").mkdir(),
    "another program's database": foreign_database,
    "another program's empty database": foreign_empty_database,
    "no database at all": lambda folder: (folder / DATABASE).write_bytes(b"x" * 5000),
    "a log without its database": lambda folder: (folder / f"{DATABASE}-wal").write_bytes(b""),
    "a link": lambda folder: (folder / DATABASE).symlink_to(folder.parent / "elsewhere"),
    "a folder of the name": lambda folder: (folder / DATABASE).mkdir(),
    "a pipe": lambda folder: os.mkfifo(folder / INDEX),
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_what_is_not_provably_such_a_beginning_is_left(cli, tmp_path, name):
    """Anything else in the folder refuses, no key is made, and nothing is removed."""
    folder = tmp_path / "l"
    folder.mkdir()
    NOT_OURS[name](folder)
    before = sorted(folder.iterdir())
    called = cli.json("init", folder, "--origin", ORIGIN)
    assert (called.code, called.error["code"]) == (2, "LEDGER_EXISTS")
    assert sorted(folder.iterdir()) == before
    assert cli.key_files() == []


def test_an_index_without_its_database_is_taken_over(tmp_path):
    """It is derived from records, and there are none."""
    (tmp_path / INDEX).write_bytes(b"whatever")
    assert beginnings.is_free(tmp_path, None)


def test_two_beginnings_at_once_do_not_take_one_another_over(cli, tmp_path):
    """While one holds the folder the other is refused, so neither removes what the other writes."""
    folder = tmp_path / "l"
    folder.mkdir()
    SqliteStore.create(folder / DATABASE).close()
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        called = cli.json("init", folder, "--origin", ORIGIN)
        assert (called.code, called.error["code"]) == (2, "LEDGER_BUSY")
        assert (folder / DATABASE).exists()
    finally:
        os.close(handle)
    assert cli.json("init", folder, "--origin", ORIGIN).code == 0
