"""kill -9 while four processes append to one ledger: nothing acknowledged is lost, nothing is half there.

Each case is one blow: four fresh processes are started on the ledger, one or all of them are killed at a
random moment or at a chosen system call, and the oracle looks. A ledger lives through several blows.
"""

from __future__ import annotations

import random
import time

from campaigns.crashing import (
    APPENDER,
    STRACE_MISSING,
    WRITERS,
    Child,
    Oracle,
    Site,
    ended,
    seed_of,
    strace_is_there,
)
from campaigns.report import Outcome, Settings
from verifiers.report import Level

FULL_CASES = 200
SLICE_CASES = 6
BLOWS_A_LEDGER = 10
STEPS = 10
ENDLESS_STEPS = 100_000
MOMENT_MAX_S = 0.4
MOMENTS = ("moment, one", "moment, all")
BETWEEN = (
    "flock"  # only the high-water file is locked by it: committed, and the file not yet written
)
# which of a child's calls of a name is its last at most: about what STEPS acts make
REACH = {
    "fsync": 12,  # this SQLite commits by fsync; it makes no fdatasync
    "pwrite64": 40,
    BETWEEN: 7,
    "rename": 8,
    "write": 8,
    "ftruncate": 1,
    "unlink": 1,
    "openat": 40,
    "fcntl": 80,
}
FIRST_ONLY = "ftruncate"  # made by the first process that opens a ledger, so the victim goes ahead
WAYS = (*MOMENTS, *REACH)
# another process may hold the ledger for long on a slow machine; nothing was written then
PERMITTED_ERRORS = {"LEDGER_BUSY"}
EXCLUDED = {
    "power cut": "a killed process loses nothing that it handed to the system; what a power cut may lose"
    " is settled by the order of fsync and acknowledgement, which this campaign does not see",
}


def run(settings: Settings) -> Outcome:
    """Strike again and again; see the module's text."""
    outcome = Outcome()
    if not strace_is_there():
        outcome.failures.append(STRACE_MISSING)
        return outcome
    cases = range(FULL_CASES if settings.full else SLICE_CASES)
    chosen = cases if settings.case is None else [settings.case]
    oracle: Oracle | None = None
    for case in chosen:
        if oracle is None or case % BLOWS_A_LEDGER == 0:
            oracle = Oracle(Site.make(settings.folder / f"from-{case}"))
            outcome.counts["control: a ledger nobody struck"] += 1
            _note(outcome, case, oracle.look("blobs"))
        _note(outcome, case, _strike(settings, case, oracle, outcome))
        outcome.cases += 1
        settings.progress(outcome.cases, len(cases))
    outcome.excluded = EXCLUDED
    return outcome


def _note(outcome: Outcome, case: int, problems: list[str]) -> None:
    outcome.failures += [f"case {case}: {problem}" for problem in problems]


def _strike(settings: Settings, case: int, oracle: Oracle, outcome: Outcome) -> list[str]:
    """One blow and what is wrong after it; a call that no child came to is tried again as the first."""
    choices = settings.random("kill", case)
    way = WAYS[case % len(WAYS)]
    heard = oracle.heard
    number = choices.randint(1, REACH.get(way, 1))
    problems, killed = _round(f"{settings.seed}/{case}", way, number, oracle, choices)
    if not killed:
        outcome.counts[f"{way} not reached, struck again"] += 1
        more, killed = _round(f"{settings.seed}/{case}/again", way, 1, oracle, choices)
        problems += more
    outcome.counts[f"killed at {way}" if killed else f"ended before {way}"] += 1
    outcome.counts["processes killed"] += killed
    level: Level = "blobs" if case % 4 == 0 else "records"
    problems += oracle.look(level)
    outcome.counts["records acknowledged by children"] += oracle.heard - heard
    if oracle.lag > 0:
        outcome.counts["high-water file behind after the blow, no alarm"] += 1
    return problems


def _round(
    seed: str, way: str, number: int, oracle: Oracle, choices: random.Random
) -> tuple[list[str], int]:
    """Four fresh processes and one blow; what they said that they must not, and how many died of it."""
    children = _start(seed, way, oracle.site, choices)
    with ended(children):
        for child in children:
            child.wait_ready()
        if way in MOMENTS:
            _at_a_moment(children, choices, everybody=way == "moment, all")
        else:
            _at_a_call(children, f"{way}:signal=SIGKILL:when={number}", choices)
        for child in children:
            child.wait()
    problems = [problem for child in children for problem in _heard(child, oracle)]
    return problems, sum(child.was_killed for child in children)


def _start(seed: str, way: str, site: Site, choices: random.Random) -> list[Child]:
    """Four children; those that die at a moment would else go on for ever."""
    own_keys = choices.random() < 0.5
    endless = range({"moment, one": 1, "moment, all": len(WRITERS)}.get(way, 0))
    return [
        Child(
            APPENDER,
            site.folder / "children",
            f"{seed}/{number}".replace("/", "-"),
            {
                "ledger": str(site.ledger),
                "state": str(site.state),
                "key": seed_of(name if own_keys else WRITERS[0]),
                "seed": f"{seed}/{number}",
                "steps": ENDLESS_STEPS if number in endless else STEPS,
            },
        )
        for number, name in enumerate(WRITERS)
    ]


def _at_a_moment(children: list[Child], choices: random.Random, *, everybody: bool) -> None:
    victims = children if everybody else children[:1]
    for child in children:
        child.go()
    time.sleep(choices.random() * MOMENT_MAX_S)
    for child in victims:
        child.kill()


def _at_a_call(children: list[Child], injection: str, choices: random.Random) -> None:
    """One child dies as it is about to make a call; half the time the others die with it."""
    victim = choices.choice(children)
    victim.trace(injection)
    victim.go()
    if injection.startswith(FIRST_ONLY):
        victim.wait()
    for child in children:
        if child is not victim:
            child.go()
    victim.wait()
    if victim.was_killed and choices.random() < 0.5:
        for child in children:
            child.kill()


def _heard(child: Child, oracle: Oracle) -> list[str]:
    """What a child said that it must not."""
    problems = oracle.hear(child)
    codes = {line["code"] for line in child.said("error")} - PERMITTED_ERRORS
    problems += [f"{child.name} was refused {code}" for code in sorted(codes)]
    if child.stderr():
        problems.append(f"{child.name} wrote: {child.stderr()[-500:]}")
    return problems
