"""Digests of bytes, files and folders."""

from __future__ import annotations

import hashlib
import io
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import digests
from ledger.digests import CHUNK_BYTES, FileEntry
from ledger.errors import EvidenceError

GOOD = "sha256:" + "0f" * 32


def unsafe(call, *arguments) -> None:
    """The call refuses the path."""
    with pytest.raises(EvidenceError) as caught:
        call(*arguments)
    assert caught.value.code == "UNSAFE_PATH"


def test_digest_is_sha_256_with_its_name():
    """The digest of `abc` is the published one, in lower case after `sha256:`."""
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digests.sha256(b"abc") == f"sha256:{abc}"


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1])
def test_file_and_stream_are_hashed_whole(tmp_path, size):
    """Files around the chunk's size give the digest of all of their bytes, and their size."""
    data = random.Random(size).randbytes(size)
    path = tmp_path / "file"
    path.write_bytes(data)
    expected = ("sha256:" + hashlib.sha256(data).hexdigest(), size)
    assert digests.digest_file(path) == expected
    assert digests.digest_stream(io.BytesIO(data)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "sha256:", GOOD[:-1], GOOD + "0", GOOD + "\n", GOOD.upper(), GOOD.replace("sha256", "sha512"),
     "sha256:" + "g" * 64, "sha256:" + "\u0660" * 64, None, 7, GOOD.encode()],
)  # fmt: skip
def test_what_is_no_digest(text):
    """Only `sha256:` and 64 lower-case ASCII hex digits have the form of a digest."""
    assert not digests.is_digest(text)
    assert digests.is_digest(GOOD)


def test_links_devices_pipes_and_folders_are_refused(tmp_path):
    """Only a regular file is read, so nobody can be made to hash something else or to wait for ever."""
    target = tmp_path / "target"
    target.write_bytes(b"x")
    link, broken, pipe = tmp_path / "link", tmp_path / "broken", tmp_path / "pipe"
    link.symlink_to(target)
    broken.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    for path in (link, broken, pipe, tmp_path, digests.Path("/dev/null")):
        unsafe(digests.digest_file, path)


def test_missing_file_is_the_caller_s_to_handle(tmp_path):
    """A file that is not there is an OSError, not evidence of anything."""
    with pytest.raises(FileNotFoundError):
        digests.digest_file(tmp_path / "nowhere")


def test_inventory_lists_every_file_in_path_order(tmp_path):
    """Paths are relative with forward slashes and sorted as text, not folder by folder."""
    for name in ("b", "a/z", "a.txt", "a/b/c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    found = digests.inventory(tmp_path)
    assert [entry.path for entry in found] == ["a.txt", "a/b/c", "a/z", "b"]
    assert [entry.digest for entry in found] == [
        digests.sha256(name.encode()) for name in ("a.txt", "a/b/c", "a/z", "b")
    ]
    assert [entry.size for entry in found] == [5, 5, 3, 1]


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
def test_inventory_refuses_a_folder_with_anything_but_files(tmp_path, kind):
    """A link or a pipe deep inside a folder refuses the whole folder."""
    inner = tmp_path / "model" / "inner"
    inner.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(inner / "pipe")
    else:
        (inner / "link").symlink_to(tmp_path if "folder" in kind else __file__)
    unsafe(digests.inventory, tmp_path / "model")


def test_tree_digest_is_what_the_specification_says():
    """The digest is over `path NUL size NUL digest LF` of each file in path order, computed by hand here."""
    files = [FileEntry("b", 1, GOOD), FileEntry("a/c", 2, GOOD)]
    text = f"a/c\0{2}\0{GOOD}\nb\0{1}\0{GOOD}\n"
    assert digests.tree_digest(files) == digests.sha256(text.encode())


@given(st.permutations([FileEntry(name, 1, GOOD) for name in "abcd"]))
def test_tree_digest_does_not_depend_on_the_order_of_listing(files):
    """Any order of the same files gives the same digest."""
    assert digests.tree_digest(files) == digests.tree_digest(
        sorted(files, key=lambda item: item.path)
    )


@pytest.mark.parametrize(
    "other",
    [FileEntry("b", 1, GOOD), FileEntry("a", 2, GOOD), FileEntry("a", 1, "sha256:" + "1" * 64)],
    ids=["path", "size", "digest"],
)
def test_tree_digest_depends_on_each_field(other):
    """Another path, size or content gives another digest."""
    assert digests.tree_digest([other]) != digests.tree_digest([FileEntry("a", 1, GOOD)])


def test_tree_digest_of_nothing_is_that_of_no_bytes():
    """A folder without files has the digest of the empty text."""
    assert digests.tree_digest([]) == digests.sha256(b"")
