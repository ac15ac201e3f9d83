"""The high-water file."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import highwater, merkle
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from ledger.highwater import HighWater

LEAVES = [merkle.leaf_hash(b"entry %d" % number) for number in range(20)]
LEDGER = "sha256:" + LEAVES[0].hex()
OTHER = sha256(b"another ledger's record 0")


def root_at(size):
    """The root over the first leaves."""
    return merkle.root(LEAVES[:size])


def mark(size):
    """The head of the ledger at a size."""
    return HighWater(LEDGER, size, root_at(size), "sha256:" + LEAVES[size - 1].hex())


def refusal(code, check, *arguments):
    """The error that a check raises, which must have this code."""
    with pytest.raises(EvidenceError) as caught:
        check(*arguments)
    assert caught.value.code == code
    return caught.value


@given(size=st.integers(1, 2**53 - 1), root=st.binary(min_size=32, max_size=32))
def test_head_reads_back(size, root):
    """A head's file content decodes to the same head."""
    head = HighWater(LEDGER, size, root, OTHER)
    assert HighWater.decode(head.encode()) == head


@pytest.mark.parametrize("durable", [True, False])
def test_written_head_is_read(tmp_path, durable):
    """What was written is there, in folders of mode 0700 and a file of mode 0600, with no leftovers."""
    directory = tmp_path / "state" / "highwater"
    highwater.write(directory, mark(3), durable=durable)
    path = highwater.path_of(directory, LEDGER)
    assert highwater.read(directory, LEDGER) == mark(3)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert directory.stat().st_mode & 0o7777 == 0o700
    assert {item.suffix for item in directory.iterdir()} == {".json", ".lock"}


def test_file_only_goes_forward(tmp_path):
    """A head behind the file or equal to it changes nothing, one ahead replaces it."""
    for size, expected in ((5, 5), (3, 5), (5, 5), (6, 6), (1, 6)):
        highwater.write(tmp_path, mark(size))
        assert highwater.read(tmp_path, LEDGER) == mark(expected)


def test_head_of_another_history_is_not_written(tmp_path):
    """Another root at the file's size is a fork, and the file stays."""
    highwater.write(tmp_path, mark(5))
    forked = HighWater(LEDGER, 5, root_at(4), OTHER)
    refusal("LEDGER_FORKED", highwater.write, tmp_path, forked)
    assert highwater.read(tmp_path, LEDGER) == mark(5)


@pytest.mark.parametrize(("size", "standing"), [(5, "equal"), (6, "ahead"), (20, "ahead")], ids=str)
def test_ledger_that_kept_or_grew_passes(tmp_path, size, standing):
    """A ledger at the file's head or grown from it passes: the file may lag, as after a crash."""
    highwater.write(tmp_path, mark(5))
    assert highwater.check(tmp_path, LEDGER, size, root_at) == standing


@pytest.mark.parametrize("size", [0, 1, 4])
def test_shorter_ledger_is_rolled_back(tmp_path, size):
    """A ledger behind the file is refused; the error names both sizes and the record that is gone."""
    highwater.write(tmp_path, mark(5))
    error = refusal("LEDGER_ROLLED_BACK", highwater.check, tmp_path, LEDGER, size, root_at)
    assert (error.expected, error.actual) == ("5", str(size))
    assert (error.record, error.seq) == ("sha256:" + LEAVES[4].hex(), 4)


@pytest.mark.parametrize("size", [5, 9])
def test_rewritten_ledger_is_forked(tmp_path, size):
    """A ledger with another root at the file's size is refused, even where it is longer."""
    highwater.write(tmp_path, mark(5))
    changed = [*LEAVES[:2], merkle.leaf_hash(b"rewritten"), *LEAVES[3:]]
    error = refusal(
        "LEDGER_FORKED",
        highwater.check,
        tmp_path,
        LEDGER,
        size,
        lambda count: merkle.root(changed[:count]),
    )
    assert error.expected == root_at(5).hex()


def test_ledger_without_a_file_is_unchecked(tmp_path):
    """No directory, no file, and another ledger's file all leave a ledger unchecked."""
    assert highwater.check(tmp_path / "none", LEDGER, 5, root_at) == "unchecked"
    highwater.write(tmp_path, mark(5))
    assert highwater.check(tmp_path, OTHER, 1, root_at) == "unchecked"


