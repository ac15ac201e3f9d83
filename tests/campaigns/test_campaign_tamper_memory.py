"""The campaign of tampering in memory: its slice holds, and a verifier with a hole in it does not pass."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import pytest
from campaigns import case_pool, tamper_memory
from campaigns.report import Settings
from campaigns.tamper import base as bases
from campaigns.tamper.attack import Attack
from campaigns.tamper.judge import Escaped, check, judged, same

from ledger import canonical, ed25519
from ledger.admission import Chain
from ledger.errors import EvidenceError
from verifiers import chain as verifier


@pytest.fixture
def settings(tmp_path) -> Settings:
    """A slice's settings."""
    return Settings(
        seed=1, full=False, folder=tmp_path, workers=1, progress=lambda _done, _total: None
    )


def some(settings, words, count=12):
    """The outcome of the first cases of each class whose name begins so."""
    names = list(tamper_memory.ATTACKS)
    chosen = [place for place, name in enumerate(names) if name.startswith(words)]
    cases = [place + turn * len(names) for place in chosen for turn in range(count)]
    return tamper_memory._cases(settings, cases, lambda _done: None)


def test_slice_holds(settings):
    """Every class of attack is tried, each is refused as it must be, and controls verify."""
    outcome = tamper_memory.run(settings)
    assert outcome.failures == []
    assert outcome.cases == tamper_memory.SLICE_CASES
    tried = {key[7:] for key in outcome.counts if key.startswith("attack ")}
    assert tried == set(tamper_memory.ATTACKS)
    assert outcome.counts["control verified"] >= 20
    assert outcome.counts["also judged from record 0, the same said"] >= 20
    assert outcome.counts["told by a kept head only LEDGER_ROLLED_BACK"]
    assert outcome.counts["told by a kept head only LEDGER_FORKED"]


def test_bases_hold_what_the_attacks_need():
    """Between them the ledgers have every kind, a rotation, a revocation, seals and a tail that none covers."""
    every, long = tamper_memory.bases()
    assert {item.kind for item in every.records} == set(tamper_memory_kinds())
    assert [item.kind for item in long.records].count("root.rotated") > 1
    assert [item.kind for item in long.records].count("key.revoked") > 1
    assert every.sealed == every.size
    assert long.sealed < long.size


def tamper_memory_kinds():
    """Every kind there is."""
    from ledger.records import KINDS  # noqa: PLC0415

    return KINDS


def no_place(_self, _record):
    """A check of place that looks at nothing."""


def lenient(data):
    """A reader that accepts any spelling."""
    return canonical.loads(data)


SABOTAGE = {
    "signatures are not checked": (ed25519, "verify", lambda *_: True, "signature: bits"),
    "prev is not checked": (Chain, "_check_place", no_place, "order"),
    "statements are not checked": (Chain, "_check_statement", lambda *_: None, "statement: over"),
    "seals are not checked": (verifier, "_check_seal", lambda *_: None, "seal: bytes"),
    "spelling is not checked": (canonical, "decode", lenient, "json: spacing, signed by its"),
    "a cut tail is not said": (
        verifier._SealQueue,
        "beyond",
        lambda _self: [],
        "removed: the tail",
    ),
}


@pytest.mark.parametrize(("where", "name", "hole", "words"), SABOTAGE.values(), ids=SABOTAGE.keys())
def test_hole_in_the_verifier_fails_the_campaign(settings, monkeypatch, where, name, hole, words):
    """With one check taken away, attacks of its class are reported as failures."""
    tamper_memory.bases()  # made while all is well
    monkeypatch.setattr(where, name, hole)
    assert some(settings, words).failures


def test_raw_exception_is_a_failure(settings, monkeypatch):
    """What is not an error of the ledger's own is recorded as escaped, and the campaign goes on."""
    tamper_memory.bases()

    def broken(*_):
        raise RecursionError("too deep")

    monkeypatch.setattr(verifier.records, "parse", broken)
    outcome = some(settings, "entry: bits", count=2)
    assert len(outcome.failures) == 2
    assert "escaped raw: RecursionError('too deep')" in outcome.failures[0]


