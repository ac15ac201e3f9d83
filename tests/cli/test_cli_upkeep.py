"""`evidence backup` and `evidence gc`, as a user calls them, also while others append."""

from __future__ import annotations

import os
import shutil
import threading
import time

import bundle_world
import pytest
from world import key

from ledger.book import Ledger
from verifiers.verify import Options, verify


def test_a_backup_put_back_is_noticed_and_goes_on_by_roots_word(made, tmp_path):
    """A backup verifies, is older than this machine's mark once it is put back, and is restored."""
    back = tmp_path / "back"
    told = made.json("backup", back).result
    assert told["size"] == 3
    assert verify(back, Options(level="blobs")).verdict == "verified"
    made("note", "@0", "after the backup")
    shutil.rmtree(made.ledger)
    shutil.copytree(back, made.ledger)
    assert made.json("note", "@0", "x").error["code"] == "LEDGER_ROLLED_BACK"
    assert made("restore", "--why", "the disk failed").code == 0
    assert made("note", "@0", "x").code == 0


def test_backups_are_taken_while_others_append(cli, tmp_path):
    """A thread appends and writes blobs all the while; every backup and bundle is a verified prefix."""
    cli.ledger = bundle_world.sealed(tmp_path / "ledger")
    stop = threading.Event()

    def write():
        with Ledger.open(cli.ledger, key=key("writer")) as ledger:
            while not stop.is_set():
                ledger.append("note.added", {"text": f"at {ledger.size}"})
                ledger.seal()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        sizes = [
            cli.json("backup", tmp_path / f"back-{number}").result["size"] for number in range(3)
        ]
        told = cli.json("export", "bundle", tmp_path / "x.tar").result
    finally:
        stop.set()
        thread.join()
    assert sizes == sorted(sizes)
    assert told["records"] >= sizes[-1]
    with Ledger.read(cli.ledger) as ledger:
        assert ledger.size > sizes[0]
        for number, size in enumerate(sizes):
            with Ledger.read(tmp_path / f"back-{number}") as copy:
                assert copy.at(size - 1).id == ledger.at(size - 1).id
    cli.ledger = tmp_path / "copy"
    assert cli.json("import", tmp_path / "x.tar", "--level", "records").code == 0


def test_a_damaged_ledger_gives_no_backup(cli, tmp_path):
    """Where the copy does not verify there is none, and the code says why."""
    cli.ledger = bundle_world.sealed(tmp_path / "ledger")
    data = bytearray((cli.ledger / "ledger.sqlite").read_bytes())
    place = data.rindex(b'"kind":"note.added"')
    data[place + 10] ^= 1
    (cli.ledger / "ledger.sqlite").write_bytes(data)
    before = sorted(tmp_path.iterdir())
    assert cli.json("backup", tmp_path / "back").code != 0
    assert sorted(tmp_path.iterdir()) == before


def test_a_backup_writes_over_nothing_and_tells_absent_blobs(cli, tmp_path):
    """A folder with something in it is refused; what the ledger lacks is listed."""
    cli.ledger = bundle_world.sealed(tmp_path / "ledger")
    assert cli.json("backup", cli.ledger).error["code"] == "LEDGER_EXISTS"
    with Ledger.read(cli.ledger) as ledger:
        digest = ledger.of_kind("snapshot.recorded")[-1].body["state"]["digest"]
        ledger.blobs.path(digest).unlink()
    assert cli.json("backup", tmp_path / "back").result["absent"] == [digest]


@pytest.mark.parametrize("hours", [1, 48])
def test_gc_removes_old_unnamed_blobs_only(hours, made):
    """After a dry run that says so, an old blob without a record goes and a younger one stays."""
    with Ledger.read(made.ledger) as ledger:
        store = ledger.blobs
    blob = store.put(b"a stray", "text/plain")
    then = time.time() - 30 * 3600
    os.utime(store.path(blob.digest), (then, then))
    wanted = [blob.digest] if hours == 1 else []
    dry = made.json("gc", "--dry-run", "--older-than", hours).result
    assert dry["removed"] == wanted
    assert store.has(blob.digest)
    assert made.json("gc", "--older-than", hours).result == {**dry, "dry_run": False}
    assert store.has(blob.digest) == (hours == 48)
    assert made.json("verify", "--level", "blobs").result["verdict"] == "verified"


def test_gc_takes_no_shorter_time_than_an_hour(made):
    """Somebody may be about to name a blob that was just written."""
    assert made.json("gc", "--older-than", "0").error["code"] == "USAGE"
