"""The campaign `suspects` holds, meets every outcome, and fails where the product's definition is bent."""

from __future__ import annotations

import random

import pytest
from campaigns import suspects as campaign
from campaigns.report import Settings

from ledger import suspects as definition
from ledger.checks import CHECKS


def settings(tmp_path, **changes) -> Settings:
    """A quiet slice."""
    plain = {"seed": 1, "full": False, "folder": tmp_path, "workers": 1}
    return Settings(**{**plain, "progress": lambda *_: None, **changes})


def failures(tmp_path, cases: int = 4) -> list[str]:
    """The failures of the first few cases."""
    found: list[str] = []
    for case in range(cases):
        found += campaign.run(settings(tmp_path, case=case)).failures
    return found


@pytest.mark.slow
def test_the_slice_holds_and_meets_every_outcome(tmp_path):
    """No ledger disagrees with brute force; sound and void promotions, own suspects and descendants all occur."""
    outcome = campaign.run(settings(tmp_path))
    assert (outcome.failures, outcome.cases) == ([], campaign.SLICE)
    for what in (
        "record own",
        "record descendant",
        "record sound",
        "promotion void",
        "promotion sound",
        "ledger without suspects",
        *(f"{kind} EVIDENCE_SUSPECT" for kind in campaign.BUILT_ON_EVIDENCE),
        *(f"{kind} admitted" for kind in campaign.BUILT_ON_EVIDENCE),
    ):
        assert outcome.counts[what] > 0, what


def test_a_case_is_the_same_again(tmp_path):
    """The same seed and case grow the same ledger."""
    one, two = (campaign._grown(random.Random(7)) for _ in range(2))
    assert one.chain.last_id == two.chain.last_id


def test_without_rule_g6_the_campaign_fails(monkeypatch, tmp_path):
    """A grant that is admitted on suspect evidence is a failure."""
    kept = {
        kind: checks[:1]
        for kind, checks in CHECKS.items()
        if kind.startswith(("gate", "promotion"))
    }
    for kind, checks in kept.items():
        monkeypatch.setitem(CHECKS, kind, checks)
    assert any("should be EVIDENCE_SUSPECT" in failure for failure in failures(tmp_path))


def test_a_walk_that_forgets_the_statement_s_key_fails(monkeypatch, tmp_path):
    """Were only the writer's key looked at, a lost reviewer's statements would pass."""
    original = definition.suspect_key

    def by_writer_only(record, windows):
        return original(record._replace(statement=None), windows)

    monkeypatch.setattr(definition, "suspect_key", by_writer_only)
    assert failures(tmp_path, 12)


def test_a_walk_that_stops_after_one_step_fails(monkeypatch, tmp_path):
    """Were descent not followed through, what rests on suspects from afar would pass."""
    monkeypatch.setattr(definition, "rests_on", lambda record: [])
    assert failures(tmp_path)
