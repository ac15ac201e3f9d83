"""What strangers and accidents put in a command's way: one error, and nothing behind it."""

from __future__ import annotations

import os

import pytest

from ledger.book import Ledger


@pytest.fixture
def log(full, full_world):
    """A stranger's ledger and the place of a run's log in it."""
    run = full_world.newest("run.launched")
    path = full.ledger / "work" / run.id[7:23] / "child.log"
    path.parent.mkdir(parents=True)
    return full, run.id, path


def test_a_log_that_is_a_link_is_not_followed(log, tmp_path):
    """The log of a stranger's run cannot show a file of ours."""
    cli, run, path = log
    (tmp_path / "secret").write_text("mine")
    path.symlink_to(tmp_path / "secret")
    called = cli("run", "logs", run)
    assert (called.code, "UNSAFE_PATH" in called.err, "mine" in called.out) == (2, True, False)


def test_the_end_of_an_endless_log_is_shown(log):
    """Of five gigabytes the last lines are read, and control characters are shown as codes."""
    cli, run, path = log
    path.write_bytes(b"")
    os.truncate(path, 5 << 30)
    with path.open("ab") as stream:
        stream.write(b"\nlast \x1b[2J\n")
    called = cli("run", "logs", run, "--lines", "1")
    assert (called.code, called.out) == (0, "last \\x1b[2J\n")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 10_000, "a = 0x" + "f" * 6000, "a = " + "9" * 6000]
)
def test_a_policy_beyond_reason_is_one_error(made, tmp_path, text):
    """Brackets and digits without end are refused as any other file that is no policy."""
    (tmp_path / "policy.toml").write_text(text)
    called = made("policy", "declare", tmp_path / "policy.toml")
    assert (called.code, called.err.count("error: ")) == (1, 1)
    assert "BODY_INVALID" in called.err


def test_a_seal_that_cannot_be_written_out_is_not_made(made, tmp_path):
    """Where --out cannot be a file, the ledger is as it was."""
    size = made.json("log").result["size"]
    for out in (tmp_path, tmp_path / "absent" / "seal", "/proc/seal"):
        assert made.json("seal", "--out", out).code == 2
    assert made.json("log").result["size"] == size


def test_a_record_is_no_failure_because_its_mark_cannot_be_written(made):
    """The note is recorded and said to be; that the high-water file lags is one more line."""
    lock = next((made.home / "state").rglob("*.lock"))
    lock.unlink()
    lock.mkdir()
    called = made("note", "@0", "words")
    assert (called.code, called.err.count("HIGHWATER_LAGS")) == (0, 1)
    assert called.out.startswith("noted at seq 3")


def test_running_out_of_memory_is_one_error(made, monkeypatch):
    """What does not fit into memory is told in a line, not in a traceback."""

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Ledger, "read", full)
    called = made("log")
    assert (called.code, called.err.splitlines()[0]) == (2, "error: out of memory [OS_REFUSED]")


def test_rejects_of_several_files_are_shown_with_their_file(made, tmp_path):
    """The table of rejects names the file beside the line."""
    row = '{"messages":[{"role":"user","content":"%s"},{"role":"assistant","content":"b"}]}\n'
    (tmp_path / "a.jsonl").write_text("\ufeff" + row % "one")
    (tmp_path / "b.jsonl").write_text(row % "two" + "[]\n")
    called = made("data", "ingest", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert called.code == 0
    assert "b.jsonl     2  not_an_object" in called.out
    assert made("verify", "--level", "blobs").code == 0
