"""Blobs that no record names are swept away; those that a record names, or that somebody is using, never are."""

from __future__ import annotations

import os
import threading
import time

import bundle_world
import pytest
from world import key

from ledger import highwater, sweep
from ledger.blobs import TEXT, BlobStore
from ledger.book import Ledger
from ledger.errors import LedgerError, UsageError
from ledger.highwater import HighWater
from verifiers.verify import Options, verify

NOW_S = time.time()
"""Files have the time of the system, so the tests have it too."""
OLD_S = NOW_S - 10 * sweep.GRACE_S


@pytest.fixture
def folder(tmp_path):
    """A sealed ledger whose blobs are all old, with one more that nobody names."""
    place = bundle_world.sealed(tmp_path / "ledger")
    for path in (place / "blobs").rglob("*"):
        os.utime(path, (OLD_S, OLD_S))
    return place


def stray(folder, text=b"nobody names me", at_s=OLD_S) -> str:
    """A blob that no record names."""
    store = BlobStore(folder / "blobs")
    digest = store.put(text, TEXT).digest
    os.utime(store.path(digest), (at_s, at_s))
    return digest


def swept(folder, **changes):
    """Sweep a ledger at the tests' time."""
    return sweep.sweep(folder, **{"now_s": NOW_S, "state_dir": None, **changes})


def files(folder) -> set[str]:
    """Digests of the blobs that lie there."""
    found = (path for path in (folder / "blobs/sha256").glob("??/*"))
    return {f"sha256:{path.parent.name}{path.name}" for path in found}


def test_only_what_no_record_names_is_taken(folder):
    """Of many old blobs exactly the unnamed ones go; the ledger verifies as before."""
    named = files(folder)
    before = verify(folder, Options(level="blobs")).blobs
    unnamed = set(swept(folder, dry_run=True).digests)
    digest = stray(folder)
    found = swept(folder)
    assert set(found.digests) == {digest, *unnamed}
    assert files(folder) == named - unnamed
    assert verify(folder, Options(level="blobs")).blobs == before
    assert swept(folder).digests == []


def test_a_dry_run_takes_nothing(folder):
    """A dry run says what a sweep would take, and leaves every byte."""
    digest = stray(folder)
    before = files(folder)
    assert digest in swept(folder, dry_run=True).digests
    assert files(folder) == before


def test_what_is_young_stays(folder):
    """A blob written a minute ago may be about to be named."""
    digest = stray(folder, at_s=NOW_S - 60)
    found = swept(folder)
    assert (digest in found.digests, found.young) == (False, 1)
    assert digest in files(folder)


def test_using_a_blob_again_makes_it_young(folder):
    """Whoever puts bytes that are there already is about to name them: the blob's time is renewed."""
    digest = stray(folder, b"twice")
    BlobStore(folder / "blobs").put(b"twice", TEXT)
    assert BlobStore(folder / "blobs").path(digest).stat().st_mtime > OLD_S
    digest = stray(folder, b"thrice")
    file = folder.parent / "file"
    file.write_bytes(b"thrice")
    BlobStore(folder / "blobs").put_file(file, TEXT)
    assert BlobStore(folder / "blobs").path(digest).stat().st_mtime > OLD_S


def test_half_written_files_go_when_they_are_old(folder):
    """What a kill left half-written is taken after the same time."""
    old, young = folder / "blobs/sha256/.new-old", folder / "blobs/sha256/.new-young"
    for path, at_s in ((old, OLD_S), (young, NOW_S)):
        path.write_bytes(b"half")
        os.utime(path, (at_s, at_s))
    assert swept(folder).leftovers == [".new-old"]
    assert (old.exists(), young.exists()) == (False, True)


def test_links_and_strange_names_are_left(folder, tmp_path):
    """What is no blob's file is not a sweep's business, wherever it leads."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ("b" * 62)).write_bytes(b"x")
    (folder / "blobs/sha256/zz").symlink_to(outside)
    (folder / "blobs/sha256/aa").mkdir(exist_ok=True)
    (folder / "blobs/sha256/aa" / ("c" * 62)).symlink_to(outside / ("b" * 62))
    (folder / "blobs/sha256/aa/README").write_bytes(b"x")
    swept(folder)
    assert (outside / ("b" * 62)).exists()
    assert (folder / "blobs/sha256/aa/README").exists()
    assert (folder / "blobs/sha256/aa" / ("c" * 62)).is_symlink()


def test_a_blob_named_while_the_sweep_runs_is_kept(folder, monkeypatch):
    """An append that comes between the survey and the removal is looked at before anything is taken."""
    digest = stray(folder, b"just in time")
    real = sweep._Sweeping.survey

    def survey(self, state_dir):
        real(self, state_dir)
        with Ledger.open(folder, key=key("writer")) as ledger:
            blob = {"digest": digest, "size": 12, "media_type": TEXT}
            source = {**ledger.of_kind("source.ingested")[-1].body, "content": blob}
            name = next(name for name, value in source.items() if isinstance(value, dict))
            source.pop("content")
            ledger.append("source.ingested", {**source, name: blob})

    monkeypatch.setattr(sweep._Sweeping, "survey", survey)
    assert digest not in swept(folder).digests
    assert digest in files(folder)


def test_an_append_that_names_what_was_swept_is_refused(folder):
    """No record ever names a blob that a sweep took: the append finds it gone."""
    digest = stray(folder, b"too late")
    assert digest in swept(folder).digests
    with Ledger.open(folder, key=key("writer")) as ledger:
        body = dict(ledger.of_kind("source.ingested")[-1].body)
        name = next(name for name, value in body.items() if isinstance(value, dict))
        body[name] = {"digest": digest, "size": 8, "media_type": TEXT}
        with pytest.raises(UsageError) as refused:
            ledger.append("source.ingested", body)
    assert refused.value.code == "BLOB_MISSING"


def test_writers_that_reuse_blobs_never_lose_one(folder):
    """Threads put the same old bytes again while a sweep runs: what a put returned lies there afterwards."""
    texts = [b"%d" % number for number in range(60)]
    digests = [stray(folder, text) for text in texts]
    store = BlobStore(folder / "blobs")
    threads = [
        threading.Thread(target=lambda part=part: [store.put(text, TEXT) for text in part])
        for part in (texts[::2], texts[::2][::-1])
    ]
    for thread in threads:
        thread.start()
    gone = set(swept(folder).digests)
    for thread in threads:
        thread.join()
    there = files(folder)
    assert set(digests[::2]) <= there
    assert set(digests[1::2]) <= gone


@pytest.mark.parametrize(
    ("size", "root", "code"),
    [(1000, None, "LEDGER_ROLLED_BACK"), (None, bytes(32), "LEDGER_FORKED")],
)
def test_a_ledger_that_lost_records_is_not_swept(size, root, code, folder, tmp_path):
    """Blobs of records that this machine once saw may be wanted again."""
    digest = stray(folder)
    with Ledger.read(folder) as ledger:
        first, last, now = ledger.at(0).id, ledger.at(ledger.size - 1).id, ledger.size
    mark = HighWater(first, size or now, root or bytes(32), last)
    highwater.write(tmp_path / "state", mark)
    with pytest.raises(LedgerError) as refused:
        swept(folder, state_dir=tmp_path / "state")
    assert refused.value.code == code
    assert digest in files(folder)
