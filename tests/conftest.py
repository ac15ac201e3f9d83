"""Shared fixtures: hypothesis that is repeatable, and a fresh ledger on disk."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from world import ORIGIN, WRITER_ROLES, SeqClock, key

from ledger.book import Ledger

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Whoever runs the tests may have put them in the background or under nohup: a Ctrl-C and a hang-up count here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a test's ledger lies."""
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder: Path):
    """A new ledger with a writer that ingests, trains, judges and seals."""
    made = Ledger.create(
        folder,
        origin=ORIGIN,
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=WRITER_ROLES,
        nonce=f"{1:032x}",
        clock=SeqClock(),
    )
    with made:
        yield made
