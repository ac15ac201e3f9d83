"""The campaign of planted leaks holds, and sees an audit that looks less closely."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns import leaks
from campaigns.report import Settings

from verifiers.data import leakage


def settings(folder: Path, case: int | None = None) -> Settings:
    """A slice."""
    return Settings(1, full=False, folder=folder, workers=1, progress=lambda *_: None, case=case)


def test_the_slice_holds(tmp_path):
    """Every way of leaking is tried and found, no clean row is named, and the control is clean."""
    outcome = leaks.run(settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == leaks.LEAKS[False]
    assert {f"{way}: found" for way in leaks.WAYS} <= set(outcome.counts)
    assert outcome.counts["control, a clean split: clean"] == 1
    assert outcome.counts["clean: left alone"] == leaks.LEAKS[False]
    assert set(outcome.figures) == {"levels", "recall", "false_alarms"}


def test_one_case_again(tmp_path):
    """A case is made alike when it is run alone."""
    assert leaks.run(settings(tmp_path, case=4)).counts["other ids: found"] == 1


@pytest.mark.parametrize(
    ("name", "replacement", "missed"),
    [
        ("masked", lambda _: "", "other ids"),
        ("normalised", lambda text: text, "full width"),
    ],
)
def test_an_audit_that_looks_less_closely_fails(tmp_path, monkeypatch, name, replacement, missed):
    """Without a level, and without the one that finds edits too, leaks are missed and the campaign says which."""
    monkeypatch.setattr(leakage, name, replacement)
    monkeypatch.setattr(leakage, "first_alike", lambda *_: {})
    outcome = leaks.run(settings(tmp_path))
    assert any(missed in line for line in outcome.failures)
    assert outcome.figures["recall"] < leaks.MIN_RECALL


def test_false_alarms_fail(tmp_path, monkeypatch):
    """An audit to which all texts are alike raises false alarms, and the control finds them as well."""
    monkeypatch.setattr(leakage, "masked", lambda _: "all texts are one")
    outcome = leaks.run(settings(tmp_path))
    assert "control: a split without a leak has findings" in outcome.failures
    assert outcome.figures["false_alarms"] == 1.0
