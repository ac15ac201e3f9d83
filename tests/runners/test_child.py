"""The line protocol from both ends, with real child processes."""

from __future__ import annotations

import io
import os
import time
from typing import get_args

import pytest

from ledger import canonical
from ledger.errors import EvidenceError, UsageError
from ledger.records.run import FailureCode
from runners.child import FAILURES, run_child
from runners.protocol import MAX_LINE_BYTES, Channel, parse_line

BEHAVE = "tests.runners.children.behave"
ROGUE = "tests.runners.children.rogue"


def run(tmp_path, module, job, on_event=lambda event: {}, **options):
    """Run a child; its log lies in the test's folder."""
    return run_child(module, job, on_event, tmp_path / "log", threads=1, **options)


def test_events_are_answered_in_order(tmp_path):
    """Each event waits for its reply, and the end carries the child's own fields."""
    seen = []
    ended = run(
        tmp_path, BEHAVE, {"do": "count", "steps": 3}, lambda event: seen.append(event) or {}
    )
    assert [(event["n"], event["step"]) for event in seen] == [(1, 0), (2, 1), (3, 2)]
    assert (ended.outcome, ended.returncode, ended.events, ended.failure) == (
        "completed",
        0,
        4,
        None,
    )
    assert ended.end["steps"] == 3


def test_a_child_that_must_wait_does_wait(tmp_path):
    """The child does not go on before its event was handled."""
    moments = []

    def slow(event):
        moments.append(time.monotonic())
        time.sleep(0.2)
        moments.append(time.monotonic())
        return {}

    run(tmp_path, BEHAVE, {"do": "count", "steps": 2}, slow)
    assert moments[2] >= moments[1]


def test_prints_go_to_the_log(tmp_path):
    """What a library prints, in Python or in C, never reaches the protocol."""
    ended = run(tmp_path, BEHAVE, {"do": "print"})
    assert ended.outcome == "completed"
    log = (tmp_path / "log").read_text()
    assert "a library talks on stdout" in log
    assert "and so does its C code" in log


@pytest.mark.parametrize(
    ("job", "code", "failure", "word"),
    [
        pytest.param({"do": "fail"}, "MODEL_UNSAFE", "bad_input", "pickle", id="an error of ours"),
        pytest.param(
            {"do": "crash"}, "CHILD_DIED", "child_died", "exit code 1", id="an error of others"
        ),
        pytest.param(
            {"do": "die"}, "CHILD_DIED", "child_died", "memory", id="killed by the system"
        ),
        pytest.param(
            {"do": "float"}, "NOT_CANONICAL", "internal", "float", id="a floating-point number"
        ),
    ],
)
def test_failures_are_typed(tmp_path, job, code, failure, word):
    """However a child fails, the parent gets one code, and the failure that a record can name."""
    ended = run(tmp_path, BEHAVE, job)
    assert (ended.outcome, ended.code, ended.failure) == ("failed", code, failure)
    assert word in ended.message


def test_a_crash_leaves_its_traceback_in_the_log(tmp_path):
    """An error that is not ours can be read in the child's log."""
    run(tmp_path, BEHAVE, {"do": "crash"})
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


ROGUE_LINES = [
    pytest.param(b"not json\n", "no message", id="no JSON"),
    pytest.param(b"[1]\n", "list", id="no object"),
    pytest.param(b'{"event": "start", "n": 1}\n', "canonical", id="spaces"),
    pytest.param(b'{"event":"start","n":2}\n', "no number", id="a wrong number"),
    pytest.param(b'{"event":"start"}\n', "no number", id="no number"),
    pytest.param(b'{"n":1}\n', "no event name", id="no event"),
    pytest.param(
        b'{"event":"end","n":1,"outcome":"promoted"}\n', "promoted", id="an outcome of its own"
    ),
    pytest.param(b'{"event":"start","event":"end","n":1}\n', "canonical", id="a key twice"),
    pytest.param(b"[" * 100_000 + b"\n", "deeper", id="too deep"),
    pytest.param(b"\xff\xfe\n", "no message", id="no text"),
]


@pytest.mark.parametrize("linger", [False, True], ids=["and ends", "and lingers"])
@pytest.mark.parametrize(("line", "word"), ROGUE_LINES)
def test_malformed_output_is_one_error(tmp_path, line, word, linger):
    """Whatever a child writes that is no message of the protocol ends it with one typed error."""
    started = time.monotonic()
    ended = run(tmp_path, ROGUE, {"hex": line.hex(), "linger": linger})
    assert (ended.outcome, ended.code, ended.failure) == ("failed", "CHILD_PROTOCOL", "protocol")
    assert word in ended.message
    assert time.monotonic() - started < 20