def test_file_emptied_by_a_power_cut_counts_as_none(tmp_path):
    """An empty file, which a write without fsync may leave, is no alarm and is written over."""
    highwater.path_of(tmp_path, LEDGER).touch()
    assert highwater.check(tmp_path, LEDGER, 1, root_at) == "unchecked"
    highwater.write(tmp_path, mark(2))
    assert highwater.read(tmp_path, LEDGER) == mark(2)


def fields(**changes):
    """A good file's fields with some of them changed."""
    return {**json.loads(mark(5).encode()), **changes}


def text(value):
    """A value in the file's own form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


DAMAGED = {
    "cut": mark(5).encode()[:-10],
    "no line feed": mark(5).encode()[:-1],
    "two line feeds": mark(5).encode() + b"\n",
    "zeros": bytes(200),
    "not JSON": b"size 5\n",
    "spaces": json.dumps(fields()).encode() + b"\n",
    "list": text([1]),
    "unknown field": text(fields(note="x")),
    "missing field": text({"ledger": LEDGER, "size": 5}),
    "size zero": text(fields(size=0)),
    "size as text": text(fields(size="5")),
    "size as truth": text(fields(size=True)),
    "root too short": text(fields(root="00")),
    "root as number": text(fields(root=5)),
    "root in capitals": text(fields(root=root_at(5).hex().upper())),
    "last id no digest": text(fields(last_id="abc")),
    "ledger no digest": text(fields(ledger=None)),
    "another ledger's": text(fields(ledger=OTHER)),
    "over the size limit": b" " * 5000 + mark(5).encode(),
    "deep": b"[" * 3000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_or_foreign_file_is_one_clear_error(tmp_path, name):
    """Whatever is wrong with the file, checking and writing name the file and change nothing."""
    path = highwater.path_of(tmp_path, LEDGER)
    path.write_bytes(DAMAGED[name])
    error = refusal("HIGHWATER_INVALID", highwater.check, tmp_path, LEDGER, 5, root_at)
    assert str(path) in error.message
    refusal("HIGHWATER_INVALID", highwater.write, tmp_path, mark(6))
    assert path.read_bytes() == DAMAGED[name]


def test_linked_file_is_refused(tmp_path):
    """A link to a good file is not followed."""
    highwater.write(tmp_path / "a", mark(5))
    (tmp_path / "b").mkdir()
    highwater.path_of(tmp_path / "b", LEDGER).symlink_to(highwater.path_of(tmp_path / "a", LEDGER))
    refusal("UNSAFE_PATH", highwater.check, tmp_path / "b", LEDGER, 5, root_at)


@pytest.mark.parametrize("ledger_id", ["", "../../etc/passwd", "sha256:" + "A" * 64])
def test_id_that_is_no_digest_never_becomes_a_path(tmp_path, ledger_id):
    """A file name is made from a well-formed id only."""
    refusal("HIGHWATER_INVALID", highwater.path_of, tmp_path, ledger_id)


@pytest.mark.parametrize(
    ("size", "root", "last_id"),
    [(0, bytes(32), OTHER), (1, bytes(31), OTHER), (1, bytes(32), "sha256:")],
    ids=["size", "root", "last id"],
)
def test_impossible_head_is_refused(size, root, last_id):
    """A head has a size of at least 1, a root of 32 bytes and a last id."""
    refusal("HIGHWATER_INVALID", HighWater, LEDGER, size, root, last_id)


WRITER = """
    import sys
    from pathlib import Path
    from ledger.highwater import HighWater, write
    for size in range(1, 2001):
        root = size.to_bytes(32, "big")
        write(Path(sys.argv[1]), HighWater(sys.argv[2], size, root, sys.argv[2]), durable=False)
        if size == 1:
            print("started", flush=True)
