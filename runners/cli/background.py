"""Supervisors in the background: a command of this program in a session of its own, which outlives who started it.

Who starts one waits until its claim is on record, and is told what refused it where there is none. Nothing passes between
the two but the ledger and a log, so it does not matter when the one who waits is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.codes import CODES
from ledger.errors import LedgerError, UsageError
from runners.train.logs import END_BYTES, LogReader, supervisor_log
from runners.train.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ledger.record import Record
    from runners.cli.context import App

    Tell = Callable[[str, dict[str, Any]], None]

POLL_S = 0.1
SAY_AFTER_S = 5.0
STARTING = "starting"
FULL_BYTES = 1 << 16
"""With less free space than this a disk is full for a log; its last block is often still free."""


@dataclass(frozen=True)
class Background:
    """A supervisor that was started: its process, and the log it writes until it has claimed something."""

    process: subprocess.Popen[bytes]
    log: Path


def start(app: App, *words: str) -> Background:
    """Start `evidence run WORDS` as a supervisor without a terminal.

    Raises:
        OSError: the machine refused a file or a process.
    """
    folder = app.ledger_path.resolve() / "work" / STARTING
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix="supervisor-", suffix=".log")
    os.close(handle)
    log = Path(name)
    command = [sys.executable, "-P", "-m", "runners.cli.main", "run", *words]
    command += ["--supervise", str(log), "--json", "--ledger", app.ledger_text]
    command += ["--key", app.key] if app.key else []
    with log.open("ab") as output:  # appending: a log that is cut goes on at its new end
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**app.environment, "EVIDENCE_PROGRESS": "1"},
            start_new_session=True,
        )
    return Background(process, log)


def await_claim(
    app: App, background: Background, place: int, is_claim: Callable[[Record], bool]
) -> Record:
    """Wait until the supervisor's claim, or another's before it, is on record.

    Args:
        app: of the command that waits.
        background: the supervisor.
        place: the ledger's size before it was started.
        is_claim: whether a new record is what is waited for.

    Raises:
        LedgerError: what refused the supervisor; `RUN_FAILED`, it ended without a word of ours.
    """
    begun, said = time.monotonic(), False
    with app.read_ledger() as ledger:
        tail = Tail(ledger, place)
        while True:
            over = background.process.poll() is not None  # before the look: its claim is then seen
            claim = next((record for record in tail.look() if is_claim(record)), None)
            if claim is not None:
                return claim
            if over:
                raise _refusal(background)
            if not said and time.monotonic() - begun > SAY_AFTER_S:
                said = True
                app.say("reading data and model before the run begins; it does so without you too")
            time.sleep(POLL_S)


def settle_log(log: Path, tell: Tell) -> Tell:
    """In a supervisor: put its log among its run's files once the run is claimed, else tell on."""

    def settled(event: str, fields: dict[str, Any]) -> None:
        if event == "claimed":
            log.replace(supervisor_log(Path(fields["work"]), fields["attempt"]))
        tell(event, fields)

    return settled


def _refusal(background: Background) -> LedgerError:
    """What a supervisor without a claim said last; its log goes where its error is told whole."""
    error = _error_of(background.log)
    if error is not None:
        background.log.unlink(missing_ok=True)
        return error
    code = background.process.returncode
    if not background.log.stat().st_size:
        return _silent(background.log, code, shutil.disk_usage(background.log.parent).free)
    return UsageError(
        "RUN_FAILED",
        f"the supervisor ended with exit code {code} before it claimed anything",
        hint=f"see {background.log}",
    )


def _silent(log: Path, code: int, free_bytes: int) -> LedgerError:
    """Why a supervisor may have said nothing: its words went to a log that could not be written."""
    if free_bytes < FULL_BYTES:
        return UsageError(
            "DISK_FULL",
            f"the supervisor ended with exit code {code}, and no space is left for what it said",
            field=str(log.parent),
        )
    killed = f", by signal {-code}" if code < 0 else ""
    return UsageError(
        "RUN_FAILED",
        f"the supervisor ended with exit code {code}{killed} and said nothing before it claimed anything",
        hint="see why: the same command with --wait",
    )


def _error_of(log: Path) -> LedgerError | None:
    lines = LogReader(log, END_BYTES).read().splitlines()
    try:
        error = json.loads(lines[-1])["error"] if lines else None
    except (
        ValueError,
        KeyError,
        TypeError,
    ):  # the last line is no answer of ours: a traceback, say
        return None
    if not isinstance(error, dict) or error.get("code") not in CODES:
        return None
    return UsageError(str(error.pop("code")), str(error.pop("message", "")), **error)
