"""The benches: what they measure is the real thing, and a figure knows its limit."""

from __future__ import annotations

import pytest
from benches import append, memory, stored, workload
from benches import verify as verify_bench
from benches.registry import BENCHES
from benches.report import Row, Settings, Spent, as_json, ratios

from ledger.book import Ledger
from verifiers.verify import Options, verify


@pytest.fixture
def settings(tmp_path):
    """A slice in a folder of its own."""
    return Settings(full=False, scratch=tmp_path, say=lambda line: None)


@pytest.mark.parametrize("bench", BENCHES.values(), ids=BENCHES.keys())
def test_each_bench_can_be_run_by_its_name(bench):
    """The registry names a function that is there."""
    assert callable(bench.load())


def test_the_grown_ledger_verifies_and_is_what_the_benches_say(settings):
    """Its records are of three real kinds, about 1 kB and 2.7 refs each, and the verifier accepts them all."""
    folder = workload.grown(settings, 900)
    assert workload.grown(settings, 900) == folder
    assert verify(folder, Options(workers=1)).verdict == "verified"
    with Ledger.read(folder) as ledger:
        grown = [
            record
            for record in ledger.records()
            if record.kind in ("batch.built", "update.acknowledged", "note.added")
        ]
    assert len(grown) == 900
    assert 900 <= sum(len(record.entry) for record in grown) / len(grown) <= 1100
    assert 2.5 <= sum(len(record.all_refs()) for record in grown) / len(grown) <= 2.8


def test_append_is_held_against_the_same_bytes(settings):
    """The bare side writes what the ledger wrote, and each round has both sides' cost."""
    workload.make(settings.scratch / "ledger")
    rows = append._measure(settings, settings.scratch / "ledger", groups=3)
    assert [row.unit for row in rows] == ["ratio", "ratio", "ratio", "s"]
    rounds = rows[0].details["rounds"]
    assert len(rounds) == append.ROUNDS
    assert all(item[side]["wall_s"] > 0 for item in rounds for side in ("ours", "bare"))
    assert verify(settings.scratch / "ledger", Options(workers=1)).verdict == "verified"


def test_bare_signatures_and_memory_and_bytes_are_measured_on_the_ledger(settings, monkeypatch):
    """Every message is checked by the bare side too; peaks and sizes are those of real processes and files."""
    folder = workload.grown(settings, 300)
    spent = verify_bench.bare(folder, 2, 500)
    assert spent.cpu_s > 0.005
    peak = memory._peak(folder)
    assert peak["parent_mb"] > 20
    monkeypatch.setattr(stored, "grown", lambda settings, size: folder)
    (row,) = stored.run(settings)
    assert row.details["records"] == verify(folder, Options(workers=1)).records
    assert row.details["bytes"]["whole folder"] >= row.details["bytes"]["database"]


@pytest.mark.parametrize(
    ("better", "value", "limit", "held"),
    [("more", 0.7, 0.6, True), ("more", 0.5, 0.6, False), ("less", 0.1, 0.15, True),
     ("less", 0.2, 0.15, False), ("less", 0.2, None, None)],
)  # fmt: skip
def test_a_row_says_whether_its_limit_is_held(better, value, limit, held):
    """A figure on the wrong side of its limit is reported as not held."""
    assert Row("a figure", value, "ratio", better, limit).as_json()["held"] is held


def test_ratios_are_medians_over_rounds():
    """One round that was disturbed does not move the figure."""
    rounds = [(Spent(2.0, 2.0), Spent(1.0, 1.5)), (Spent(2.0, 4.0), Spent(1.2, 1.0))]
    rounds.append((Spent(200.0, 2.0), Spent(1.0, 1.0)))
    assert ratios(rounds) == {"wall": 0.5, "cpu": 0.5}


def test_a_report_names_machine_and_commit(settings):
    """What was measured can be traced to a commit and a machine."""
    report = as_json("small", settings, [Row("a figure", 1.0, "s", "less")], 2.0)
    assert report["machine"]["cores"] >= 1
    assert len(report["commit"]) >= 7
