"""A child of several processes: one voice, the same answer for all, and nothing left running however it ends."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.errors import UsageError
from runners.child import run_child
from runners.torchrun import MEETING, Place, launching, place_of

RANKS = "tests.runners.children.ranks"
SUPERVISE = f"""
import json, sys, time
from pathlib import Path
from runners.child import run_child

def answer(event):
    if event["event"] == "there":
        print(json.dumps(event["processes"]), flush=True)
    time.sleep(0.1)
    return {{}}

job = {{"do": "count", "steps": 1000}}
run_child({RANKS!r}, job, answer, Path(sys.argv[1]), threads=1, processes=2)
"""
WAIT_S = 120.0
LOOPBACK, LISTENS = "0100007F", "0A"
pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="looks into /proc"),
]


class Conversation:
    """What a child of two processes said, and how it ended; with an answer to its steps."""

    def __init__(self, folder, job, answer=lambda event: {}):
        if importlib.util.find_spec("torch") is None:
            pytest.skip("needs the train extra")
        self.log, self.job, self.answer = folder / "log", job, answer
        self.events = []

    def held(self, **options):
        """Have it; the conversation, with how it ended."""
        self.ended = run_child(
            RANKS, self.job, self.on_event, self.log, threads=1, processes=2, **options
        )
        return self

    def on_event(self, event):
        """Keep an event and answer it."""
        self.events.append(event)
        return {} if event["event"] == "there" else self.answer(event)

    def numbers(self):
        """The numbers of both processes."""
        return self.events[0]["processes"]

    def gone(self):
        """Both were there, and neither is any more."""
        return len(set(self.numbers())) == 2 and not any(map(_works, self.numbers()))


def _works(number):
    stat = Path(f"/proc/{number}/stat")
    return stat.exists() and stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"


def _listening(number):
    """The local addresses at which a process listens, as the kernel writes them."""
    folder = Path(f"/proc/{number}")
    sockets = set()
    for entry in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            sockets.add(str(entry.readlink()))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in (folder / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and f"socket:[{words[9]}]" in sockets:
                found.add(words[1].partition(":")[0])
    return found


def test_rank_0_speaks_for_both_and_nothing_listens_beyond_this_machine(tmp_path):
    """Each step is said once, by rank 0; launcher and ranks listen on loopback only; both come to the end."""
    addresses = {}

    def look(event):
        ranks = found.numbers()
        stat = Path(f"/proc/{ranks[0]}/stat").read_text(encoding="ascii")
        launcher = int(stat.rpartition(")")[2].split()[1])
        addresses.update({number: _listening(number) for number in (launcher, *ranks)})
        return {}

    found = Conversation(tmp_path, {"do": "count", "steps": 3}, look)
    found.held()
    steps = [event for event in found.events if event["event"] == "step"]
    assert [(event["step"], event["rank"]) for event in steps] == [(0, 0), (1, 0), (2, 0)]
    assert (found.ended.outcome, found.ended.returncode) == ("completed", 0)
    assert found.gone()
    assert len(addresses) == 3
    assert set().union(*addresses.values()) == {LOOPBACK}


def test_a_killed_supervisor_ends_both(tmp_path):
    """Nobody is there to answer any more: both stop at their next word, and the launcher with them."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra")
    command = [sys.executable, "-c", SUPERVISE, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        numbers = json.loads(supervisor.stdout.readline())
        supervisor.kill()
    deadline = time.monotonic() + WAIT_S
    while any(map(_works, numbers)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(numbers) == 2


def test_a_stop_reaches_both(tmp_path):
    """The wish to stop is heard by both at the same step, and they end by themselves."""
    found = Conversation(tmp_path, {"do": "count", "steps": 1000})
    found.held(stop_requested=lambda: True)
    assert (found.ended.outcome, found.ended.end["steps"]) == ("stopped", 1)
    assert found.gone()


def test_a_refused_event_ends_both(tmp_path):
    """Where the record cannot be written both are killed, and the error reaches the caller."""

    def refuse(event):
        raise UsageError("CHILD_REFUSED", "the disk is full")

    found = Conversation(tmp_path, {"do": "count", "steps": 1000}, refuse)
    with pytest.raises(UsageError, match="disk is full"):
        found.held()
    assert [event["event"] for event in found.events] == ["there", "step"]
    assert found.gone()


def test_the_death_of_one_ends_both(tmp_path):
    """Where the one that does not speak is killed, the run failed as a child that died, and neither is left."""
    found = Conversation(tmp_path, {"do": "die", "rank": 1, "steps": 1000}).held()
    assert (found.ended.outcome, found.ended.code) == ("failed", "CHILD_DIED")
    assert found.ended.failure == "child_died"
    assert "rank 1 ended with signal 9 (SIGKILL)" in found.ended.message
    assert found.gone()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_hangs_is_named(tmp_path, rank):
    """Nobody asked to stop: after the bound the run fails and says who did not answer, also where it is the one who speaks."""
    found = Conversation(tmp_path, {"do": "hang", "rank": rank, "steps": 5}).held(rank_wait_s=3)
    assert (found.ended.outcome, found.ended.code) == ("failed", "CHILD_DIED")
    assert found.ended.message == f"rank {rank} did not answer within 3 seconds (rank_wait_s)"
    assert found.gone()


@pytest.mark.parametrize(
    "job",
    [
        pytest.param({"do": "fail", "rank": 1, "steps": 1000}, id="rank 1 alone"),
        pytest.param({"do": "fail together"}, id="both"),
    ],
)
def test_an_error_at_any_rank_keeps_its_code(tmp_path, job):
    """An error of ours is told by its code, wherever it was met, and the others do not wait for ever."""
    found = Conversation(tmp_path, job).held()
    assert (found.ended.outcome, found.ended.code) == ("failed", "MODEL_UNSAFE")
    assert found.ended.failure == "bad_input"
    assert "pickle" in found.ended.message
    assert found.gone()


def test_ranks_that_disagree_are_an_error(tmp_path):
    """What must be the same at each rank and is not, ends the run by code before anything is recorded."""
    found = Conversation(tmp_path, {"do": "disagree"}).held()
    assert (found.ended.outcome, found.ended.code) == ("failed", "RANKS_DISAGREE")
    assert [event["event"] for event in found.events] == ["there"]


def test_a_rank_that_hangs_is_killed_after_the_grace(tmp_path):
    """Told to stop and not coming back, all ranks are killed with their launcher."""
    found = Conversation(tmp_path, {"do": "hang", "rank": 1, "steps": 1})
    found.held(stop_requested=lambda: bool(found.events), grace_s=1.0)
    assert (found.ended.outcome, found.ended.failure) == ("stopped", None)
    assert found.gone()


def test_the_meeting_place_is_private_and_goes_away():
    """One process is started as before; several meet in a folder of their own that is removed."""
    with launching("a.module", 1) as (command, more):
        assert (command[-2:], more) == (["-m", "a.module"], {})
    with launching("a.module", 2) as (command, more):
        folder = Path(more[MEETING]).parent
        assert folder.stat().st_mode & 0o077 == 0
        assert "--nproc-per-node=2" in command
        assert not [word for word in command if "tcp" in word]
        assert more["GLOO_SOCKET_IFNAME"].startswith("lo")
    assert not folder.exists()


def test_a_place_is_read_from_the_environment():
    """Rank and size count only together with our own meeting place."""
    told = {"RANK": "1", "WORLD_SIZE": "2"}
    assert place_of(told) is None
    assert place_of(told | {MEETING: "/x/ranks"}) == Place(1, 2, Path("/x/ranks"))
    assert MEETING not in os.environ
