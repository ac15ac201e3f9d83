"""The fuzz campaign: its targets hold on their seeds, notice a broken parser, and the fuzzer reports what it finds."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from campaigns import fuzz, fuzz_chain, fuzz_ledger
from campaigns.fuzz_oracle import Escaped
from campaigns.fuzz_targets import TARGETS, Target
from campaigns.report import ROOT, Settings

from ledger import canonical
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError
from verifiers.learning import tensors

BROKEN = """
from campaigns.fuzz_targets import Target

def check(data):
    if data[:2] == b"ab":
        raise ValueError("the parser fell over")

TARGETS = {"broken": Target(check, lambda: [b"a"], 1, 16)}
"""


@pytest.mark.parametrize("name", TARGETS)
def test_target_holds_on_its_seeds(name):
    """Each target has seeds, and they, whole and cut short, break nothing."""
    seeds = TARGETS[name].seeds()
    assert seeds
    for seed in seeds:
        for data in (seed, seed[: len(seed) // 2], seed + b"\0", b""):
            TARGETS[name].check(data)


def test_a_decoder_that_repairs_is_noticed(monkeypatch):
    """Where reading lets another form pass, writing does not give the bytes again, and the target says so."""
    monkeypatch.setattr(canonical, "decode", canonical.loads)
    with pytest.raises(Escaped, match="another encoding"):
        TARGETS["canonical"].check(b'{"b":1,"a":2}')


def test_a_parser_that_raises_anything_else_is_noticed(monkeypatch):
    """An error outside the two families leaves the target and so reaches the fuzzer."""

    def careless(*_):
        raise KeyError("dtype")

    monkeypatch.setattr(tensors, "_entry", careless)
    with pytest.raises(KeyError):
        TARGETS["tensors"].check(TARGETS["tensors"].seeds()[0])


def test_a_verifier_that_looks_away_is_noticed(monkeypatch):
    """With the signature check taken away, changed rows are found good, and the target says so."""
    monkeypatch.setattr(fuzz_chain, "verify_chain", lambda *_, **__: _Blind())
    with pytest.raises(Escaped, match="a changed ledger is found good"):
        fuzz_chain.check(bytes((0, 2, 0, 1, 0, 5, 0, 9)))


class _Blind:
    wrong = ()


def test_seconds_are_dealt_by_weight():
    """Every target gets at least a second, and the shares add up to no more than there is, rounding aside."""
    dealt = fuzz.shares(list(TARGETS), 7200)
    assert min(dealt.values()) >= fuzz.LEAST_S
    assert 7200 - len(TARGETS) <= sum(dealt.values()) <= 7200
    by_weight = Counter({name: TARGETS[name].weight for name in TARGETS})
    assert dealt[by_weight.most_common(1)[0][0]] == max(dealt.values())


@pytest.mark.slow
def test_what_breaks_a_target_is_reported_with_its_bytes(tmp_path, monkeypatch):
    """The real fuzzer finds two bytes that break a target, and the report holds them and what was raised."""
    (tmp_path / "broken_targets.py").write_text(BROKEN)
    path = os.pathsep.join(str(item) for item in (ROOT, ROOT / "tools", ROOT / "tests", tmp_path))
    monkeypatch.setenv("PYTHONPATH", path)
    settings = Settings(1, full=False, folder=tmp_path, workers=1, progress=lambda *_: None)
    target = Target(len, lambda: [b"a"], 1, 16)
    found = fuzz.fuzz(fuzz.make_environment(), "broken", target, 30, settings, "broken_targets")
    assert found.broken
    assert found.broken[0].startswith("crash base64 YW")
    assert "ValueError: the parser fell over" in found.broken[0]


@pytest.mark.parametrize("number", [2**40, 2**63 - 1, 0, -1])
def test_a_passphrase_that_would_take_days_is_not_tried(number, tmp_path):
    """A key file asks for its rounds of PBKDF2 before they are run, and for too many it is refused."""
    path = tmp_path / "key.pem"
    path.write_bytes(fuzz_ledger.encrypted_pem(fuzz_ledger.pbkdf2(number)))
    path.chmod(0o600)
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(path, b"x")
    assert (caught.value.code, caught.value.actual) == ("KEY_MALFORMED", f"{number:,} rounds")


def test_a_passphrase_that_would_take_all_memory_is_not_tried(tmp_path):
    """A key file whose passphrase goes through scrypt is refused, whatever its costs."""
    path = tmp_path / "key.pem"
    path.write_bytes(fuzz_ledger.encrypted_pem(fuzz_ledger.scrypt(2**24, 8, 1)))
    path.chmod(0o600)
    with pytest.raises(EvidenceError) as caught:
        PrivateKey.load(path, b"x")
    assert (caught.value.code, caught.value.actual) == ("KEY_MALFORMED", "another way")
