"""System calls that fail, one after another, under a real process that appends: one clean error, nothing lost.

A job is first traced without faults, which says how often it makes each call. Then each case lets one of
them fail, once or from there on, and looks at what the process said and at the ledger it left.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from campaigns import crash_places
from campaigns.crashing import (
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

WORKER = "campaigns.children.worker"
JOBS = ("append", "group", "blob", "seal", "init", "mixed", "dying")
DISK = ("EIO", "ENOSPC")
# what each call may answer; `short` is a write that took nothing
ERRORS: dict[str, tuple[str, ...]] = {
    "pwrite64": (*DISK, "short"),
    "write": (*DISK, "EDQUOT"),
    "fsync": DISK,
    "ftruncate": DISK,
    "rename": (*DISK, "EROFS"),
    "openat": (*DISK, "EMFILE", "EACCES"),
    "mkdir": (*DISK, "EACCES"),
    "link": DISK,
    "unlink": ("EIO", "EACCES"),
    "chmod": ("EIO", "EPERM"),
    "pread64": ("EIO",),
    "read": ("EIO",),
    "fcntl": ("EIO", "ENOLCK"),
    "flock": ("ENOLCK", "EIO"),
}
# a disk that fills up and stays full: everything that takes room fails from the n-th call on
FULL_DISK = ("pwrite64", "write", "ftruncate", "mkdir", "link", "rename", "fsync")
SLICE_CASES = 22
BUSY_TIMEOUT_MS = 2000
EXCLUDED = {
    "a disk that lies": "a write that is reported as done and is not, and an fsync that does nothing, are"
    " the machine's fault and not told apart from tampering",
    "fcntl of `evidence init`": "a lock that fails is a lock held by another: the command waits its whole"
    " minute, each time; the other jobs, whose patience is short, cover these calls",
    "two faults of different kinds": "each case lets calls fail in one way",
}


@dataclass(frozen=True)
class Fault:
    """One case: the job, and which of its calls fail how."""

    job: str
    calls: tuple[str, ...]
    error: str
    when: str

    @property
    def injections(self) -> list[str]:
        """For strace."""
        answer = "retval=0" if self.error == "short" else f"error={self.error}"
        return [f"{call}:{answer}:when={self.when}" for call in self.calls]

    def __str__(self) -> str:
        return f"{self.job}: {','.join(self.calls)} {self.error} when={self.when}"


def run(settings: Settings) -> Outcome:
    """Every fault of the full list, or a few of each sort; then places that cannot be written."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    if not strace_is_there():
        outcome.failures.append(STRACE_MISSING)
        return outcome
    template = Site.make(settings.folder / "template")
    cases = _cases(settings, template, outcome)
    chosen = range(len(cases)) if settings.case is None else [settings.case]
    for case in chosen:
        if case < len(cases):
            _note(outcome, case, _strike(settings, case, cases[case], template, outcome))
            outcome.cases += 1
            settings.progress(outcome.cases, len(cases))
    if settings.case is None:
        crash_places.run(settings, template, outcome)
    return outcome


def _note(outcome: Outcome, case: int, problems: list[str]) -> None:
    outcome.failures += [f"case {case}: {problem}" for problem in problems]


def _cases(settings: Settings, template: Site, outcome: Outcome) -> list[Fault]:
    every: list[Fault] = []
    for job in JOBS:
        made = _calls_of(settings, job, template, outcome)
        outcome.figures[f"calls of {job}"] = dict(sorted(made.items()))
        every += _faults(job, made)
    if settings.full:
        return every
    return _slice(settings, every)


def _faults(job: str, made: Counter[str]) -> list[Fault]:
    calls = {call: errors for call, errors in ERRORS.items() if call != "fcntl" or job != "init"}
    once = [
        Fault(job, (call,), error, str(number))
        for call, errors in calls.items()
        for number, error in zip(range(1, made[call] + 1), itertools.cycle(errors), strict=False)
    ]
    from_there_on = range(1, made["pwrite64"] + 1, 3)
    return once + [Fault(job, FULL_DISK, "ENOSPC", f"{number}+") for number in from_there_on]


def _slice(settings: Settings, every: list[Fault]) -> list[Fault]:
    """One of each call that is in the list and of the full disk, then one of each job not met yet."""
    choices = settings.random("slice")
    by_calls: dict[tuple[str, ...], list[Fault]] = {}
    for fault in every:
        by_calls.setdefault(fault.calls, []).append(fault)
    shuffled = {calls: choices.sample(faults, len(faults)) for calls, faults in by_calls.items()}
    chosen = [faults[0] for faults in shuffled.values()]
    missing = [job for job in JOBS if job not in {fault.job for fault in chosen}]
    others = [next(fault for fault in every if fault.job == job) for job in missing]
    return [*chosen, *others][:SLICE_CASES]


def _calls_of(settings: Settings, job: str, template: Site, outcome: Outcome) -> Counter[str]:
    """How often a job makes each call, by a run without faults: the control."""
    site = _site_for(settings, job, f"control-{job}", template)
    log = settings.folder / f"{job}.trace"
    child = _start(settings, job, site)
    with ended([child]):
        child.wait_ready()
        child.trace(*ERRORS, log=log)
        child.go()
        child.wait()
    outcome.counts[f"control: {job} without faults"] += 1
    oracle = _oracle(job, site, template)
    for problem in _after(job, child, oracle, outcome):
        outcome.failures.append(f"control {job}: {problem}")
    if _answer(job, child) != "done":
        outcome.failures.append(f"control {job}: {_answer(job, child)}")
    text = log.read_text(encoding="utf-8", errors="replace")
    return Counter(line.split("(")[0] for line in text.splitlines() if "(" in line)