def test_fork_that_forgets_is_noticed(monkeypatch):
    """A saved state that lost something says other than a pass from record 0, and `same` tells."""
    every, _ = tamper_memory.bases()
    seq = next(item.seq for item in every.records if item.kind == "snapshot.recorded")
    attack = Attack(every.rows, every.notes)
    assert same(judged(every, attack, seq), judged(every, attack, 0))
    monkeypatch.setattr(bases, "fork", lambda state: replace(state, nonces={}, heads={}))
    assert not same(judged(every, attack, seq), judged(every, attack, 0))


def test_wrong_place_is_a_failure():
    """A finding at another record than the first that differs does not count as found."""
    every, _ = tamper_memory.bases()
    rows = list(every.rows)
    rows[20] = (20, rows[20][1], bytes(64), rows[20][3])
    attack = Attack(rows, every.notes)
    result = judged(every, attack, 20)
    assert check(every, attack, result) == "refused SIGNATURE_INVALID"
    result.wrong[0] = replace(result.wrong[0], seq=21)
    with pytest.raises(Escaped):
        check(every, attack, result)


def test_workers_find_what_one_finds(settings, monkeypatch):
    """Ranges in several processes add up to the same counts as one after the other."""
    monkeypatch.setattr(tamper_memory, "FULL_CASES", 3 * len(tamper_memory.ATTACKS))
    one = tamper_memory.run(replace(settings, full=True, workers=1))
    two = tamper_memory.run(replace(settings, full=True, workers=2))
    assert one.cases == two.cases == 3 * len(tamper_memory.ATTACKS)
    assert one.counts == two.counts
    assert two.failures == []


def test_worker_that_dies_is_said(settings):
    """A worker that ends without an answer ends the campaign with an error, not with fewer cases."""

    def work(_settings, _cases, _tell):
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="ended without an answer"):
        case_pool.run_cases(replace(settings, full=True, workers=2), 10, work)


def test_unreadable_row_comes_after_what_was_found_before_it():
    """A row that cannot be read does not hide a bad signature before it."""
    every, _ = tamper_memory.bases()

    def rows():
        for row in every.rows[:30]:
            yield (*row[:2], bytes(64), row[3]) if row[0] == 12 else row
        raise EvidenceError("LEDGER_UNREADABLE", "the disk failed", seq=30)

    result = verifier.verify_chain(rows(), every.rows.__getitem__)
    assert [(item.code, item.seq) for item in result.wrong] == [("SIGNATURE_INVALID", 12)]
    honest = verifier.verify_chain(_until(every.rows, 30), every.rows.__getitem__)
    assert [(item.code, item.seq) for item in honest.wrong] == [("LEDGER_UNREADABLE", 30)]


def _until(rows, stop):
    yield from rows[:stop]
    raise EvidenceError("LEDGER_UNREADABLE", "the disk failed")


def test_unreadable_seals_do_not_hide_a_bad_record():
    """Seals that cannot be read are a finding after those of the records."""
    every, _ = tamper_memory.bases()
    rows = list(every.rows)
    rows[9] = (9, rows[9][1], bytes(64), rows[9][3])

    def notes():
        raise EvidenceError("LEDGER_UNREADABLE", "a seal has another type")
        yield

    result = verifier.verify_chain(rows, every.rows.__getitem__, notes())
    assert [item.code for item in result.wrong] == ["SIGNATURE_INVALID", "LEDGER_UNREADABLE"]


def test_interrupted_campaign_leaves_no_process(settings):
    """A Ctrl-C while workers run ends all of them."""

    def stop(_done, _total):
        assert multiprocessing.active_children()
        raise KeyboardInterrupt

    interrupted = replace(settings, full=True, workers=2, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        case_pool.run_cases(interrupted, 4000, tamper_memory._cases)
    assert multiprocessing.active_children() == []
