"""`evidence export bundle`, `evidence import` and `evidence verify --bundle`, as a user calls them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile

import bundle_world
import pytest

from ledger import highwater
from ledger.book import Ledger
from ledger.staging import staging_of


@pytest.fixture
def sealed(cli, tmp_path):
    """A command line before a sealed ledger of every kind."""
    cli.ledger = bundle_world.sealed(tmp_path / "ledger")
    return cli


def test_a_ledger_travels_whole(made, tmp_path):
    """Exported, moved away from its ledger, imported elsewhere: verified, with the same ids and the same bytes."""
    made("note", "@0", "words")
    assert made("seal").code == 0
    out = tmp_path / "x.tar"
    told = made.json("export", "bundle", out).result
    shutil.rmtree(made.ledger)
    made.ledger = tmp_path / "elsewhere/copy"
    came = made.json("import", out, "--level", "blobs").result
    assert (came["verdict"], came["root"]) == ("verified", told["root"])
    assert came["rollback"] == "high water reached"
    assert made.json("verify", "--level", "blobs").result["verdict"] == "verified"
    again = made.json("export", "bundle", tmp_path / "y.tar").result
    assert again["digest"] == told["digest"]
    assert (tmp_path / "y.tar").read_bytes() == out.read_bytes()
    assert made("note", "@0", "goes on").code == 0


def test_a_closure_is_verified_where_it_lies(sealed, tmp_path):
    """What one record rests on is checked under the root key, says what it cannot show, and makes no ledger."""
    out = tmp_path / "x.tar"
    with Ledger.read(sealed.ledger) as ledger:
        target, root = ledger.of_kind("promotion.refused")[-1].id, ledger.at(0).actor
    told = sealed.json("export", "bundle", out, "--of", target[7:19]).result
    assert (told["scope"], told["record"]) == ("closure", target)
    report = sealed.json("verify", "--bundle", out, "--root", root, target[7:19]).result
    assert (report["verdict"], report["trust"], report["scope"]) == ("verified", "pinned", target)
    assert "on faith" in sealed("verify", "--bundle", out).out
    assert sealed.json("verify", "--bundle", out, "abcdef").error["code"] == "REF_NOT_FOUND"
    sealed.ledger = tmp_path / "copy"
    refused = sealed.json("import", out)
    assert (refused.code, refused.error["code"]) == (2, "BUNDLE_PARTIAL")
    assert not list(tmp_path.glob("*copy*"))


def test_where_something_is_wrong_nothing_is_written(sealed, tmp_path):
    """A bundle with a byte changed is refused by a code, by import and by verify, and leaves no folder."""
    out = tmp_path / "x.tar"
    assert sealed("export", "bundle", out).code == 0
    spoilt = bytearray(out.read_bytes())
    spoilt[3000] ^= 1
    out.write_bytes(spoilt)
    assert sealed.json("verify", "--bundle", out).code == 1
    sealed.ledger = tmp_path / "copy"
    before = sorted(tmp_path.iterdir())
    refused = sealed.json("import", out)
    assert (refused.code, refused.error["code"]) == (2, "BUNDLE_MALFORMED")
    assert sorted(tmp_path.iterdir()) == before


def test_nothing_is_written_over(sealed, tmp_path):
    """A file under the bundle's name, or anything where the ledger is to be, is left as it is."""
    out = tmp_path / "x.tar"
    out.write_bytes(b"mine")
    assert sealed.json("export", "bundle", out).error["code"] == "FOLDER_EXISTS"
    assert out.read_bytes() == b"mine"
    assert sealed("export", "bundle", tmp_path / "y.tar").code == 0
    assert sealed.json("import", tmp_path / "y.tar").error["code"] == "LEDGER_EXISTS"
    assert sealed.json("export", "bundle", tmp_path / "no/y.tar").error["code"] == "INPUT_MISSING"


def test_a_longer_history_known_here_refuses_an_older_bundle(made, tmp_path):
    """An older copy is refused by the high-water file; with --behind it comes, and writers wait for root's word."""
    out = tmp_path / "x.tar"
    assert made("export", "bundle", out).code == 0
    made("note", "@0", "later")
    made.ledger = tmp_path / "copy"
    assert made.json("import", out).error["code"] == "LEDGER_ROLLED_BACK"
    assert not made.ledger.exists()
    came = made.json("import", out, "--behind").result
    assert came["rollback"] == "shorter than the high water"
    assert made.json("note", "@0", "x").error["code"] == "LEDGER_ROLLED_BACK"
    assert made("restore", "--why", "the disk failed").code == 0
    assert made("note", "@0", "x").code == 0


