"""The campaign `rollback` holds, goes through every class, and fails where a check of the product is taken away."""

from __future__ import annotations

import pytest
from campaigns import rollback, rollback_kill, rollback_scene
from campaigns.report import Settings
from campaigns.rollback_attacks import ATTACKS

from ledger import highwater, restores
from ledger.admission import Chain
from ledger.appending import Appending
from verifiers import ending


def settings(folder, **changes) -> Settings:
    """A quiet slice."""
    plain = {"seed": 1, "full": False, "folder": folder, "workers": 1}
    return Settings(**{**plain, "progress": lambda *_: None, **changes})


@pytest.mark.slow
def test_the_slice_holds_and_goes_through_every_class(tmp_path):
    """No case fails; each attack, fate of the file, seal, point of a kill and sort of step occurs."""
    outcome = rollback.run(settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == rollback.SLICE_CASES
    words = "\n".join(outcome.counts)
    for name in ATTACKS:
        assert f"\n{name}, high water" in f"\n{words}"
    for mark in rollback_scene.MARKS:
        assert f"high water {mark}: " in words
    for seal in rollback_scene.SEALS:
        assert f"expected seal {seal}" in words
    for point in rollback_kill.POINTS:
        assert f"killed, {point}: " in words
    for became in ("LEDGER_ROLLED_BACK, restored", "LEDGER_FORKED, not restored", "no alarm"):
        assert f": {became}" in words
    for step in ("appended", "put back", "restored", "restored, then a crash", "walk"):
        assert step in words


def test_a_case_is_the_same_again(tmp_path):
    """One case by its number gives the same counts twice."""
    counts = [rollback.run(settings(tmp_path, case=5)).counts for _ in range(2)]
    assert counts[0] == counts[1]


def failures(tmp_path, cases) -> list[str]:
    """What some cases of the slice find."""
    found = [rollback.run(settings(tmp_path, case=case)).failures for case in cases]
    return [line for lines in found for line in lines]


def cases_of(family: str, count: int) -> list[int]:
    """The first cases of a family."""
    size = len(rollback.PATTERN)
    numbers = [number for number in range(200) if rollback.PATTERN[number % size] == family]
    return numbers[:count]


def blind(*_words, **_options):
    """A check that finds nothing."""


def deaf(*_words, **_options) -> bool:
    """A comparison that never tells of a difference."""
    return True


SABOTAGE = {
    "writers are never refused": (Appending, "_check_high_water", blind, "attack", 8),
    "verify passes over the mark": (ending, "_check_mark", blind, "attack", 8),
    "verify is silent on restores": (ending, "_say_restores", blind, "attack", 8),
    "any restore settles any mark": (restores, "names", deaf, "walk", 6),
    "the file never goes forward": (highwater, "write", blind, "kill", 2),
    "the mark is never lowered": (highwater, "lower", deaf, "kill", 8),
    "a forged restore is taken for root's": (Chain, "_check_statement", blind, "attack", 15),
    "nothing settles a mark": (restores, "naming", blind, "kill", 8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SABOTAGE)
def test_the_campaign_fails_where_a_check_is_taken_away(tmp_path, monkeypatch, name):
    """A product without this check is found out by a few cases of one family."""
    owner, attribute, instead, family, count = SABOTAGE[name]
    monkeypatch.setattr(owner, attribute, instead)
    found = failures(tmp_path, cases_of(family, count))
    assert any(": WrongError: " in line for line in found), found
