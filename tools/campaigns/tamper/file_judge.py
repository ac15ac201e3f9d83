"""The judge of the campaign on disk: verify, read, look up and append, and say what became of an attack."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from campaigns.tamper.disk import (
    STATE,
    DiskBase,
    content_of,
    open_writer,
    read_index,
    read_triggers,
)
from campaigns.tamper.growing import Note
from campaigns.tamper.judge import Escaped, place_of
from campaigns.tamper.sequences import first_difference
from ledger.book import DATABASE, INDEX, Ledger
from ledger.codes import CODES
from ledger.errors import LedgerError
from ledger.record import Record
from ledger.store.durable import FIRST_SEQ
from ledger.store.sqlite import SqliteStore
from verifiers.chain import Row
from verifiers.report import Level, Report
from verifiers.verify import Options, verify

LOOK_UPS = 3


@dataclass
class Read:
    """What the store gives: rows and seals up to where it could not go on, and why not."""

    rows: list[Row]
    notes: list[Note]
    error: LedgerError | None = None

    @property
    def whole(self) -> bool:
        """Whether everything could be read."""
        return self.error is None


def read_store(folder: Path) -> Read:
    """The rows and seals as the store gives them."""
    found = Read([], [])
    try:
        store = SqliteStore.open_reader(folder / DATABASE)
    except LedgerError as error:
        found.error = error
        return found
    errors = (_taken(found.rows, store.rows(FIRST_SEQ)), _taken(found.notes, store.seals()))
    store.close()
    found.error = errors[0] or errors[1]
    return found


def _taken(into: list[Any], items: Iterator[Any]) -> LedgerError | None:
    """The items up to where they cannot be read, and why not."""
    try:
        into.extend(items)
    except LedgerError as error:
        return error
    return None


def judge(base: DiskBase, folder: Path, level: Level, random: Random) -> str:
    """What a verifier makes of a tampered folder, as a key of the report's counts.

    Raises:
        Escaped: it was not found, or named at another place than the first that differs.
    """
    before = _derived(folder)
    report = _verified(folder, level)
    read = read_store(folder)
    if base.other is not None and read.rows[:1] == base.other.rows[:1]:
        return _judge_another(base, base.other, folder, read, report)
    same = read.whole and (read.rows, read.notes) == (base.rows, base.notes)
    _check_guards(base, report, before[0])
    _look_up(base, folder, random)
    if same:
        return _judge_same(base, report, before[1])
    if report.verdict == "verified":
        return _judge_verified(base, folder, level, report, read)
    return _judge_found(base, report, read)


def _verified(folder: Path, level: Level) -> Report:
    report = verify(folder, Options(level=level, workers=1))
    for item in (*report.findings, *report.warnings):
        if item.code not in CODES:
            raise Escaped(f"{item.code} is no code")
    return report


def _judge_same(base: DiskBase, report: Report, index: object) -> str:
    """Rows and seals are untouched: verdict and head are the control's, a falsified index is spoken of."""
    control = base.controls[report.level]
    wanted = (control.verdict, control.root, control.seals, control.findings, control.blobs)
    if (report.verdict, report.root, report.seals, report.findings, report.blobs) != wanted:
        raise Escaped(f"rows as they were, and {report.verdict}: {report.findings[:2]}")
    if report.level == "blobs" and index != base.index and "INDEX_STALE" not in _codes(report):
        raise Escaped("the index is not the records', and no warning says so")
    said = sorted(_codes(report))
    return f"rows as they were, verified{', warned ' + ' '.join(said) if said else ''}"


def _judge_another(
    base: DiskBase, other: DiskBase, folder: Path, read: Read, report: Report
) -> str:
    """The rows of another ledger came with what was put beside: it is judged as that, and a pinned root tells."""
    if report.verdict != "verified":
        return "another ledger: " + _judge_found(other, report, read)
    pinned = frozenset({base.records[0].actor})
    codes = [item.code for item in verify(folder, Options(pinned_roots=pinned, workers=1)).wrong]
    if codes != ["ROOT_UNTRUSTED"]:
        raise Escaped(f"another ledger, whole, and a pinned root gives {codes}")
    return "another ledger, whole: told by a pinned root only"


def _judge_verified(base: DiskBase, folder: Path, level: Level, report: Report, read: Read) -> str:
    """Verified though something differs: only a shorter ledger, or one with fewer seals, can be whole."""
    if not read.whole:
        raise Escaped(f"verified, and the store cannot be read: {read.error}")
    fewer = [note for note in base.notes if note in read.notes]
    if read.notes != fewer or read.rows != base.rows[: len(read.rows)]:
        raise Escaped(f"verified, and rows differ at {first_difference(base.rows, read.rows)}")
    if report.records != len(read.rows):
        raise Escaped(f"{report.records} records reported, {len(read.rows)} were there")
    if len(read.rows) == base.size:
        return "a seal taken away, verified"
    marked = Options(level=level, workers=1, state_dir=folder.parent / STATE)
    codes = [item.code for item in verify(folder, marked).wrong]
    if codes != ["LEDGER_ROLLED_BACK"]:
        raise Escaped(f"a shorter ledger, and the high-water mark gives {codes}")
    return "told by a kept head only LEDGER_ROLLED_BACK"