def test_an_endless_line_is_cut(tmp_path):
    """A child that never ends its line cannot fill the parent's memory."""
    megabyte = b"x" * 1024
    ended = run(tmp_path, ROGUE, {"hex": megabyte.hex(), "times": 6 * 1024, "linger": True})
    assert ended.code == "CHILD_PROTOCOL"
    assert str(MAX_LINE_BYTES) in ended.message


def test_a_refused_event_ends_the_child(tmp_path):
    """An error of ours in the handler reaches the caller, and the child is gone when it does."""
    pids = []

    def refuse(event):
        pids.append(event["pid"])
        raise UsageError("CHILD_REFUSED", "the record could not be written")

    with pytest.raises(UsageError, match="could not be written"):
        run(tmp_path, BEHAVE, {"do": "environment"}, refuse)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_no_in_the_reply_ends_the_child(tmp_path):
    """A reply that says no stops the child, which then says nothing more."""
    seen = []

    def deny(event):
        seen.append(event)
        return {"ok": False, "message": "no such plan"}

    ended = run(tmp_path, BEHAVE, {"do": "count", "steps": 5}, deny)
    assert len(seen) == 1
    assert (ended.outcome, ended.code) == ("failed", "CHILD_DIED")
    assert "no such plan" in (tmp_path / "log").read_text()


def test_a_stop_is_told_at_the_next_event(tmp_path):
    """A child that is asked to stop learns it with the reply, and ends by itself."""
    seen = []
    ended = run(
        tmp_path,
        BEHAVE,
        {"do": "count", "steps": 1000},
        lambda event: seen.append(event) or {},
        stop_requested=lambda: len(seen) >= 2,
    )
    assert (ended.outcome, ended.returncode) == ("stopped", 0)
    assert len(seen) == 2


def test_a_child_that_does_not_stop_is_killed(tmp_path):
    """After its grace a child that was told to stop is killed, and the outcome is stopped."""
    seen = []
    ended = run(
        tmp_path,
        BEHAVE,
        {"do": "hang"},
        lambda event: seen.append(event) or {},
        stop_requested=lambda: bool(seen),
        grace_s=0.3,
    )
    assert (ended.outcome, ended.returncode, ended.failure) == ("stopped", -9, None)


def test_ctrl_c_asks_the_child_to_stop(tmp_path):
    """The first Ctrl-C reaches the parent alone, which lets the child end at its next event."""
    ended = run(tmp_path, BEHAVE, {"do": "interrupt parent"})
    assert (ended.outcome, ended.events) == ("stopped", 3)


def test_the_child_is_alone(tmp_path, monkeypatch):
    """A child has a process group of its own and none of the parent's secrets."""
    monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", "hunter2")
    seen = []
    run(tmp_path, BEHAVE, {"do": "environment"}, lambda event: seen.append(event) or {})
    assert seen[0]["group"] == seen[0]["pid"] != os.getpgrp()
    assert "EVIDENCE_KEY_PASSPHRASE" not in seen[0]["names"]


def test_a_child_whose_parent_is_gone_stops():
    """At the end of its input a child stops with an error instead of going on unrecorded."""
    channel = Channel(io.BytesIO(b'{"do":"count"}\n'), io.BytesIO())
    assert channel.job() == {"do": "count"}
    with pytest.raises(UsageError) as caught:
        channel.ask("step", step=1)
    assert caught.value.code == "CHILD_REFUSED"


def test_a_reply_to_another_event_is_refused():
    """A reply that belongs to another event never lets the child go on."""
    channel = Channel(io.BytesIO(canonical.encode({"n": 7, "ok": True}) + b"\n"), io.BytesIO())
    with pytest.raises(EvidenceError) as caught:
        channel.ask("step")
    assert caught.value.code == "CHILD_PROTOCOL"


def test_a_line_has_a_limit():
    """A line beyond the limit is no message, however well formed."""
    line = canonical.encode({"event": "x" * MAX_LINE_BYTES}) + b"\n"
    with pytest.raises(EvidenceError) as caught:
        parse_line(line)
    assert caught.value.code == "CHILD_PROTOCOL"


def test_failures_are_those_a_record_knows():
    """Every failure of the table is one that a `run.ended` record may name."""
    assert set(FAILURES.values()) <= set(get_args(FailureCode))
