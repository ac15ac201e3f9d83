"""Eight processes append to one ledger at once: in a file, on a PostgreSQL server, and on one that is killed under them.

No fork, nothing acknowledged lost, nothing half there; how many appends a second there were and how long the slowest
hundredth took is printed beside. A case is one store. The server is killed with all its processes (SIGKILL, as a power cut
would) and started again while the writers go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from postgres_server import INITDB, PostgresServer, running

from campaigns.crashing import Child, Oracle, Site, ended, seed_of
from campaigns.report import Outcome, Settings
from ledger.store.address import VARIABLE, parse

WRITER = "campaigns.children.timed_writer"
NAMES = ("writer", *(f"writer{number}" for number in range(1, 8)))
STORES = ("sqlite", "postgres", "postgres killed")
FULL_S, SLICE_S = 60.0, 3.0
FULL_KILLS, SLICE_KILLS = 10, 1
# what a writer may be told while its server is down; whether an append that was under way counts shows afterwards
PERMITTED = {"STORE_UNREACHABLE", "LEDGER_UNREADABLE"}
MISSING = "PostgreSQL's server is not installed: the shared store cannot be tried"
EXCLUDED = {
    "power cut": "what a disk loses of its own cache is the server's business; it is asked whether it syncs",
}


def run(settings: Settings) -> Outcome:
    """One store after the other; see the module's text."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    if INITDB is None:
        outcome.failures.append(MISSING)
        return outcome
    cases = range(len(STORES))
    for case in cases if settings.case is None else [settings.case]:
        problems = _case(settings, STORES[case], outcome)
        outcome.failures += [f"case {case}: {STORES[case]}: {problem}" for problem in problems]
        outcome.cases += 1
        settings.progress(outcome.cases, len(cases))
    return outcome


def _case(settings: Settings, store: str, outcome: Outcome) -> list[str]:
    if store == "sqlite":
        return _appended(settings, store, Site.make(settings.folder / store, NAMES), None, outcome)
    with running() as server, _named(server.url()):
        site = Site.make(settings.folder / store, NAMES, parse(server.url()))
        killed = server if store == "postgres killed" else None
        return _appended(settings, store, site, killed, outcome)


@contextmanager
def _named(url: str) -> Iterator[None]:
    """The server is named for this process and its children, as a user does."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = url
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def _appended(
    settings: Settings, store: str, site: Site, killed: PostgresServer | None, outcome: Outcome
) -> list[str]:
    seconds = FULL_S if settings.full else SLICE_S
    writers = [_writer(site, name, seconds) for name in NAMES]
    with ended(writers):
        for child in writers:
            child.wait_ready()
        for child in writers:
            child.go()
        if killed is not None:
            _kill(settings, killed, seconds, outcome)
        for child in writers:
            child.wait(seconds + 120)
    oracle = Oracle(site)
    problems = []
    for child in writers:
        problems += oracle.hear(child) + _unwanted(child, PERMITTED if killed else set(), outcome)
    problems += oracle.look()
    took_ms = sorted(line["took_ms"] for child in writers for line in child.said("ack"))
    if not took_ms:
        return [*problems, "nothing was appended"]
    outcome.counts[f"{store}: acknowledged"] += len(took_ms)
    outcome.figures[store] = {
        "appends a second": round(len(took_ms) / seconds, 1),
        "median_ms": took_ms[len(took_ms) // 2],
        "p99_ms": took_ms[int(len(took_ms) * 0.99)],
    }
    return problems


def _kill(settings: Settings, server: PostgresServer, seconds: float, outcome: Outcome) -> None:
    kills = FULL_KILLS if settings.full else SLICE_KILLS
    choices = settings.random("kills")
    for _ in range(kills):
        time.sleep(choices.uniform(0.3, 0.7) * seconds / (kills + 1))
        server.kill()
        server.start()
        outcome.counts["server killed"] += 1


def _writer(site: Site, name: str, seconds: float) -> Child:
    options = {
        "ledger": str(site.ledger),
        "state": str(site.state),
        "key": seed_of(name),
        "name": name,
        "seconds": seconds,
    }
    return Child(WRITER, site.folder / "children", name, options)


def _unwanted(child: Child, permitted: set[str], outcome: Outcome) -> list[str]:
    problems = []
    for line in child.said("error"):
        outcome.counts[f"told {line['code']}"] += 1
        if line["code"] not in permitted:
            problems.append(f"{child.name} was refused {line['code']}: {line['message']}")
    if child.stderr():
        problems.append(f"{child.name} wrote: {child.stderr()[-500:]}")
    return problems
