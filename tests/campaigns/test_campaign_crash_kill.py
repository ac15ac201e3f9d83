"""The campaign of killed writers: its slice holds, and it fails where an acknowledgement was worth nothing."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import crash_kill, crashing


@pytest.mark.slow
def test_slice_holds_for_every_way_of_its_first_cases(tmp_path):
    """Killed at random moments and at exact system calls, four writers lose nothing acknowledged."""
    outcome = crash_kill.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == crash_kill.SLICE_CASES
    for way in crash_kill.WAYS[: crash_kill.SLICE_CASES]:
        assert outcome.counts[f"killed at {way}"] == 1
    assert outcome.counts["records acknowledged by children"] > 0
    assert outcome.counts["control: a ledger nobody struck"] == 1


def test_append_that_stores_nothing_is_found(tmp_path, monkeypatch):
    """With children whose store drops rows, the campaign reports lost acknowledgements."""
    monkeypatch.setattr(crash_kill, "APPENDER", "forgetful_appender")
    outcome = crash_kill.run(settings_in(tmp_path, case=1))
    assert any("acknowledged" in line for line in outcome.failures)


def test_high_water_file_that_leads_is_found(tmp_path):
    """A high-water file ahead of its ledger is a failure of the oracle's look."""
    site = crashing.Site.make(tmp_path / "site")
    oracle = crashing.Oracle(site)
    assert oracle.look() == []
    other = site.copy(tmp_path / "older")
    with site.open() as ledger:
        ledger.append("note.added", {"text": "more"})
    older = crashing.Oracle(crashing.Site(other.folder))
    for path in site.state.iterdir():
        (other.state / path.name).write_bytes(path.read_bytes())
    assert any("LEDGER_ROLLED_BACK" in line for line in older.look())


def test_missing_strace_fails_the_campaign(tmp_path, monkeypatch):
    """Without the tool that makes kill points exact, the campaign fails and says why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = crash_kill.run(settings_in(tmp_path))
    assert outcome.failures == [crashing.STRACE_MISSING]
    assert outcome.cases == 0
