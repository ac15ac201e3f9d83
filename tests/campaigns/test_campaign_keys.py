"""The campaign `keys` holds, goes through every class, and fails where the product, a library or a control is off."""

from __future__ import annotations

import random

import pytest
from campaigns import keys
from campaigns.report import Settings
from campaigns.signature_cases import CLASSES
from campaigns.signature_rule import key_refusal, signature_refusal

from ledger import ed25519


def settings(tmp_path, **changes) -> Settings:
    """A quiet slice."""
    plain = {"seed": 1, "full": False, "folder": tmp_path, "workers": 1}
    return Settings(**{**plain, "progress": lambda *_: None, **changes})


def outcome_of(number: int, tmp_path, **changes):
    """What one case comes to."""
    return keys.run(settings(tmp_path, case=number, **changes))


def number_of(name: str) -> int:
    """The first case of a class."""
    return [make.__name__ for make in CLASSES].index(name)


@pytest.mark.slow
def test_the_slice_holds_and_goes_through_every_class(tmp_path):
    """No case escapes; each class, each reason of refusal, each door and each sort of key occurs."""
    outcome = keys.run(settings(tmp_path))
    assert outcome.failures == []
    assert outcome.cases > keys.SLICE
    words = " | ".join(outcome.counts)
    for make in CLASSES:
        assert f"{make.__name__}: " in words
    for reason in (
        "S1 length",
        "S2 S not below the order",
        "S3 good only with the cofactor",
        "S3 good only with the cofactor, R of low order",
        "S3 R not canonical, else good",
        "S3 R off the curve",
        "S3 another R",
        "S4 R of low order; OpenSSL accepts",
        "key refused WEAK_KEY",
        "key refused KEY_MALFORMED",
        "accepted, key of mixed order",
        "key.enrolled: refused WEAK_KEY",
        "root.rotated: refused KEY_MALFORMED",
        "ledger.created: refused WEAK_KEY",
        "good only with the cofactor: SIGNATURE_INVALID",
        "good: accepted",
    ):
        assert reason in words, reason
    assert outcome.figures["libsodium accepts beyond the rule"] == 0
    assert outcome.figures["OpenSSL accepts beyond the rule"] > 0


def test_cases_are_the_same_in_every_run():
    """A class makes the same case from the same source, and another from another."""
    for make in CLASSES:
        one, same, other = (make(random.Random(seed), 5) for seed in (1, 1, 2))
        assert one == same
        assert make.__name__ == "both_of_low_order" or one != other


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("low_order_r_cancelling", ("_LOW_ORDER", frozenset())),
        ("low_order_key", ("check_public", lambda _: None)),
    ],
)
def test_a_check_taken_out_of_the_product_is_noticed(monkeypatch, tmp_path, name, change):
    """Without the look-up of R, or the check of the key, the product accepts what the rule refuses."""
    ed25519._enrolled.cache_clear()
    monkeypatch.setattr(ed25519, *change)
    number = number_of(name)
    failed = outcome_of(number, tmp_path).failures
    ed25519._enrolled.cache_clear()
    assert len(failed) == 1
    assert failed[0].startswith(f"case {number}: {name}: the product says accepted")


def test_a_product_that_refuses_too_much_is_noticed(monkeypatch, tmp_path):
    """A verifier that refuses everything fails at the control."""
    monkeypatch.setattr(ed25519, "verify", lambda *_: False)
    assert outcome_of(number_of("honest"), tmp_path).failures


def test_a_library_that_refuses_good_ones_is_noticed(monkeypatch, tmp_path):
    """Were libsodium stricter than the rule, a switch to it would lose records: that is a failure."""
    monkeypatch.setitem(keys.LIBRARIES, "libsodium", lambda _: False)
    assert outcome_of(number_of("torsion_cancelling"), tmp_path).failures


def test_a_library_that_accepts_more_is_counted_by_reason(monkeypatch, tmp_path):
    """A library with the cofactored equation is no failure of the product, and its figure says how much it differs."""
    monkeypatch.setitem(keys.LIBRARIES, "libsodium", lambda _: True)
    outcome = outcome_of(number_of("challenge_not_reduced"), tmp_path)
    assert outcome.failures == []
    assert outcome.figures["libsodium accepts beyond the rule"] == 1
    (what,) = outcome.counts
    assert "S3 good only with the cofactor; libsodium accepts" in what


def test_a_weak_key_that_a_door_lets_in_is_noticed(monkeypatch, tmp_path):
    """Without the check at enrolment, rotation and record 0, the doors part of the campaign fails."""
    monkeypatch.setattr(ed25519, "check_public", lambda _: None)
    failures = [failure for _, failure in keys._doors() if failure]
    assert {failure.split(" at ")[1].split(":")[0] for failure in failures} == set(keys._DOORS)


def test_the_rule_agrees_with_itself_on_a_plain_signature():
    """The oracle accepts an honest signature and names the reason for each way to spoil it."""
    key = ed25519.PrivateKey.from_seed(b"k" * 32)
    good = key.sign(b"m")
    assert key_refusal(key.public) is None
    assert signature_refusal(key.public, b"m", good) is None
    assert signature_refusal(key.public, b"n", good) == "S3 another R"
    assert signature_refusal(key.public, b"m", good[:-1]) == "S1 length"
    assert (
        signature_refusal(key.public, b"m", good[:32] + b"\xff" * 32) == "S2 S not below the order"
    )
