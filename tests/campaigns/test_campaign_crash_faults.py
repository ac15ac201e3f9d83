"""The campaign of failing system calls: its slice holds, and it fails where an error escapes."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import crash_faults, crash_places
from campaigns.crashing import STRACE_MISSING, Site
from campaigns.report import Outcome


@pytest.mark.slow
def test_slice_holds_for_every_call(tmp_path):
    """Whatever call fails, the process answers with a code or a warning, and nothing is lost."""
    outcome = crash_faults.run(settings_in(tmp_path))
    assert outcome.failures == []
    sorts = {count.split(":")[0] for count in outcome.counts}
    assert sorts >= {f"{call} fails" for call in crash_faults.ERRORS} | {"full disk"}
    assert sorts >= {"job append", "job init", "job mixed"}
    places = {name for name, (_, _, mounts) in crash_places.PLACES.items() if not mounts}
    assert sorts >= places
    if "read-only and tiny file systems" not in outcome.excluded:
        assert sorts >= set(crash_places.PLACES)


@pytest.fixture
def one_fault(monkeypatch):
    """A campaign of one case: the first write of a blob finds the disk full."""
    fault = crash_faults.Fault("blob", ("write",), "ENOSPC", "1")
    monkeypatch.setattr(crash_faults, "_cases", lambda *_: [fault])


def test_error_that_escapes_raw_is_found(tmp_path, monkeypatch, one_fault):
    """With the boundary taken away, the system's own error is a failure of the campaign."""
    monkeypatch.setattr(crash_faults, "WORKER", "careless_worker")
    outcome = crash_faults.run(settings_in(tmp_path, case=0))
    assert any("escaped: OSError" in line for line in outcome.failures)


def test_same_fault_is_one_clean_error_with_the_boundary(tmp_path, one_fault):
    """The same case on the ledger as it is: refused, with a code that says why."""
    outcome = crash_faults.run(settings_in(tmp_path, case=0))
    assert outcome.failures == []
    assert outcome.counts["write fails: refused DISK_FULL"] == 1


def test_answer_other_than_the_table_s_is_found(tmp_path, monkeypatch):
    """A place that answers other than it must is a failure."""
    call, _, mounts = crash_places.PLACES["stale files"]
    monkeypatch.setattr(crash_places, "PLACES", {"stale files": (call, "refused", mounts)})
    outcome = Outcome()
    crash_places.run(settings_in(tmp_path), Site.make(tmp_path / "template"), outcome)
    assert outcome.failures == ["stale files: answered done, not refused"]


def test_missing_strace_fails_the_campaign(tmp_path, monkeypatch):
    """Without the tool that makes calls fail, the campaign fails and says why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert crash_faults.run(settings_in(tmp_path)).failures == [STRACE_MISSING]


@pytest.fixture
def failing_syncs(monkeypatch):
    """A campaign in which each sync of an append fails in turn, and the process then dies without closing."""
    faults = [crash_faults.Fault("dying", ("fsync",), "EIO", str(n)) for n in range(1, 5)]
    monkeypatch.setattr(crash_faults, "_cases", lambda *_: faults)
    monkeypatch.setattr(crash_places, "PLACES", {})


def test_record_refused_for_a_failed_sync_does_not_come_back(tmp_path, failing_syncs):
    """A group that was refused because its sync failed is not in the ledger that is recovered after the kill."""
    outcome = crash_faults.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.counts["fsync fails: refused LEDGER_UNREADABLE"] > 1


def test_record_that_comes_back_is_found(tmp_path, monkeypatch, failing_syncs):
    """With a store that does not write over a failed commit, the campaign sees the refused record return."""
    monkeypatch.setattr(crash_faults, "WORKER", "forgiving_worker")
    outcome = crash_faults.run(settings_in(tmp_path))
    assert any("a record refused" in line for line in outcome.failures)
