"""The campaign of damaged logs: its slice holds, and it fails where a lost tail is not told."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import crash_wal

from ledger.appending import Appending
from ledger.store.sqlite import SqliteStore


@pytest.mark.slow
def test_slice_holds_for_every_sort_of_damage(tmp_path):
    """However the log is damaged, a prefix is left, and a tail that is lost is told."""
    outcome = crash_wal.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == crash_wal.SLICE_CASES
    sorts = ("log cut", "log zeroed to its end", "log zeroed for some bytes", "log overwritten")
    sorts += ("log removed", "index of the log damaged", "log cut and its index damaged")
    assert all(outcome.counts[sort] > 0 for sort in sorts)
    assert outcome.counts["a tail is lost"] > 0
    assert outcome.counts["nothing marked is lost"] > 0


def test_writer_that_does_not_look_at_its_high_water_file_is_found(tmp_path, monkeypatch):
    """With the check at opening taken away, the campaign reports that nobody told the writer."""
    monkeypatch.setattr(Appending, "_check_high_water", lambda self: None)
    outcome = crash_wal.run(settings_in(tmp_path, case=8))
    assert any("a writer is told []" in line for line in outcome.failures)


def test_reader_that_gets_other_rows_is_found(tmp_path, monkeypatch):
    """With a store that leaves a row out, the campaign reports that what is read is no prefix."""
    rows = SqliteStore.rows
    looking = crash_wal._look

    def look(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(
                SqliteStore,
                "rows",
                lambda self, start=0, stop=None: (
                    row for row in rows(self, start, stop) if row[0] != 2
                ),
            )
            return looking(*arguments, **options)

    monkeypatch.setattr(crash_wal, "_look", look)
    outcome = crash_wal.run(settings_in(tmp_path, case=5))
    assert any("no prefix" in line for line in outcome.failures)
