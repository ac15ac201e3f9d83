"""Crafted files and words against the command line: one clear error, bounded, nothing left behind.

Each case is a copy of a user's folders in which one thing was made hostile, and one call of the program in a process
with bounds on memory, processor time and file size. Judged: the exit code, exactly one error, no traceback, no raw
control character on the terminal, nothing changed outside, nothing half-written, no record of a refused call.
"""

from __future__ import annotations

import itertools
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from campaigns import (
    hostile_bundles,
    hostile_data,
    hostile_keys,
    hostile_ledger,
    hostile_models,
    hostile_seals,
    hostile_settings,
    hostile_words,
)
from campaigns.hostile_bytes import Maker
from campaigns.hostile_child import Attack, Ended, call, problems
from campaigns.hostile_place import Base, Kept
from campaigns.report import Outcome, Settings

GROUPS: dict[str, dict[str, Maker]] = {
    "database": hostile_ledger.DATABASES,
    "files": hostile_ledger.FILES,
    "seals": hostile_seals.KINDS,
    "settings": hostile_settings.KINDS,
    "keys": hostile_keys.KINDS,
    "data": hostile_data.KINDS,
    "models": hostile_models.KINDS,
    "words": hostile_words.KINDS,
    "bundles": hostile_bundles.KINDS,
}
FULL_ROUNDS = 10
SLICE_CASES = 27
CONTROLS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "--level", "blobs"),
    "note": ("note", "@0", "words"),
    "data": ("data", "ingest", "input/rows.jsonl"),
    "model": ("model", "add", "input/model", "--licence", "x"),
}
EXCLUDED = {
    "Parquet": "this version ingests JSON lines only; a Parquet file is refused line by line, never unpacked",
    "the child process's pipe": "fuzzed in process, see the campaign fuzz",
    "what libraries do with a registered model": "loading it takes torch; here it is registered or refused",
}


def run(settings: Settings) -> Outcome:
    """Controls, then every kind of attack in turn, until the number of cases is reached."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    base = Base(settings.folder / "base")
    if settings.case is None:
        _controls(base, settings.folder, outcome)
    cases = _chosen(settings)
    with ThreadPoolExecutor(settings.workers) as pool:
        for done, judged in enumerate(
            pool.map(lambda item: _case(settings, base, *item), cases), 1
        ):
            _count(outcome, judged)
            settings.progress(done, len(cases))
    return outcome


@dataclass(frozen=True)
class Judged:
    """A case that was run: what it was, its exit code, and what is wrong with that."""

    case: int
    name: str
    code: int | None
    problems: list[str]


def names() -> list[tuple[str, str]]:
    """(group, kind) of every attack, one of each group after the other."""
    rounds = itertools.zip_longest(
        *([(group, kind) for kind in kinds] for group, kinds in GROUPS.items())
    )
    return [name for several in rounds for name in several if name is not None]


def _chosen(settings: Settings) -> list[tuple[int, str, str]]:
    every = names()
    total = len(every) * FULL_ROUNDS
    if settings.case is not None:
        wanted = [settings.case]
    else:
        wanted = list(range(total if settings.full else SLICE_CASES))
    return [(case, *every[case % len(every)]) for case in wanted]


def _case(settings: Settings, base: Base, case: int, group: str, kind: str) -> Judged:
    place = base.copy(settings.folder / f"case-{case}")
    try:
        attack = GROUPS[group][kind](settings.random(case), place)
        kept = Kept.of(place, attack)
        ended = call(attack, place.folder)
        found = problems(attack, ended) + kept.problems(place, ended, attack)
    finally:
        remove(place.folder)
    return Judged(case, f"{group} {kind}", ended.code, found)


def _count(outcome: Outcome, judged: Judged) -> None:
    outcome.cases += 1
    outcome.counts[f"{judged.name}: {_said(judged.code)}"] += 1
    outcome.failures += [f"case {judged.case}: {judged.name}: {item}" for item in judged.problems]


def _said(code: int | None) -> str:
    known: dict[int | None, str] = {0: "acceptable", 1: "refused", 2: "unusable", None: "no end"}
    return known.get(code, f"exit {code}")


def _controls(base: Base, folder: Path, outcome: Outcome) -> None:
    """Unspoilt input must go through, or the campaign shows nothing."""
    for name, words in CONTROLS.items():
        place = base.copy(folder / f"control-{name}")
        place.put("rows.jsonl", hostile_data.GOOD)
        hostile_models.good_folder(place)
        ended: Ended = call(Attack(place.own(*words)), place.folder)
        outcome.counts[f"control {name}: {_said(ended.code)}"] += 1
        if ended.code != 0:
            outcome.failures.append(f"control {name}: {ended.err.decode(errors='replace')[:200]}")
        remove(place.folder)


def remove(folder: Path) -> None:
    """Take a case's folders away, however deep."""
    subprocess.run(["rm", "-rf", "--", str(folder)], check=True)
