"""The campaign of many writers: its slice holds on both stores, and it fails where something acknowledged is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from campaign_settings import settings_in

pytest.importorskip("psycopg", reason="needs the postgres extra")

from campaigns import writers
from postgres_server import INITDB

from ledger.store.durable import Row
from ledger.store.sqlite import SqliteStore

needs_server = pytest.mark.skipif(INITDB is None, reason="PostgreSQL's server is not installed")


@pytest.mark.slow
@needs_server
def test_slice_holds_on_both_stores(tmp_path):
    """Eight writers leave one chain with all they were told, in a file, on a server, and on one that is killed."""
    outcome = writers.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == len(writers.STORES)
    assert all(outcome.counts[f"{store}: acknowledged"] > 0 for store in writers.STORES)
    assert outcome.counts["server killed"] == writers.SLICE_KILLS


@pytest.mark.slow
@needs_server
def test_acknowledged_record_that_is_gone_is_found(tmp_path, monkeypatch):
    """With a store that leaves the second half out, the campaign says that acknowledged records are gone."""
    rows = SqliteStore.rows

    def half(store: SqliteStore, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        found = list(rows(store, start, stop))
        return iter(found[: len(found) // 2] if start == 0 and stop is None else found)

    monkeypatch.setattr(SqliteStore, "rows", half)
    outcome = writers.run(settings_in(tmp_path, case=0))
    assert any("acknowledged are gone" in line for line in outcome.failures)


def test_missing_server_fails_the_campaign(tmp_path, monkeypatch):
    """Without a server to try, the campaign fails and says why."""
    monkeypatch.setattr(writers, "INITDB", None)
    assert writers.run(settings_in(tmp_path)).failures == [writers.MISSING]