def _strike(
    settings: Settings, case: int, fault: Fault, template: Site, outcome: Outcome
) -> list[str]:
    site = _site_for(settings, fault.job, f"case-{case}", template)
    child = _start(settings, fault.job, site)
    with ended([child]):
        child.wait_ready()
        child.trace(*fault.injections)
        child.go()
        if not child.ends():
            return [f"{fault}: the process hangs, having said {child.lines()[1:]}"]
    answer = _answer(fault.job, child)
    sort = "full disk" if len(fault.calls) > 1 else f"{fault.calls[0]} fails"
    outcome.counts[f"{sort}: {answer}"] += 1
    outcome.counts[f"job {fault.job}"] += 1
    problems = _after(fault.job, child, _oracle(fault.job, site, template), outcome)
    return [f"{fault}: {problem}" for problem in problems]


def _site_for(settings: Settings, job: str, name: str, template: Site) -> Site:
    folder = settings.folder / name
    if job != "init":
        return template.copy(folder)
    folder.mkdir()
    return Site(folder)


def _oracle(job: str, site: Site, template: Site) -> Oracle:
    oracle = Oracle(site)
    if job != "init":
        with template.open_read() as ledger:
            oracle.rows = {record.seq: record.id for record in ledger.records()}
    return oracle


def _start(settings: Settings, job: str, site: Site) -> Child:
    rehearsal = settings.folder / f"rehearsal-{site.folder.name}"
    if job == "init":
        rehearsal.mkdir()
    else:
        site.copy(rehearsal)
    options: dict[str, Any] = {
        "job": job,
        "ledger": str(site.ledger),
        "state": str(site.state),
        "key": seed_of(WRITERS[0]),
        "busy_timeout_ms": BUSY_TIMEOUT_MS,
        "rehearsal": {
            "ledger": str(rehearsal / "ledger"),
            "state": str(rehearsal / "state"),
            "job": "append" if job == "dying" else job,
        },
    }
    return Child(WORKER, settings.folder / "children", site.folder.name, options)


def _answer(job: str, child: Child) -> str:
    """What became of the job, in a word: done, the first code, or what escaped."""
    if child.said("escaped"):
        return "escaped"
    if not _ended_as_it_should(job, child):
        return f"ended with status {child.process.returncode}"
    codes = [line["code"] for line in child.said("error")]
    codes += [] if job != "init" else _code_of_init(child)
    if codes:
        return f"refused {codes[0]}"
    warned = [code for line in child.said("warnings") for code in line["codes"]]
    return f"warned {warned[0]}" if warned else "done"


def _ended_as_it_should(job: str, child: Child) -> bool:
    """To its end, but for the dying job, which kills itself before it would close."""
    return bool(child.said("end")) or (job == "dying" and child.was_killed)


def _code_of_init(child: Child) -> list[str]:
    answers = [line for line in child.lines() if "ok" in line]
    if any(line["ok"] for line in answers):
        return []
    return [line["error"]["code"] for line in answers] or ["(answer not written)"]


def _after(job: str, child: Child, oracle: Oracle, outcome: Outcome) -> list[str]:
    """What is wrong with what the process said and with the ledger it left."""
    problems = [f"escaped: {line['error']} at {line['where']}" for line in child.said("escaped")]
    if not _ended_as_it_should(job, child):
        problems.append(f"the process ended with status {child.process.returncode}")
    if "Traceback" in child.stderr():
        problems.append(f"stderr: {child.stderr()[-600:]}")
    if job == "init":
        return problems + _after_init(child, oracle.site, outcome)
    problems += oracle.hear(child)
    refused = {line["code"] for line in child.said("error")}
    problems += _resurrected(oracle, sealing=job in ("seal", "mixed"), refused=refused)
    return problems + oracle.look("blobs" if job in ("blob", "mixed") else "records")


def _resurrected(oracle: Oracle, *, sealing: bool, refused: set[str]) -> list[str]:
    """Records that nobody acknowledged, in a ledger whose process answered: refused, and there yet."""
    with oracle.site.open_read() as ledger:
        extra = [
            record
            for record in ledger.records(len(oracle.rows))
            if record.seq not in oracle.acknowledged
        ]
    if sealing:
        extra = [record for record in extra if record.kind != "snapshot.recorded"]
    return [f"a record refused ({sorted(refused)}) is there: seq {item.seq}" for item in extra[:3]]


def _after_init(child: Child, site: Site, outcome: Outcome) -> list[str]:
    """After `evidence init` there is a whole ledger, or the folder is free for the next try."""
    left = sorted(item.name for item in site.ledger.iterdir()) if site.ledger.exists() else []
    if not left:
        outcome.counts["init: nothing left, may be tried again"] += 1
        return ["init said ok and left nothing"] if _answer("init", child) == "done" else []
    report = Site(site.folder).verify("blobs")
    if report.verdict == "verified":
        outcome.counts["init: a whole ledger left"] += 1
        return []
    codes = [item.code for item in report.findings]
    return [f"init left {json.dumps(left)}, which is {report.verdict}: {codes}"]