def _judge_found(base: DiskBase, report: Report, read: Read) -> str:
    """Found: the first bad place is named, wherever a row could be read at all.

    That is where the rows first differ or cannot be read, or the last record under a seal that differs before.
    """
    first = report.findings[0]
    if read.rows and (read.whole or read.rows != base.rows):
        differs, last = first_difference(base.rows, read.rows), len(read.rows) - 1
        changed = set(base.notes) ^ set(read.notes)
        allowed = {differs, *(min(max(size - 1, 0), last) for size, _ in changed)}
        if first.code == "TAIL_CUT" and read.whole:
            allowed.add(last)  # a seal beyond the end tells at the end
        place = place_of(first)
        if place not in allowed or place > differs:
            raise Escaped(f"{first.code} at {place}, the rows differ at {differs}: {first.message}")
    return f"{report.verdict} {first.code}"


def judge_blob(base: DiskBase, report: Report, changed: set[str]) -> str:
    """What becomes of changed blobs: the first record that stands on one of them is named."""
    seqs = [seq for digest in changed if (seq := base.naming(digest)) is not None]
    if not seqs:
        if report.verdict != "verified":
            raise Escaped(f"no blob was changed, and {report.findings[:1]}")
        return "blobs as they were, verified"
    if report.verdict == "verified":
        raise Escaped(f"verified, and blobs of record {min(seqs)} are not theirs")
    first = min(report.findings, key=lambda item: -1 if item.seq is None else item.seq)
    if first.seq != min(seqs):
        raise Escaped(f"{first.code} at {first.seq}, record {min(seqs)} stands on a changed blob")
    return f"{report.verdict} {first.code}"


def _check_guards(base: DiskBase, report: Report, triggers: object) -> None:
    """A trigger that is gone or changed is spoken of, wherever the schema could be read at all."""
    opened = bool(report.records)
    if opened and (triggers != base.triggers) != ("TRIGGER_MISSING" in _codes(report)):
        raise Escaped(f"guards changed: {triggers != base.triggers}, warned {_codes(report)}")


def _derived(folder: Path) -> tuple[object, object]:
    """What the guards and the index hold, read before anything of ours opens the ledger."""
    return (
        _held(folder / DATABASE, read_triggers),
        _held(folder / INDEX, read_index),
    )


def _held(path: Path, read: Callable[[Any], object]) -> object:
    """What SQLite reads from a file, None where it or something beside it is no plain file."""
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
    there = [item for item in beside if os.path.lexists(item)]
    if beside[0] not in there or not all(stat.S_ISREG(item.lstat().st_mode) for item in there):
        return None
    return content_of(path, read)


def _codes(report: Report) -> set[str]:
    return {item.code for item in report.warnings}


def _look_up(base: DiskBase, folder: Path, random: Random) -> None:
    """Whatever index and rows say, what is found is the record asked for, or an error of ours."""
    for record in random.sample(base.records, LOOK_UPS):
        try:
            with Ledger.read(folder) as opened:
                _look_up_one(opened, record)
        except LedgerError:
            continue


def _look_up_one(opened: Ledger, record: Record) -> None:
    found = opened.find(record.id)
    if (
        found not in (None, record)
        or opened.get(record.id[7:23], raw=True).id[7:23] != record.id[7:23]
    ):
        raise Escaped(f"asked for record {record.seq}, given another")
    if any(item.kind != record.kind for item in opened.of_kind(record.kind, raw=True)):
        raise Escaped(f"asked for {record.kind}, given others")
    pointing = opened.referrers(record.id, raw=True)
    if any(record.id not in {ref for _, ref in item.all_refs()} for item in pointing):
        raise Escaped(f"asked for what names record {record.seq}, given others")


def append_after(base: DiskBase, folder: Path) -> str:
    """What a writer makes of a tampered folder: it refuses, or the ledger is as good as before.

    Opening to append checks no signatures of the past: a writer may go on above a damage that a verifier
    names. Then the verifier must name it as before, and the rows before the new one must be untouched.

    Raises:
        Escaped: a good ledger is no longer verified, or a row was changed.
    """
    before, held = _verified(folder, "records"), read_store(folder)
    try:
        ledger = open_writer(base, folder)
        try:
            ledger.append("note.added", {"text": "after the attack"})
        finally:
            ledger.close()
    except LedgerError as error:
        _unchanged(folder, held, len(held.rows))
        return f"writer refused: {error.code}"
    after = _verified(folder, "records")
    _unchanged(folder, held, len(held.rows) + (before.verdict == "verified"))
    if after.verdict == "verified":
        # a journal that only a writer may undo, or a log that it drops, can make the ledger whole again
        size = before.records if before.verdict == "verified" else after.records - 1
        now = read_store(folder)
        if now.rows[:size] != base.rows[:size] or after.records != size + 1:
            raise Escaped(f"{before.records} records, and {after.records} after one was appended")
        return "writer went on, verified"
    if before.verdict == "verified":
        raise Escaped(f"verified before a record was appended, and now {after.findings[:1]}")
    one, two = before.findings[0], after.findings[0]
    named = (one.code, one.expected) == (two.code, two.expected)
    if held.whole and not (named and (one.seq == two.seq or one.code == "TAIL_CUT")):
        raise Escaped(f"{one} before a record was appended, {two} now")
    return f"writer went on above a damage that verify names: {after.findings[0].code}"


def _unchanged(folder: Path, held: Read, size: int) -> None:
    if not held.whole:
        return
    now = read_store(folder)
    if now.rows[: len(held.rows)] != held.rows or len(now.rows) < size:
        raise Escaped(f"a writer changed rows from {first_difference(held.rows, now.rows)} on")
