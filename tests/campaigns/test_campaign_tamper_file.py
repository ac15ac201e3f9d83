"""The campaign of tampering on disk: its slice holds, holes are seen, hangs and deaths of a case are failures."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from campaigns import tamper_file
from campaigns.report import Outcome, Settings
from campaigns.tamper.disk import make_bases
from campaigns.watched import run_watched

from ledger.errors import EvidenceError
from ledger.store.sqlite import SqliteStore
from verifiers import chain as chain_pass
from verifiers import verify as verification
from verifiers.blob_pass import BlobPass

NAMES = list(tamper_file.CHANGES)


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """The ledgers that are attacked, made once."""
    return make_bases(tmp_path_factory.mktemp("bases") / "bases")


@pytest.fixture
def settings(tmp_path) -> Settings:
    """A slice's settings."""
    return Settings(
        seed=1, full=False, folder=tmp_path, workers=1, progress=lambda _done, _total: None
    )


def some(settings, bases, name, count=6):
    """The outcome of the first cases of a class, in this process."""
    outcome = Outcome()
    for turn in range(count):
        case = NAMES.index(name) + turn * len(NAMES)
        outcome.add(tamper_file._case(settings, bases, case))
    return outcome


@pytest.mark.slow
def test_slice_holds(settings):
    """Every class of change is tried, nothing gets through, controls verify and can be appended to."""
    outcome = tamper_file.run(settings)
    assert outcome.failures == []
    assert outcome.cases == tamper_file.SLICE_CASES
    tried = {key[7:] for key in outcome.counts if key.startswith("attack ")}
    assert tried == set(NAMES)
    assert outcome.counts["control verified"]
    assert any(key.startswith("writer refused") for key in outcome.counts)


def until_unreadable(rows, _result):
    """The rows up to one that cannot be read, and no word about it."""
    with suppress(EvidenceError):
        yield from rows


SABOTAGE = {
    "the layout is not checked": (
        SqliteStore,
        "_check_schema",
        lambda _self: None,
        "schema: triggers dropped or changed",
    ),
    "the index is not looked at": (
        verification,
        "index_problem",
        lambda *_, **__: None,
        "index: ids changed",
    ),
    "blobs are not looked at": (BlobPass, "check", lambda *_: None, "blob: gone"),
    "an unreadable row ends the rows": (
        chain_pass,
        "_readable",
        until_unreadable,
        "sql: values of forbidden types",
    ),
    "rows below zero are not read": (verification, "FIRST_SEQ", 0, "sql: records added"),
}


@pytest.mark.parametrize(("where", "name", "hole", "attack"), SABOTAGE.values(), ids=SABOTAGE)
def test_hole_in_the_product_fails_the_campaign(
    settings, bases, monkeypatch, where, name, hole, attack
):
    """With one check taken away, changes of its class are reported as failures."""
    monkeypatch.setattr(where, name, hole)
    assert some(settings, bases, attack).failures


def test_raw_exception_is_a_failure(settings, bases, monkeypatch):
    """What is not an error of the ledger's own is recorded as escaped."""

    def broken(*_):
        raise RecursionError("too deep")

    monkeypatch.setattr(chain_pass.records, "parse", broken)
    outcome = some(settings, bases, "schema: version or application", count=4)
    assert any("escaped raw: RecursionError" in line for line in outcome.failures)


def test_case_that_hangs_or_dies_is_a_failure_and_the_others_go_on(settings):
    """A case beyond its time and one that ends its process are named; those after them are run."""

    def work(case):
        if case == 1:
            time.sleep(600)
        if case == 3:
            os._exit(9)
        return Outcome(cases=1)

    outcome = run_watched(settings, 6, work, 0.5)
    assert outcome.cases == 6
    assert outcome.failures == [
        "case 1: no answer within 0.5 s",
        "case 3: the process ended with 9",
    ]


def test_cases_are_shared_between_processes(settings):
    """Two lanes run each case once."""
    ran = run_watched(
        replace(settings, full=True, workers=2),
        7,
        lambda case: Outcome(1, failures=[f"{case}"]),
        30.0,
    )
    assert (ran.cases, sorted(ran.failures)) == (7, [str(case) for case in range(7)])


def test_one_case_can_be_run_again(settings):
    """With a case named, that one is run and no other."""
    ran = run_watched(
        replace(settings, case=4), 6, lambda case: Outcome(1, failures=[f"{case}"]), 5.0
    )
    assert (ran.cases, ran.failures) == (1, ["4"])


def test_interrupted_campaign_leaves_no_process(settings):
    """A Ctrl-C while workers run ends all of them."""

    def stop(_done, _total):
        assert multiprocessing.active_children()
        raise KeyboardInterrupt

    interrupted = replace(settings, full=True, workers=2, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        run_watched(interrupted, 6, lambda _case: Outcome(cases=1), 30.0)
    assert multiprocessing.active_children() == []
