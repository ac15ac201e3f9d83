"""Writers and restores that are really killed: a child process ends itself by signal 9 at a named point.

The points lie around the one order that matters: commit, then high-water file; restore record, then lower mark.
Whatever point it was, the next process finds no false alarm, no lost alarm and no second restore record.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from campaigns.rollback_world import (
    Case,
    History,
    expect,
    expect_mark,
    history,
    mark_of,
    report,
)
from ledger import highwater
from ledger.restores import KIND, Restored
from ledger.store.sqlite import SqliteStore

_FORK = multiprocessing.get_context("fork")


def _die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _then_die(real: Callable[..., Any]) -> Callable[..., Any]:
    def act(*words: Any, **options: Any) -> None:
        real(*words, **options)
        _die()

    return act


APPEND: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "append: before the commit": (SqliteStore, "append", _die),
    "append: between commit and high-water write": (highwater, "write", _die),
    "append: high-water file written aside, not renamed": (Path, "replace", _die),
    "append: after the high-water write": (highwater, "write", _then_die(highwater.write)),
}
RESTORE: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "restore: before the commit": (SqliteStore, "append", _die),
    "restore: between record and lower mark": (highwater, "lower", _die),
    "restore: lower mark written aside, not renamed": (Path, "replace", _die),
    "restore: after the lower mark": (highwater, "lower", _then_die(highwater.lower)),
}
POINTS = [*APPEND, *RESTORE]


def kill(case: Case, random: Random, point: str) -> str:
    """Kill a child at a point, and see that the ledger goes on rightly; what became of it.

    Raises:
        WrongError: it does not.
    """
    place, state = case.folder / "ledger", case.folder / "state"
    case.create(place, state)
    case.note(place, state, random.randrange(1, 4))
    if point in APPEND:
        return _append(case, place, state, point)
    return _restore(case, random, place, state, point)


def _killed_at(target: tuple[object, str, Callable[..., Any]], act: Callable[[], object]) -> None:
    """Run something in a child that dies where the target is called."""

    def child() -> None:
        owner, name, instead = target
        with mock.patch.object(owner, name, instead):
            act()

    process = _FORK.Process(target=child)
    process.start()
    process.join()
    expect(process.exitcode, -signal.SIGKILL, "how the child ended")


def _read(case: Case, place: Path) -> History:
    return history(place, case.folder / "scratch")


def _append(case: Case, place: Path, state: Path, point: str) -> str:
    before = _read(case, place)
    _killed_at(APPEND[point], lambda: case.note(place, state))
    after = _read(case, place)
    kept = point != "append: before the commit"
    expect(len(after) - len(before), int(kept), "records that the child left")
    expect(report(place, state).verdict, "verified", "after the kill")
    expect(case.note(place, state), None, "the next writer")
    expect_mark(state, _read(case, place))
    return "no alarm, goes on"


def _restore(case: Case, random: Random, place: Path, state: Path, point: str) -> str:
    shutil.copytree(place, case.folder / "backup")
    case.note(place, state, random.randrange(1, 5))
    lost = _read(case, place)
    shutil.rmtree(place)
    shutil.copytree(case.folder / "backup", place)
    before = _read(case, place)
    expect_mark(state, lost)
    _killed_at(RESTORE[point], lambda: case.restore(place, state))
    after = _read(case, place)
    recorded = point != "restore: before the commit"
    expect(len(after) - len(before), int(recorded), "records that the child left")
    lowered = point == "restore: after the lower mark"
    expect_mark(state, after if lowered else lost)
    if not recorded:
        expect(case.note(place, state), "LEDGER_ROLLED_BACK", "a writer without the record")
    if random.random() < 0.5 or not recorded:
        _again(case, place, state, lowered=lowered, recorded=recorded)
    expect(case.note(place, state), None, "the next writer")
    _ended_well(case, place, state)
    return "finished, one record"


def _again(case: Case, place: Path, state: Path, *, lowered: bool, recorded: bool) -> None:
    answer = case.restore(place, state)
    if lowered:
        expect(answer, "NOT_ROLLED_BACK", "a restore after a whole one")
    else:
        expect(isinstance(answer, Restored), True, f"the restore again: {answer}")
        expect(getattr(answer, "finished_earlier", None), recorded, "whether a record was there")


def _ended_well(case: Case, place: Path, state: Path) -> None:
    with case.open(place, state) as ledger:
        expect(len(ledger.of_kind(KIND)), 1, "restore records")
    now = _read(case, place)
    expect_mark(state, now)
    expect(mark_of(state, now[0]) is not None, True, "a high-water file")
    found = report(place, state)
    expect((found.verdict, found.rollback), ("verified", "high water reached"), "at the end")