"""


def writer(directory):
    """A process that writes 2,000 heads one after another."""
    program = [sys.executable, "-c", textwrap.dedent(WRITER), str(directory), LEDGER]
    return subprocess.Popen(program, stdout=subprocess.PIPE)


def test_processes_that_write_at_once_never_take_the_file_back(tmp_path):
    """Under two writing processes every read is whole and the sizes read never fall."""
    with writer(tmp_path) as first, writer(tmp_path) as second:
        assert first.stdout.readline() == b"started\n"
        seen = []
        while first.poll() is None or second.poll() is None:
            seen.append(highwater.read(tmp_path, LEDGER).size)
    assert (first.returncode, second.returncode) == (0, 0)
    assert seen == sorted(seen)
    assert highwater.read(tmp_path, LEDGER).size == 2000


@pytest.mark.parametrize("after_heads", [1, 30, 200])
def test_killed_writer_leaves_a_whole_file_and_no_lock(tmp_path, after_heads):
    """A writer killed at any point leaves one whole head, and the next writer is not held up."""
    with writer(tmp_path) as process:
        assert process.stdout.readline() == b"started\n"
        while highwater.read(tmp_path, LEDGER).size < after_heads:
            pass
        process.kill()
    left = highwater.read(tmp_path, LEDGER)
    assert left.root == left.size.to_bytes(32, "big")
    highwater.write(tmp_path, HighWater(LEDGER, 5000, bytes(32), LEDGER))
    assert highwater.read(tmp_path, LEDGER).size == 5000
    assert {item.suffix for item in tmp_path.iterdir()} == {".json", ".lock"}


def test_file_is_lowered_from_exactly_what_was_seen(tmp_path):
    """The head that the caller saw is replaced by a lower one, and from then on the file goes forward again."""
    highwater.write(tmp_path, mark(9))
    assert highwater.lower(tmp_path, mark(9), mark(4))
    assert highwater.read(tmp_path, LEDGER) == mark(4)
    highwater.write(tmp_path, mark(6))
    assert highwater.read(tmp_path, LEDGER) == mark(6)


FORKED = HighWater(LEDGER, 9, root_at(3), OTHER)


@pytest.mark.parametrize(
    "now", [mark(10), mark(8), FORKED, None], ids=["on", "back", "fork", "none"]
)
def test_file_that_somebody_else_changed_is_not_lowered(tmp_path, now):
    """A head other than the one seen stays, whatever it is; no file is made where there is none."""
    if now is not None:
        highwater.write(tmp_path, now)
    assert not highwater.lower(tmp_path, mark(9), mark(4))
    assert highwater.read(tmp_path, LEDGER) == now


def test_file_is_not_lowered_to_another_ledgers_head(tmp_path):
    """Two ledgers never share a file."""
    highwater.write(tmp_path, mark(9))
    other = HighWater(OTHER, 4, root_at(4), OTHER)
    refusal("HIGHWATER_INVALID", highwater.lower, tmp_path, mark(9), other)
    assert highwater.read(tmp_path, LEDGER) == mark(9)


def test_lock_that_stays_held_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    """A process that was stopped with the lock makes a write fail as a busy file does, not hang."""
    monkeypatch.setattr(highwater, "_LOCK_TRIES", 1)
    highwater.write(tmp_path, mark(3))
    with highwater.path_of(tmp_path, LEDGER).with_suffix(".lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            highwater.write(tmp_path, mark(4))
    assert highwater.read(tmp_path, LEDGER) == mark(3)
    highwater.write(tmp_path, mark(4))
    assert highwater.read(tmp_path, LEDGER) == mark(4)


def test_lock_that_another_process_holds_is_told_by_the_file(tmp_path, monkeypatch):
    """Who restores while somebody holds the file's lock is told that, and which file it is."""
    monkeypatch.setattr(highwater, "_LOCK_PAUSE_S", 0.0)
    seen = HighWater(
        ledger="sha256:" + "0" * 64, size=2, root=bytes(32), last_id="sha256:" + "1" * 64
    )
    highwater.write(tmp_path, seen, durable=False)
    lock = highwater.path_of(tmp_path, seen.ledger).with_suffix(".lock")
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError) as caught:
            highwater.lower(tmp_path, seen, seen)
    assert caught.value.code == "LEDGER_BUSY"
    assert str(lock) in caught.value.message
