"""The campaign of readers beside writers: its slice holds, and it fails where a reader sees less than it says."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import crash_readers
from campaigns.crashing import STRACE_MISSING


@pytest.mark.slow
def test_slice_holds_for_readers_alive_dead_and_stopped(tmp_path):
    """Readers see whole prefixes, and neither a dead nor a stopped one stops a writer."""
    outcome = crash_readers.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert all(outcome.counts[way] == 1 for way in crash_readers.WAYS)
    assert outcome.counts["readers killed"] == 1
    assert outcome.counts["stood still to the end"] == 1
    assert all(outcome.counts[f"looks: {what}"] > 0 for what in ("read", "verify"))


def test_reader_that_leaves_a_row_out_is_found(tmp_path, monkeypatch):
    """With readers whose store leaves a row out, the campaign reports that they saw no whole prefix."""
    monkeypatch.setattr(crash_readers, "READER", "shortsighted_reader")
    outcome = crash_readers.run(settings_in(tmp_path, case=0))
    assert any("no whole prefix" in line for line in outcome.failures)


def test_missing_strace_fails_the_readers_campaign(tmp_path, monkeypatch):
    """Without the tool that stops a reader in the middle of a read, the campaign fails and says why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert crash_readers.run(settings_in(tmp_path)).failures == [STRACE_MISSING]
