"""`verify --since` over the last hundredth of a large ledger, from a seal that was kept."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

from benches.report import Row, Settings, Spent, timed
from benches.workload import Training, grown, open_ledger
from verifiers.verify import Options, verify

ROUNDS = 5


def run(settings: Settings) -> list[Row]:
    """The tail alone with all cores, with the index there and with none."""
    size = 1_000_000 if settings.full else 20_000
    folder = settings.scratch / "since"
    source = grown(settings, size)
    for suffix in ("", ".state"):
        shutil.rmtree(folder.with_suffix(suffix), ignore_errors=True)
        shutil.copytree(source.with_suffix(suffix), folder.with_suffix(suffix))
    note = _seal_and_go_on(folder, size // 100)
    rows = [_measure(settings, folder, note, "with the index")]
    (folder / "index.sqlite").unlink()
    rows.append(_measure(settings, folder, note, "without the index"))
    for suffix in ("", ".state"):
        shutil.rmtree(folder.with_suffix(suffix))
    return rows


def _seal_and_go_on(folder: Path, count: int) -> bytes:
    """A seal over the ledger as it is, and then more records."""
    with open_ledger(folder) as ledger:
        note = ledger.seal()
        groups = Training(ledger).groups()
        stop = ledger.size + count
        while ledger.size < stop:
            ledger.append_many(next(groups))
    return note


def _measure(settings: Settings, folder: Path, note: bytes, how: str) -> Row:
    spent: list[Spent] = []
    for number in range(ROUNDS):
        settings.say(f"verifying since a seal, {how}, round {number + 1} of {ROUNDS}")
        report, took = timed(verify, folder, Options(expect_seal=note, since="last"))
        assert report.verdict == "verified", report.findings  # a pass that failed is no figure
        assert report.since > 0
        spent.append(took)
    checked = report.records - report.since
    limit = 3.0 if settings.full and how == "with the index" else None
    return Row(
        f"verify --since, the last {checked:,} of {report.records:,} records, {how}",
        round(statistics.median(item.wall_s for item in spent), 2),
        "s",
        "less",
        limit,
        details={"median_of": ROUNDS, "rounds": [item.as_json() for item in spent]},
    )
