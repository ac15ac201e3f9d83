"""A write-ahead log that is cut or overwritten after a kill -9: a prefix is left, and a lost tail is told.

One writer is killed with its log alive. Each case takes a copy, damages the log or its index at a chosen
place, and looks at it as a stranger, as the writer, and as a writer without a high-water file.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from world import key

from campaigns.children.saying import clock
from campaigns.crashing import APPENDER, WRITERS, Child, Oracle, Site, ended, seed_of
from campaigns.report import Outcome, Settings
from ledger import highwater
from ledger.book import DATABASE, Ledger
from ledger.errors import LedgerError
from ledger.store.connection import PAGE_BYTES
from verifiers.verify import Options, verify

FULL_CASES = 240
SLICE_CASES = 36
ACKNOWLEDGEMENTS = 30
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
LOST = {"LEDGER_ROLLED_BACK"}
EXCLUDED = {
    "a log forged with right checksums": "SQLite's checksums are no secret; what a forger writes is found"
    " by hash and signature, see the campaigns of tampering",
}


@dataclass(frozen=True)
class Scene:
    """The ledger of a killed writer: its site, every id in it by seq, and its high-water file's size."""

    site: Site
    ids: list[str]
    marked: int
    first_id: str


Damage = Callable[[Path, random.Random], str]


