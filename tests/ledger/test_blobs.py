"""The blob store: content-addressed files that are re-hashed whenever they are read."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import disk
from ledger.blobs import TEXT, BlobStore, named_blobs
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from ledger.records.base import Blob

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def blobs(tmp_path) -> BlobStore:
    """An empty store."""
    return BlobStore(tmp_path / "blobs")


def refusal(call, *arguments) -> str:
    """The code of what is wrong with the bytes."""
    with pytest.raises(EvidenceError) as caught:
        call(*arguments)
    return caught.value.code


def test_blob_lies_under_its_digest_read_only(blobs, tmp_path):
    """The path is the digest cut after two digits; the file is private and cannot be written."""
    blob = blobs.put(b"abc", TEXT, count=3)
    digits = sha256(b"abc")[7:]
    path = tmp_path / "blobs/sha256" / digits[:2] / digits[2:]
    assert blobs.path(blob.digest) == path
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o400
    assert path.parent.stat().st_mode & 0o077 == 0
    assert blob == Blob(digest=sha256(b"abc"), size=3, media_type=TEXT, count=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(data=st.binary(max_size=2000))
def test_bytes_and_files_read_back(blobs, tmp_path, data):
    """Whatever the bytes, putting them and putting a file of them name and give the same blob."""
    path = tmp_path / "file"
    path.write_bytes(data)
    assert blobs.put(data, TEXT) == blobs.put_file(path, TEXT)
    assert blobs.read(sha256(data)) == data
    assert not list((tmp_path / "blobs/sha256").glob(".new-*"))


def test_missing_changed_cut_and_linked_blobs_are_told_apart(blobs):
    """Each way a blob can be wrong has its code, and no bytes of it get out."""
    blob = blobs.put(b"right bytes", TEXT)
    path = blobs.path(blob.digest)
    path.chmod(0o600)
    path.write_bytes(b"other bytes")
    assert refusal(blobs.read, blob.digest) == "BLOB_WRONG"
    path.write_bytes(b"")
    assert refusal(blobs.read, blob.digest) == "BLOB_WRONG"
    path.unlink()
    assert refusal(blobs.read, blob.digest) == "BLOB_MISSING"
    path.symlink_to(__file__)
    assert refusal(blobs.read, blob.digest) == "UNSAFE_PATH"
    assert not blobs.has(blob.digest)
    path.unlink()
    os.mkfifo(path)
    assert refusal(blobs.read, blob.digest) == "UNSAFE_PATH"


def test_blob_beyond_the_reader_s_limit_is_refused(blobs):
    """A reader names how much it takes; one byte more is refused before it is hashed."""
    blob = blobs.put(b"12345", TEXT)
    assert blobs.read(blob.digest, max_bytes=5) == b"12345"
    assert refusal(blobs.read, blob.digest, 4) == "TOO_LARGE"


@pytest.mark.parametrize("name", ["", "sha256:..", "../../etc/passwd", "sha256:" + "/" * 64])
def test_name_that_is_no_digest_leads_nowhere(blobs, name):
    """A hostile record cannot point the store at another file."""
    assert refusal(blobs.path, name) == "BLOB_WRONG"


def test_input_file_that_is_missing_or_a_link(blobs, tmp_path):
    """A file that is not there is the caller's mistake; a link is not followed."""
    with pytest.raises(UsageError) as caught:
        blobs.put_file(tmp_path / "nowhere", TEXT)
    assert caught.value.code == "INPUT_MISSING"
    (tmp_path / "link").symlink_to(__file__)
    assert refusal(blobs.put_file, tmp_path / "link", TEXT) == "UNSAFE_PATH"


def test_every_blob_of_every_sample_is_found():
    """The blobs that a body names are found wherever they are nested, as many as there are."""
    for kind, body in samples.BODIES.items():
        assert len(list(named_blobs(body))) == str(body).count("'media_type'"), kind


@pytest.mark.parametrize(
    "change",
    [{"size": "9"}, {"size": -1}, {"digest": "x"}, {"media_type": 3}, {"extra": 1}],
    ids=str,
)
def test_object_with_a_blob_s_fields_is_a_blob_or_refused(change):
    """What looks like a blob and is none raises our error, not the model library's."""
    assert refusal(list, named_blobs({"deep": [{**samples.blob("x"), **change}]})) == "BODY_INVALID"


KILLED = """
import os, sys
from pathlib import Path
from ledger.blobs import BlobStore
store = BlobStore(Path(sys.argv[1]))
if sys.argv[2] == "before the rename":
    store._place = lambda *_: os._exit(9)
else:
    real = os.fsync
    def die(handle):
        os._exit(9)
    os.fsync = die
store.put(b"x" * 100_000, "text/plain")
"""


@pytest.mark.parametrize("moment", ["before the rename", "before the first sync"])
def test_process_that_dies_leaves_no_half_blob(blobs, moment):
    """A crash leaves a stray temporary file at most; the blob is absent and can be put again."""
    blobs.put(b"first", TEXT)
    command = [sys.executable, "-c", KILLED, str(blobs.folder), moment]
    done = subprocess.run(command, check=False, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 9
    data = b"x" * 100_000
    assert not blobs.has(sha256(data))
    assert blobs.read(blobs.put(data, TEXT).digest) == data


def test_file_or_loop_where_a_folder_should_be_is_unsafe(blobs, tmp_path):
    """Whatever stands on the way to a blob, opening it ends as a finding of ours."""
    blob = blobs.put(b"abc", TEXT)
    folder = blobs.path(blob.digest).parent
    blobs.path(blob.digest).unlink()
    folder.rmdir()
    folder.write_bytes(b"no folder")
    assert refusal(blobs.read, blob.digest) == "UNSAFE_PATH"
    folder.unlink()
    folder.symlink_to(folder.name)
    assert refusal(blobs.check, blob.digest) == "UNSAFE_PATH"


def test_system_s_refusal_is_one_clean_error(tmp_path):
    """A blob folder that cannot be made or written is told with the path and a code, nothing raw."""
    (tmp_path / "sha256").write_text("a file where the folder should be")
    (tmp_path / "input").write_bytes(b"bytes")
    store = BlobStore(tmp_path)
    calls = (
        lambda: store.put(b"bytes", "text/plain"),
        lambda: store.put_file(tmp_path / "input", "text/plain"),
    )
    for call in calls:
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == "OS_REFUSED"
        assert str(tmp_path) in caught.value.message


def test_full_disk_has_a_code_of_its_own(tmp_path):
    """No room and no quota are told apart from other refusals of the system."""
    for number, code in (
        (errno.ENOSPC, "DISK_FULL"),
        (errno.EDQUOT, "DISK_FULL"),
        (errno.EIO, "OS_REFUSED"),
    ):
        with pytest.raises(UsageError) as caught, disk.translated(tmp_path):
            raise OSError(number, "Said By The System")
        assert caught.value.code == code
        assert caught.value.message == f"{tmp_path}: said by the system"
