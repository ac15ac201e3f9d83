"""Campaign `rollback`: older copies, cut tails and other histories put under writers, readers and owners.

Three families of cases: one attack on one ledger, judged against a table of what is due; random walks over one
folder and two machines, judged by a model after every step; processes killed around the high-water write.
Processes die here, power does not: the files lie in memory where the system has such a folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from campaigns import rollback_kill, rollback_placed, rollback_scene, rollback_walk
from campaigns.report import Outcome, Settings
from campaigns.rollback_attacks import ATTACKS
from campaigns.rollback_world import Case

FULL_CASES = 4000
SLICE_CASES = 40
PATTERN = ("attack",) * 3 + ("kill",) + ("attack",) * 2 + ("walk", "kill")
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it has a name of its own
EXCLUDED = {
    "a high-water file changed into another sound one": (
        "whoever can write the user's state folder can choose what the file says; a kept seal or a witness tells"
    ),
    "a ledger begun again, where only the high-water file is asked": (
        "it has another record 0 and so no file: unchecked; a pinned root key and a kept seal tell, and must"
    ),
    "a shorter fork that root restores": (
        "its size does not tell it from a backup; root must hold it against a kept seal before stating anything"
    ),
}


def run(settings: Settings) -> Outcome:
    """Run the campaign."""
    outcome = Outcome(excluded=EXCLUDED)
    total = FULL_CASES if settings.full else SLICE_CASES
    chosen = range(total) if settings.case is None else [settings.case]
    parent = MEMORY if os.access(MEMORY, os.W_OK) else settings.folder
    with tempfile.TemporaryDirectory(prefix="rollback-", dir=parent) as folder:
        for number in chosen:
            _case(settings, number, Path(folder), outcome)
            settings.progress(number + 1, total)
    outcome.figures["classes of attack"] = len(ATTACKS)
    outcome.figures["points of a kill"] = len(rollback_kill.POINTS)
    return outcome


def _case(settings: Settings, number: int, parent: Path, outcome: Outcome) -> None:
    folder = parent / f"case-{number}"
    folder.mkdir()
    family = PATTERN[number % len(PATTERN)]
    turn = sum(item == family for item in PATTERN) * (number // len(PATTERN))
    turn += sum(item == family for item in PATTERN[: number % len(PATTERN)])
    outcome.cases += 1
    try:
        outcome.counts += _FAMILIES[family](settings, number, turn, Case(folder))
    except Exception as error:  # noqa: BLE001 - the one place where whatever escapes becomes a failure
        outcome.failures.append(f"case {number}: {family}: {type(error).__name__}: {error}")
    shutil.rmtree(folder)


def _attack(settings: Settings, number: int, turn: int, case: Case) -> Counter[str]:
    random = settings.random("rollback", number)
    names, marks, seals = list(ATTACKS), rollback_scene.MARKS, rollback_scene.SEALS
    attack = names[turn % len(names)]
    rest = turn // len(names)
    # each attack first under a file as it should be, then under every fate of it
    mark = marks[(rest + turn) % len(marks)] if rest else "present"
    seal = seals[(rest // len(marks) + turn) % len(seals)]
    scene = rollback_scene.attacked(case, random, attack, mark)
    became = rollback_placed.judge(scene, random, seal)
    return Counter({f"{attack}, high water {mark}: {became}": 1, f"expected seal {seal}": 1})


def _walk(settings: Settings, number: int, _turn: int, case: Case) -> Counter[str]:
    done = rollback_walk.walk(case, settings.random("rollback", number))
    return Counter({f"step: {name}": count for name, count in done.items()}) + Counter({"walk": 1})


def _kill(settings: Settings, number: int, turn: int, case: Case) -> Counter[str]:
    point = rollback_kill.POINTS[turn % len(rollback_kill.POINTS)]
    became = rollback_kill.kill(case, settings.random("rollback", number), point)
    return Counter({f"killed, {point}: {became}": 1})


_FAMILIES = {"attack": _attack, "walk": _walk, "kill": _kill}
