"""The whole verification of a ledger, beside bare Ed25519 over the same messages on the same cores."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path

from benches.report import ENVIRONMENT, Row, Settings, Spent, ratios, timed
from benches.workload import grown
from ledger.book import DATABASE
from ledger.store.sqlite import SqliteStore
from verifiers.verify import Options, verify

ROUNDS = 5


def run(settings: Settings) -> list[Row]:
    """With all cores, and within one process."""
    folder = grown(settings, 100_000 if settings.full else 10_000)
    rounds = ROUNDS if settings.full else 3
    cores = len(os.sched_getaffinity(0))
    return [
        row
        for workers in sorted({cores, 1}, reverse=True)
        for row in _measure(settings, folder, workers, rounds)
    ]


def _measure(settings: Settings, folder: Path, workers: int, rounds: int) -> list[Row]:
    pairs: list[tuple[Spent, Spent]] = []
    for number in range(rounds):
        settings.say(f"verifying with {workers} process(es), round {number + 1} of {rounds}")
        report, ours = timed(verify, folder, Options(workers=workers))
        assert report.verdict == "verified", report.wrong  # a figure for a pass that failed is none
        theirs = bare(folder, workers, report.records)
        pairs.append((ours, theirs))
    median = ratios(pairs)
    wall_s = sorted(ours.wall_s for ours, _ in pairs)[len(pairs) // 2]
    name = f"verify {report.records:,} records, {workers} process(es)"
    details = {
        "median_of": rounds,
        "rounds": [{"ours": a.as_json(), "bare": b.as_json()} for a, b in pairs],
    }
    seconds_limit = (15.0, 8.0) if settings.full and workers > 1 else (None, None)
    return [
        Row(f"{name}, cpu", median["cpu"], "ratio", "more", 0.75, 0.85, details),
        Row(f"{name}, wall", median["wall"], "ratio", "more", 0.75, 0.85),
        Row(name, round(wall_s, 2), "s", "less", *seconds_limit),
    ]


def bare(folder: Path, processes: int, size: int) -> Spent:
    """What the signatures alone cost, each process taking an equal part of the records.

    The time is what each process measured around its signatures; reading and starting are left out.
    """
    bounds = [size * part // processes for part in range(processes + 1)]
    command = [sys.executable, "-P", "-m", "benches.bare_signatures", str(folder)]
    started = [
        subprocess.Popen(
            [*command, str(start), str(stop)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        for start, stop in pairwise(bounds)
    ]
    for process in started:
        assert process.stdout is not None  # Popen was given pipes
        process.stdout.readline()  # it has read its messages
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in started]
    return Spent(max(float(wall) for wall, _ in answers), sum(float(cpu) for _, cpu in answers))


def messages(folder: Path, start: int, stop: int) -> list[tuple[bytes, bytes]]:
    """(entry, signature) of some records."""
    store = SqliteStore.open_reader(folder / DATABASE)
    try:
        return [(row[3], row[2]) for row in islice(store.rows(start, stop), stop - start)]
    finally:
        store.close()
