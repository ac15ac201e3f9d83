"""Readers beside writers: each look is a whole prefix, and no reader stops a writer, alive, dead or stopped.

Each case has two writers and two readers. In turn, all go to their end, a reader is killed in the middle
of a read, or a reader is stopped there and the writers must end without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from ledger.book import DATABASE
from ledger.merkle import CompactRange

READER = "campaigns.children.reader"
FULL_CASES = 60
SLICE_CASES = 3
STEPS = 15
LOOKS = 5
ENDLESS_LOOKS = 10_000
WRITERS_END_S = 60.0
WAYS = ("all go to their end", "a reader is killed", "a reader stands still")
# calls of a reader at which it holds a snapshot of the database or a lock on it
CALLS = ("pread64", "fcntl")
EXCLUDED = {
    "readers of a network file system": "SQLite's log needs memory that processes of one machine share",
}


def run(settings: Settings) -> Outcome:
    """Case after case; see the module's text."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    if not strace_is_there():
        outcome.failures.append(STRACE_MISSING)
        return outcome
    cases = range(FULL_CASES if settings.full else SLICE_CASES)
    for case in cases if settings.case is None else [settings.case]:
        site = Site.make(settings.folder / f"case-{case}")
        problems = _case(settings, case, site, outcome)
        outcome.failures += [f"case {case}: {problem}" for problem in problems]
        outcome.cases += 1
        settings.progress(outcome.cases, len(cases))
    return outcome


def _case(settings: Settings, case: int, site: Site, outcome: Outcome) -> list[str]:
    choices = settings.random("readers", case)
    way = WAYS[case % len(WAYS)]
    writers = [_writer(settings, case, site, number) for number in range(2)]
    readers = [_reader(settings, case, site, number, way) for number in range(2)]
    problems = []
    with ended([*writers, *readers]):
        for child in (*writers, *readers):
            child.wait_ready()
        if way != WAYS[0]:
            sign = "SIGKILL" if way == WAYS[1] else "SIGSTOP"
            call, number = choices.choice(CALLS), choices.randint(5, 60)
            readers[0].trace(f"{call}:signal={sign}:when={number}")
        for child in (*readers, *writers):
            child.go()
        problems += [problem for child in writers for problem in _ends(child)]
        for child in readers if way == WAYS[0] else readers[1:]:
            child.wait()
        if way == WAYS[2]:
            outcome.counts["stood still to the end"] += readers[0].process.poll() is None
        elif way == WAYS[1]:
            readers[0].wait()
            outcome.counts["readers killed"] += readers[0].was_killed
    outcome.counts[way] += 1
    oracle = Oracle(site)
    for child in writers:
        problems += oracle.hear(child) + _unwanted(child)
    problems += oracle.look("blobs" if case % 4 == 0 else "records")
    for child in readers:
        problems += _unwanted(child) + _looks(child, oracle, outcome)
    return problems + _left_behind(site)


def _writer(settings: Settings, case: int, site: Site, number: int) -> Child:
    options = {
        "ledger": str(site.ledger),
        "state": str(site.state),
        "key": seed_of(WRITERS[number]),
        "seed": f"{settings.seed}/{case}/{number}",
        "steps": STEPS,
    }
    return Child(APPENDER, site.folder / "children", f"{case}-writer-{number}", options)


def _reader(settings: Settings, case: int, site: Site, number: int, way: str) -> Child:
    struck = number == 0 and way != WAYS[0]
    options: dict[str, Any] = {
        "ledger": str(site.ledger),
        "state": str(site.state),
        "seed": f"{settings.seed}/{case}/reader/{number}",
        "looks": ENDLESS_LOOKS if struck else LOOKS,
    }
    return Child(READER, site.folder / "children", f"{case}-reader-{number}", options)


def _ends(child: Child) -> list[str]:
    return [] if child.ends(WRITERS_END_S) else [f"{child.name} was held up by a reader"]


def _unwanted(child: Child) -> list[str]:
    problems = [f"{child.name} was refused {line['code']}" for line in child.said("error")]
    if child.stderr():
        problems.append(f"{child.name} wrote: {child.stderr()[-500:]}")
    return problems


def _looks(child: Child, oracle: Oracle, outcome: Outcome) -> list[str]:
    """Hold each look against the ledger as it is in the end."""
    roots = _roots(oracle)
    problems = []
    for line in child.lines():
        check = CHECKS.get(line.get("did", ""))
        if check is None:
            continue
        outcome.counts[f"looks: {line['did']}"] += 1
        if not check(line, oracle, roots):
            problems.append(f"{child.name}: no whole prefix: {line}")
    return problems


Line = dict[str, Any]
Roots = dict[int, str]


def _good_read(line: Line, oracle: Oracle, _: Roots) -> bool:
    there = oracle.rows.get(line["size"] - 1) == line["last"]
    return there and line["chained"] is True and line["found"] is True


def _good_report(line: Line, _: Oracle, roots: Roots) -> bool:
    good = line["verdict"] == "verified" and not line["warned"]
    return good and bool(roots.get(line["size"]) == line["root"])


def _good_query(line: Line, _: Oracle, roots: Roots) -> bool:
    return line["row"] == [line["size"]] * 2 and bool(roots.get(line["size"]) == line["root"])


def _good_log(line: Line, _: Oracle, __: Roots) -> bool:
    return bool(line["status"] == 0)


CHECKS: dict[str, Callable[[Line, Oracle, Roots], bool]] = {
    "read": _good_read,
    "verify": _good_report,
    "query": _good_query,
    "log": _good_log,
}


def _roots(oracle: Oracle) -> dict[int, str]:
    """The root at every size of the ledger as it is in the end."""
    tree, roots = CompactRange(), {}
    for seq in sorted(oracle.rows):
        tree.append(bytes.fromhex(oracle.rows[seq][7:]))
        roots[seq + 1] = tree.root().hex()
    return roots


def _left_behind(site: Site) -> list[str]:
    """After the last writer closed, the log is taken in and gone: no dead reader holds it."""
    site.open().close()
    left = [name for name in ("-wal", "-shm") if (site.ledger / f"{DATABASE}{name}").exists()]
    return [f"left behind after the last close: {left}"] if left else []