def _offset(data: bytes | bytearray, choices: random.Random) -> int:
    """A frame's boundary, a place in a frame's header, in the log's own header, or anywhere."""
    frames = max(1, (len(data) - WAL_HEADER_BYTES) // FRAME_BYTES)
    boundary = WAL_HEADER_BYTES + choices.randrange(frames + 1) * FRAME_BYTES
    places = (
        boundary,
        boundary + choices.randrange(1, FRAME_HEADER_BYTES),
        choices.randrange(WAL_HEADER_BYTES),
        choices.randrange(len(data)),
    )
    return min(choices.choice(places), len(data) - 1)


def _cut(wal: Path, choices: random.Random) -> str:
    data = wal.read_bytes()
    wal.write_bytes(data[: _offset(data, choices)])
    return "log cut"


def _zero_on(wal: Path, choices: random.Random) -> str:
    data = wal.read_bytes()
    start = _offset(data, choices)
    wal.write_bytes(data[:start] + bytes(len(data) - start))
    return "log zeroed to its end"


def _zero_some(wal: Path, choices: random.Random) -> str:
    data = bytearray(wal.read_bytes())
    start = _offset(data, choices)
    stop = min(len(data), start + choices.choice((1, 8, 512, 4096)))
    data[start:stop] = bytes(stop - start)
    wal.write_bytes(data)
    return "log zeroed for some bytes"


def _noise(wal: Path, choices: random.Random) -> str:
    data = bytearray(wal.read_bytes())
    start = _offset(data, choices)
    part = choices.randbytes(min(choices.choice((1, 24, 512)), len(data) - start))
    data[start : start + len(part)] = part
    wal.write_bytes(data)
    return "log overwritten"


def _gone(wal: Path, _: random.Random) -> str:
    wal.unlink()
    return "log removed"


def _shm(wal: Path, choices: random.Random) -> str:
    shm = wal.with_name(wal.name.removesuffix("-wal") + "-shm")
    data = bytearray(shm.read_bytes() if shm.exists() else bytes(32768))
    start = choices.randrange(len(data))
    data[start : start + 136] = choices.randbytes(136)
    data[:48] = choices.choice((data[:48], bytearray(48), bytearray(choices.randbytes(48))))
    shm.write_bytes(data[: choices.choice((len(data), start))])
    return "index of the log damaged"


def _both(wal: Path, choices: random.Random) -> str:
    _shm(wal, choices)
    _cut(wal, choices)
    return "log cut and its index damaged"


DAMAGES: tuple[Damage, ...] = (_cut, _zero_on, _cut, _zero_some, _noise, _shm, _both, _cut, _gone)


def run(settings: Settings) -> Outcome:
    """Damage after damage, each on a copy of its own; see the module's text."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    scene = _scene(settings)
    outcome.figures["records in the log"] = len(scene.ids)
    untouched = scene.site.copy(settings.folder / "untouched")
    _note(outcome, -1, _look(scene, untouched, writer_first=False, outcome=outcome))
    outcome.counts["control: the log as it was left"] += 1
    cases = range(FULL_CASES if settings.full else SLICE_CASES)
    for case in cases if settings.case is None else [settings.case]:
        choices = settings.random("wal", case)
        copy = scene.site.copy(settings.folder / f"case-{case}")
        sort = DAMAGES[case % len(DAMAGES)](copy.ledger / f"{DATABASE}-wal", choices)
        outcome.counts[sort] += 1
        problems = _look(scene, copy, writer_first=choices.random() < 0.5, outcome=outcome)
        _note(outcome, case, [f"{sort}: {problem}" for problem in problems])
        outcome.cases += 1
        settings.progress(outcome.cases, len(cases))
    return outcome


def _note(outcome: Outcome, case: int, problems: list[str]) -> None:
    outcome.failures += [f"case {case}: {problem}" for problem in problems]


def _scene(settings: Settings) -> Scene:
    """A writer, killed when it has acknowledged enough, its log never taken into the database."""
    site = Site.make(settings.folder / "scene")
    options = {
        "ledger": str(site.ledger),
        "state": str(site.state),
        "key": seed_of(WRITERS[0]),
        "seed": str(settings.seed),
        "steps": ACKNOWLEDGEMENTS * 100,
    }
    child = Child(APPENDER, settings.folder / "children", "writer", options)
    with ended([child]):
        child.wait_ready()
        child.go()
        while len(child.said("ack")) < ACKNOWLEDGEMENTS and child.process.poll() is None:
            time.sleep(0.002)
        child.kill()
        child.wait()
    oracle = Oracle(site)
    problems = oracle.hear(child)
    assert not problems, "one writer forks nothing"
    with Ledger.read(site.copy(settings.folder / "whole").ledger) as ledger:
        ids = [record.id for record in ledger.records()]
    lost = [seq for seq, name in oracle.acknowledged.items() if ids[seq] != name]
    assert not lost, "crash-kill shows that nothing acknowledged is lost"
    mark = highwater.read(site.state, ids[0])
    assert mark is not None, "the writer kept a high-water file"
    return Scene(site, ids, mark.size, ids[0])


def _look(scene: Scene, copy: Site, *, writer_first: bool, outcome: Outcome) -> list[str]:
    """What is wrong with what can be read and written in a damaged copy."""
    try:
        if writer_first:
            _open_as_writer(copy)
        with copy.open_read() as ledger:
            ids = [record.id for record in ledger.records()]
    except LedgerError as error:
        outcome.counts[f"refused {error.code}"] += 1
        return []
    if ids != scene.ids[: len(ids)]:
        return [f"what is read is no prefix: {len(ids)} records"]
    lost = len(ids) < scene.marked
    outcome.counts["a tail is lost" if lost else "nothing marked is lost"] += 1
    return _told(copy, lost=lost) + _untold(scene, copy, len(ids), outcome)


def _open_as_writer(copy: Site) -> None:
    """SQLite's recovery by a writing connection; whether the opening is refused is looked at later."""
    try:
        copy.open().close()
    except LedgerError as error:
        if error.code not in LOST:
            raise


def _told(copy: Site, *, lost: bool) -> list[str]:
    """With the high-water file, writer and verifier say that a tail is lost, and only then."""
    problems = []
    expected = LOST if lost else set()
    report = copy.verify()
    if {item.code for item in report.findings} != expected:
        problems.append(f"verify with high water says {[item.code for item in report.findings]}")
    try:
        copy.open().close()
        told = set()
    except LedgerError as error:
        told = {error.code}
    if told != expected:
        problems.append(f"a writer is told {sorted(told)}, with a tail lost: {lost}")
    return problems


def _untold(scene: Scene, copy: Site, size: int, outcome: Outcome) -> list[str]:
    """Without it a writer goes on from the prefix; the file then finds the fork that this makes."""
    with Ledger.open(copy.ledger, key=key(WRITERS[0]), clock=clock) as ledger:
        record = ledger.append("note.added", {"text": "after the damage"})
    problems = [] if record.seq == size else [f"appended at {record.seq}, not {size}"]
    report = verify(copy.ledger, Options(level="records", workers=1))
    if (report.verdict, report.records, report.rollback) != ("verified", size + 1, "unchecked"):
        codes = [item.code for item in report.findings]
        problems.append(f"verify without high water: {report.verdict} {report.rollback} {codes}")
    found = {item.code for item in copy.verify().findings}
    if size < scene.marked and not found & {"LEDGER_ROLLED_BACK", "LEDGER_FORKED"}:
        problems.append("the fork after a lost tail is not told")
    outcome.counts["went on from the prefix"] += 1
    return problems
