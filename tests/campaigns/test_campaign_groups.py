"""The campaign of spoiled groups holds, and sees a verifier that looks less closely."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import groups
from campaigns.group_faults import FAULTS

from verifiers.learning import groups as rules
from verifiers.rewards import earned


def test_the_slice_holds(tmp_path):
    """Every way of being wrong is tried and refused by its code, and every good group is accepted."""
    outcome = groups.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == groups.ATTACKS[False] > 0
    assert {f"attack {name}" for name in FAULTS} <= set(outcome.counts)
    assert {f"refused {fault.code}" for fault in FAULTS.values()} <= set(outcome.counts)
    assert outcome.counts["control: accepted"] == groups.CONTROLS[False]


def test_one_case_again(tmp_path):
    """A case is made alike when it is run alone."""
    outcome = groups.run(settings_in(tmp_path, case=5))
    assert outcome.cases == 1
    assert outcome.counts[f"attack {list(FAULTS)[5]}"] == 1


@pytest.mark.parametrize(
    ("module", "check", "missed"),
    [
        (rules, "_check_distinct", "member twice, same line"),
        (rules, "_check_logprobs", "a log-probability positive"),
        (rules, "_check_failed", "environment failed"),
        (rules, "_check_state", "foreign policy state"),
        (rules, "_check_whole", "cut in the middle of a turn"),
        (rules, "_check_same", "a member of another task"),
        (earned, "check_earned", "rewards invented"),
    ],
)
def test_a_verifier_that_looks_less_closely_fails(tmp_path, monkeypatch, module, check, missed):
    """Without one of the checks the campaign says which groups got through, or under which other code."""
    monkeypatch.setattr(module, check, lambda *_: None)
    outcome = groups.run(settings_in(tmp_path))
    assert any(missed in line for line in outcome.failures)


def test_a_verifier_that_refuses_all_fails(tmp_path, monkeypatch):
    """Refusing good groups is no strength: the controls say so."""
    monkeypatch.setattr(earned, "TOLERANCE", -1.0)
    outcome = groups.run(settings_in(tmp_path))
    assert any("a good group was refused" in line for line in outcome.failures)
