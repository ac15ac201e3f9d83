"""What the ranks of a run leave for the supervisor: who did not come, and who was killed."""

from __future__ import annotations

import signal

import pytest

from runners.rank_notes import RankNotes, named


def test_who_has_not_come_is_known(tmp_path):
    """A rank that came to fewer exchanges, or to none at all, is behind."""
    notes = RankNotes(tmp_path)
    for rank, count in ((0, 1), (0, 2), (1, 1)):
        notes.came(rank, count)
    assert notes.behind(3, 2) == [1, 2]
    assert notes.behind(2, 1) == []


@pytest.mark.parametrize(
    ("word", "ends", "why"),
    [
        pytest.param(None, {}, None, id="nothing"),
        pytest.param(None, {1: -9, 0: -15}, "rank 1 ended with signal 9 (SIGKILL), often because memory ran out", id="killed, the other ended by the launcher"),
        pytest.param(None, {0: 1, 1: -15}, None, id="an error, the other ended by the launcher"),
        pytest.param(None, {1: -15}, "rank 1 ended with signal 15 (SIGTERM)", id="ended from outside"),
        pytest.param("rank 0 did not answer", {0: -9}, "rank 0 did not answer", id="hung, then killed by the launcher"),
    ],
)  # fmt: skip
def test_why_a_run_broke_off(tmp_path, word, ends, why):
    """A rank that was waited for in vain comes first, then a signal that was not the launcher's own way to end the others."""
    notes = RankNotes(tmp_path)
    if word:
        notes.say(word)
        notes.say("later words do not count")
    if ends:
        notes.ended(ends)
    assert notes.why() == why


def test_signals_have_names():
    """Numbers without a name are numbers."""
    assert named(-signal.SIGSEGV) == "signal 11 (SIGSEGV)"
    assert named(-1000) == "signal 1000"
