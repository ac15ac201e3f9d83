"""The campaign `offices` holds, meets every refusal, and fails where admission forgets one rule about keys."""

from __future__ import annotations

import pytest
from campaigns import offices
from campaigns.report import Settings

from ledger import admission
from ledger.checks import CHECKS, advance


def settings(tmp_path, **changes) -> Settings:
    """A quiet slice."""
    plain = {"seed": 1, "full": False, "folder": tmp_path, "workers": 1}
    return Settings(**{**plain, "progress": lambda *_: None, **changes})


def failures(tmp_path, cases: int = 12) -> list[str]:
    """The failures of the first cases."""
    found: list[str] = []
    for case in range(cases):
        found += offices.run(settings(tmp_path, case=case)).failures
    return found


@pytest.mark.slow
def test_the_slice_holds_and_meets_every_refusal(tmp_path):
    """Model and admission agree on every act, and each way to be out of turn occurs."""
    outcome = offices.run(settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == offices.SLICE * offices.ACTS
    for what in (
        *(f"key.enrolled: {code}" for code in ("KEY_ID_WRONG", "KEY_TWICE", "KEY_BACKDATED")),
        *(f"key.enrolled: {code}" for code in ("KEY_ROLES", "REVIEW_KEY_SHARED")),
        "key.enrolled: AUDIT_KEY_SHARED",
        *(f"key.revoked: {code}" for code in ("KEY_UNKNOWN", "KEY_ROLES", "KEY_BACKDATED")),
        *(f"root.rotated: {code}" for code in ("ROOT_WRONG", "KEY_TWICE", "STATEMENT_ROLE")),
        "leakage.accepted: STATEMENT_ROLE",
        "source.ingested: ROLE_MISSING",
        *(f"{kind}: admitted" for kind in ("key.enrolled", "key.revoked", "root.rotated")),
        *(f"{kind}: KEY_OUT_OF_WINDOW" for kind in ("note.added", "root.rotated")),
    ):
        assert outcome.counts[what] > 0, what


@pytest.mark.parametrize("kind", ["key.enrolled", "key.revoked", "root.rotated"])
def test_without_its_checks_a_kind_is_admitted_out_of_turn(monkeypatch, tmp_path, kind):
    """Taking the rules of one kind away is noticed within a few cases, as is an error that gets out raw."""
    monkeypatch.setitem(CHECKS, kind, ())
    found = failures(tmp_path)
    assert any(f"{kind} is admitted" in line or f"{kind} is raw" in line for line in found)


def test_a_revocation_that_moves_nothing_is_noticed(monkeypatch, tmp_path):
    """A reducer that forgets to end the window parts from the model."""

    def forgetful(state, record, tree, resolve):
        if record.kind != "key.revoked":
            advance(state, record, tree, resolve)

    monkeypatch.setattr(admission, "advance", forgetful)
    assert failures(tmp_path)
