"""What strangers and accidents put in a command's way: one error, and nothing behind it."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import jsonschema
import pytest

from ledger.book import Ledger

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "cli"


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


@pytest.mark.parametrize("ending", [b"", b"\n"], ids=["half a line", "a whole line"])
def test_of_a_line_without_end_the_end_is_shown(log, ending):
    """A line of two megabytes of control characters fills no terminal, and its end, where an error stands, is there."""
    cli, run, path = log
    path.write_bytes(bytes(2 << 20) + b"last" + ending)
    called = cli("run", "logs", run)
    assert (called.code, called.out.endswith("\\x00last\n")) == (0, True)
    assert len(called.out) < 5000


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


def test_room_for_a_seal_is_taken_before_it_is_made(made, tmp_path):
    """Where the system gives no room for the file, nothing is recorded and nothing is left beside it."""
    size = made.json("log").result["size"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        called = made.json("seal", "--out", tmp_path / "mine.seal")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (called.code, called.error["code"]) == (2, "OS_REFUSED")
    assert made.json("log").result["size"] == size
    assert not [item for item in tmp_path.iterdir() if "mine.seal" in item.name]


def test_a_seal_that_a_full_device_does_not_take_is_told_and_not_lost(made):
    """A device has no room to take before: the error says that the seal was made, and the answer holds it."""
    size = made.json("log").result["size"]
    called = made.json("seal", "--out", "/dev/full")
    assert (called.code, called.error["code"], called.error["field"]) == (2, "DISK_FULL", "--out")
    assert (
        f"the seal of {size + 1} records was made and is kept in the ledger"
        in called.error["message"]
    )
    assert (called.result["size"], called.result["file"]) == (size + 1, None)
    (made.ledger.parent / "kept").write_text(called.result["seal"])
    kept = made.json("verify", "--expect-seal", made.ledger.parent / "kept")
    assert kept.result["rollback"] != "unchecked"


def test_a_seal_replaces_a_file_whole_and_keeps_its_mode(made, tmp_path):
    """The file is the whole new seal under the mode that it had."""
    target = tmp_path / "a.seal"
    target.write_bytes(b"x" * 50_000)
    target.chmod(0o640)
    result = made.json("seal", "--out", target).result
    assert target.read_text() == result["seal"]
    assert target.stat().st_mode & 0o777 == 0o640
    assert [item.name for item in tmp_path.glob("*.seal*")] == ["a.seal"]


def test_json_says_that_the_mark_lags(made):
    """What a person reads as a warning stands in the object too, beside a result and beside an error."""
    lock = next((made.home / "state").rglob("*.lock"))
    lock.unlink()
    lock.mkdir()
    called = made.json("note", "@0", "words")
    assert (called.code, [item["code"] for item in called.answer["warnings"]]) == (
        0,
        ["HIGHWATER_LAGS"],
    )
    schema = json.loads((SCHEMAS / "note.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(called.answer)
    full = made.json("seal", "--out", "/dev/full")
    assert (full.code, full.error["code"]) == (2, "DISK_FULL")
    assert full.answer["warnings"] == called.answer["warnings"]
    assert "warnings" not in made.json("log").answer


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


def test_a_pipe_or_a_device_is_no_source(made, tmp_path):
    """What is there and is no regular file is said to be that; nothing waits for it."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        called = made.json("data", "ingest", path, "--licence", "CC0-1.0")
        assert (called.code, called.error["code"]) == (2, "UNSAFE_PATH")
        assert "no regular file" in called.error["message"]