def test_another_history_is_never_imported(made, tmp_path):
    """Where the high-water file has another root at the same size, --behind does not help."""
    out = tmp_path / "x.tar"
    assert made("export", "bundle", out).code == 0
    with Ledger.read(made.ledger) as ledger:
        first, size, last = ledger.at(0).id, ledger.size, ledger.at(ledger.size - 1).id
    state = made.home / "state/evidence-ledger/high-water"
    highwater.path_of(state, first).unlink()
    highwater.write(state, highwater.HighWater(first, size, bytes(32), last))
    made.ledger = tmp_path / "copy"
    assert made.json("import", out, "--behind").error["code"] == "LEDGER_FORKED"
    assert not made.ledger.exists()


def test_what_a_kill_left_is_cleared_away(sealed, tmp_path):
    """A folder that a killed import half filled is emptied by the next one; another process's is left to it."""
    out, copy = tmp_path / "x.tar", tmp_path / "copy"
    assert sealed("export", "bundle", out).code == 0
    sealed.ledger = copy
    left = staging_of(copy)
    (left / "blobs/sha256").mkdir(parents=True)
    (left / "ledger.sqlite").write_bytes(b"half")
    assert sealed("import", out, "--level", "records").code == 0
    assert not left.exists()
    assert sorted(item.name for item in copy.iterdir()) == ["blobs", "ledger.sqlite"]


def test_a_link_in_the_way_is_not_followed(sealed, tmp_path):
    """Where a link lies under the name that an import fills first, nothing behind it is touched."""
    out, outside = tmp_path / "x.tar", tmp_path / "outside"
    assert sealed("export", "bundle", out).code == 0
    outside.mkdir()
    (outside / "mine").write_bytes(b"x")
    sealed.ledger = tmp_path / "copy"
    staging_of(sealed.ledger).symlink_to(outside)
    assert sealed.json("import", out).error["code"] == "UNSAFE_PATH"
    assert [item.name for item in outside.iterdir()] == ["mine"]


def test_blobs_left_out_are_told(sealed, tmp_path):
    """A bundle without blobs imports, and level blobs then says that they are missing."""
    out = tmp_path / "x.tar"
    told = sealed.json("export", "bundle", out, "--without-blobs", "all").result
    assert told["blobs"]["here"] == 0
    with tarfile.open(out) as archive:
        assert not [name for name in archive.getnames() if name.startswith("blobs/")]
    refused = sealed.json("export", "bundle", tmp_path / "y.tar", "--without-blobs", "some")
    assert refused.error["code"] == "USAGE"
    assert not (tmp_path / "y.tar").exists()
    sealed.ledger = tmp_path / "copy"
    came = sealed.json("import", out, "--level", "records").result
    assert came["blobs"]["left_out"] == told["blobs"]["left_out"] > 0
    codes = {item["code"] for item in sealed.json("verify", "--level", "blobs").result["findings"]}
    assert "BLOB_MISSING" in codes


def test_on_another_machine_a_kept_seal_is_where_verification_begins(made, tmp_path, monkeypatch):
    """A copy that came as a bundle is checked from a seal that its reader kept; another history is not imported."""
    kept = tmp_path / "kept.seal"
    assert made("seal", "--out", kept).code == 0
    for number in range(5):
        made("note", "@0", f"note {number}")
    assert made("seal").code == 0
    out = tmp_path / "x.tar"
    assert made("export", "bundle", out).code == 0
    other = tmp_path / "other"
    assert made("init", other, "--origin", "example.com/tests").code == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    made.ledger = tmp_path / "copy"
    assert (
        made.json("import", out, "--expect-seal", kept).result["rollback"] == "expected seal found"
    )
    report = made.json("verify", "--since", kept).result
    assert (report["verdict"], report["rollback"]) == ("verified", "expected seal found")
    assert 0 < report["since"] < report["records"]
    made.ledger = other
    assert made("export", "bundle", tmp_path / "y.tar").code == 0
    made.ledger = tmp_path / "wrong"
    refused = made.json("import", tmp_path / "y.tar", "--expect-seal", kept)
    assert refused.error["code"] == "EXPECTED_SEAL"
    assert not made.ledger.exists()


def test_what_another_process_is_filling_is_left_to_it(sealed, tmp_path):
    """Two imports to one place, or two exports to one file, never write into one another."""
    out, copy = tmp_path / "x.tar", tmp_path / "copy"
    assert sealed("export", "bundle", out).code == 0
    second = tmp_path / "y.tar"
    sealed_at, sealed.ledger = sealed.ledger, copy
    staging_of(copy).mkdir()
    (staging_of(copy) / "theirs").write_bytes(b"x")
    staging_of(second).write_bytes(b"theirs")
    handles = [os.open(staging_of(path), os.O_RDONLY) for path in (copy, second)]
    try:
        for handle in handles:
            fcntl.flock(handle, fcntl.LOCK_EX)
        assert sealed.json("import", out).error["code"] == "LEDGER_BUSY"
        sealed.ledger = sealed_at
        assert sealed.json("export", "bundle", second).error["code"] == "LEDGER_BUSY"
    finally:
        for handle in handles:
            os.close(handle)
    assert (staging_of(copy) / "theirs").exists()
    assert staging_of(second).read_bytes() == b"theirs"
