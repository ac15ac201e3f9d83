"""The logs of a run: where they lie, how they stay bounded, and their end.

Trainer and supervisor append to files that they hold open, so a log is bounded by copying it aside and cutting it to
nothing: who writes goes on at the new end. A line that is written in between is lost; the records are not in a log.
"""

from __future__ import annotations

import codecs
import os
import shutil
from typing import TYPE_CHECKING

from ledger.digests import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.record import Record

LOG_BYTES = 8 << 20
END_BYTES = 1 << 20
LINE_CHARACTERS = 1000
OLDER = ".older"


def work_folder(ledger: Path, run: Record) -> Path:
    """Where a run's files lie that are not the ledger's: logs, and a folder for each attempt."""
    return ledger / "work" / run.id[7:23]


def child_log(work: Path) -> Path:
    """What the training process and its libraries wrote, all attempts together."""
    return work / "child.log"


def supervisor_log(work: Path, number: int) -> Path:
    """What the supervisor of an attempt wrote, where it ran in the background."""
    return work / f"supervisor-{number}.log"


def newest_supervisor_log(work: Path) -> Path | None:
    """The log of the newest attempt that ran in the background, None where none did."""
    found = {
        path.name.removeprefix("supervisor-").removesuffix(".log"): path
        for path in work.glob("supervisor-*.log")
    }
    numbers = sorted(
        int(name) for name in found if name.isdecimal() and name.isascii() and len(name) < 9
    )
    return found[str(numbers[-1])] if numbers else None


def trim(path: Path, most_bytes: int = LOG_BYTES) -> None:
    """Put a log aside and begin it anew where it has grown beyond its bound; the one put aside before is replaced.

    Args:
        path: the log; one that is not there needs nothing.
        most_bytes: beyond which it is cut; on disk there are then at most two such files.

    Raises:
        OSError: the log cannot be cut.
    """
    try:
        if path.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    older = path.with_name(path.name + OLDER)
    try:
        shutil.copyfile(path, older)
    except OSError:  # no room to keep it: a bounded log matters more than an old one
        older.unlink(missing_ok=True)
    os.truncate(path, 0)


def end_of(path: Path) -> str:
    """The last part of a log: the ledger may be a stranger's, and its log a link or without end.

    Raises:
        EvidenceError: `UNSAFE_PATH`, it is no regular file.
        FileNotFoundError: there is none.
    """
    return LogReader(path, END_BYTES).read()


def shortened(line: str, before: int = 0) -> str:
    """A line as it is shown: of one that goes on and on the end, where progress and errors stand.

    Args:
        line: what is held of it.
        before: how many of its characters were let go already.
    """
    left_out = max(0, len(line) - LINE_CHARACTERS)
    if not left_out + before:
        return line
    return f"({left_out + before} characters before) {line[left_out:]}"


class LogReader:
    """A log read piece by piece as it grows; one that was cut is read on from its new beginning.

    Args:
        path: the log.
        end_bytes: how much of what is there already is given at first.
    """

    def __init__(self, path: Path, end_bytes: int = END_BYTES) -> None:
        self._path = path
        with open_regular(path) as stream:
            self._place = max(0, stream.seek(0, os.SEEK_END) - end_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> str:
        """What came since the last time, at most `END_BYTES` of it.

        Raises:
            EvidenceError: `UNSAFE_PATH`.
            FileNotFoundError: it is gone.
        """
        with open_regular(self._path) as stream:
            if stream.seek(0, os.SEEK_END) < self._place:
                self._place = 0
            stream.seek(self._place)
            data = stream.read(END_BYTES)
        self._place += len(data)
        return self._decoder.decode(data)


class LogLines:
    """A log line by line as it grows, each as it is shown; of a line that has no end yet only the end is held.

    Args:
        path: the log.

    Raises:
        EvidenceError: `UNSAFE_PATH`.
        FileNotFoundError: there is none.
    """

    def __init__(self, path: Path) -> None:
        self._reader = LogReader(path)
        self._held = ""
        self._before = 0

    def look(self) -> list[str]:
        """The lines that were finished since the last time.

        Raises:
            EvidenceError: `UNSAFE_PATH`.
            FileNotFoundError: it is gone.
        """
        *whole, last = (self._held + self._reader.read()).split("\n")
        lines: list[str] = []
        for line in whole:
            *earlier, end = line.splitlines() or [""]
            lines += [shortened(part) for part in earlier]
            lines.append(shortened(end, self._before))
            self._before = 0
        left_out = max(0, len(last) - LINE_CHARACTERS)
        self._held, self._before = last[left_out:], self._before + left_out
        return lines

    @property
    def rest(self) -> str:
        """What there is of a line that has no end yet; empty where there is none."""
        return shortened(self._held, self._before) if self._held else ""
