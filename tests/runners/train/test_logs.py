"""A log stays bounded while others write to it, and is read piece by piece as it grows or is cut."""

from __future__ import annotations

import pytest

from ledger.errors import EvidenceError
from runners.train.logs import (
    END_BYTES,
    LINE_CHARACTERS,
    LogLines,
    LogReader,
    end_of,
    newest_supervisor_log,
    trim,
)


def test_a_log_beyond_its_bound_is_put_aside_and_begun_anew(tmp_path):
    """Whoever has it open goes on at its new end; there are never more than two files."""
    path = tmp_path / "a.log"
    with path.open("ab", buffering=0) as writer:
        for name in (b"first", b"second"):
            writer.write(name * 100)
            trim(path, most_bytes=50)
            writer.write(b"then")
            assert path.read_bytes() == b"then"
            assert name in (tmp_path / "a.log.older").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_log_within_its_bound_or_not_there_is_left_alone(tmp_path):
    """Nothing is made and nothing cut."""
    path = tmp_path / "a.log"
    trim(path, most_bytes=4)
    path.write_bytes(b"four")
    trim(path, most_bytes=4)
    assert [item.name for item in tmp_path.iterdir()] == ["a.log"]
    assert path.read_bytes() == b"four"


def test_a_log_that_cannot_be_kept_is_cut_all_the_same(tmp_path):
    """Where the older half has no room, the bound still holds."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 100)
    (tmp_path / "a.log.older").symlink_to("/dev/full")
    trim(path, most_bytes=50)
    assert path.read_bytes() == b""


def test_a_reader_gets_each_byte_once(tmp_path):
    """Pieces as they come, a character cut in two put together, and what follows after a cut."""
    path = tmp_path / "a.log"
    text = "grüße\n".encode()
    path.write_bytes(text[:3])
    reader = LogReader(path)
    assert reader.read() == "gr"
    with path.open("ab") as writer:
        writer.write(text[3:])
    assert reader.read() == "üße\n"
    assert reader.read() == ""
    path.write_bytes(b"new\n")
    assert reader.read() == "new\n"


def test_only_the_end_of_a_long_log_is_read(tmp_path):
    """However long it is, so much is read and no more; a link is not followed."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * END_BYTES + b"the end")
    assert end_of(path).endswith("the end")
    assert len(end_of(path)) == END_BYTES
    link = tmp_path / "link.log"
    link.symlink_to("/dev/zero")
    with pytest.raises(EvidenceError) as caught:
        end_of(link)
    assert caught.value.code == "UNSAFE_PATH"


def test_the_newest_supervisor_is_the_one_with_the_highest_number(tmp_path):
    """By number and not by name; files of other names are none."""
    assert newest_supervisor_log(tmp_path) is None
    for name in ("2", "10", "9", "x", "9" * 30):
        (tmp_path / f"supervisor-{name}.log").touch()
    assert newest_supervisor_log(tmp_path).name == "supervisor-10.log"


def test_of_a_line_without_end_only_the_end_is_held(tmp_path):
    """Twenty megabytes without a line feed: what is held stays small, and what was let go is counted when it ends."""
    path = tmp_path / "a.log"
    path.write_bytes(b"first\n")
    lines = LogLines(path)
    assert lines.look() == ["first"]
    with path.open("ab") as writer:
        for _ in range(20):
            writer.write(b"x" * END_BYTES)
            writer.flush()
            assert lines.look() == []
            assert len(lines.rest) < LINE_CHARACTERS + 50
        writer.write(b"the end\nnext\nrest")
    long, following = lines.look()
    left_out = 20 * END_BYTES + len("the end") - LINE_CHARACTERS
    assert long.startswith(f"({left_out} characters before) x")
    assert long.endswith("xthe end")
    assert (following, lines.rest) == ("next", "rest")
