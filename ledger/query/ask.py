"""Ask a ledger in SQL: the query runs in a process of its own, with a deadline and bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from ledger.store.address import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ledger.query.segments import History

Waiting = Callable[[int], None]
Sealing = Callable[[int, int], None]
TICK_S = 1.0
DEFAULT_MAX_ROWS = 10_000
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_MEMORY_BYTES = 1 << 30
# what a Python process needs to start, and no key's passphrase
_ENVIRONMENT = (
    *("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR"),
    # where a shared store lies and how it is reached; a password only by its file
    *(VARIABLE, "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY"),
)


@dataclass(frozen=True)
class AsOf:
    """The head at which a ledger was read.

    Args:
        size: how many records.
        root: the RFC 6962 root over them, as hex.
    """

    size: int
    root: str


@dataclass(frozen=True)
class Answer:
    """What came back.

    Args:
        columns: names.
        rows: cells as JSON values; times are UTC in ISO form, bytes are hex.
        truncated: whether there were more rows.
        as_of: where the ledger was read.
    """

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    as_of: AsOf


@dataclass(frozen=True)
class ParquetAnswer:
    """What came back as a file; its metadata has `as_of_size` and `as_of_root`.

    Args:
        data: the file's bytes.
        rows: how many rows it holds.
        truncated: whether there were more.
        as_of: where the ledger was read.
    """

    data: bytes
    rows: int
    truncated: bool
    as_of: AsOf


@dataclass(frozen=True)
class Limits:
    """What a query may use.

    Args:
        max_rows: rows kept of the answer.
        timeout_s: seconds until the process is killed, reading the ledger included.
        memory_bytes: what the statement may use beyond the tables themselves.
    """

    max_rows: int = DEFAULT_MAX_ROWS
    timeout_s: float = DEFAULT_TIMEOUT_S
    memory_bytes: int = DEFAULT_MEMORY_BYTES


USUAL = Limits()


def ask(
    path: Path,
    sql: str,
    parameters: Mapping[str, str] | None = None,
    limits: Limits = USUAL,
    waiting: Waiting | None = None,
    history: History | None = None,
    sealing: Sealing | None = None,
) -> Answer:
    """Run one SELECT over a ledger's tables.

    Args:
        path: the ledger folder.
        sql: the statement; `$name` stands for a parameter.
        parameters: their values, all text.
        limits: in rows, time and memory.
        waiting: called each second with the seconds that went by.
        history: where segments of ledgers lie; None to read every record.
        sealing: called with records sealed and records to seal, where segments are made first: outside the deadline.

    Raises:
        UsageError: `QUERY_REFUSED`, `QUERY_FAILED`, `QUERY_LIMITS`, `LEDGER_NOT_FOUND`.
        EvidenceError: what reading the ledger says.
    """
    question = _Question(path, sql, dict(parameters or {}), limits, parquet=False)
    found, _ = _ask(question, waiting, history, sealing)
    return Answer(found["columns"], found["rows"], found["truncated"], AsOf(**found["as_of"]))


def ask_parquet(
    path: Path,
    sql: str,
    parameters: Mapping[str, str] | None = None,
    limits: Limits = USUAL,
    waiting: Waiting | None = None,
    history: History | None = None,
    sealing: Sealing | None = None,
) -> ParquetAnswer:
    """Run one SELECT; the answer as a Parquet file. Arguments and errors are those of `ask`."""
    question = _Question(path, sql, dict(parameters or {}), limits, parquet=True)
    found, data = _ask(question, waiting, history, sealing)
    return ParquetAnswer(data, found["rows"], found["truncated"], AsOf(**found["as_of"]))


@dataclass(frozen=True)
class _Question:
    """What is asked of which ledger, within which limits, and in which form the answer is wanted."""

    path: Path
    sql: str
    parameters: dict[str, str]
    limits: Limits
    parquet: bool

    def request(self, history: History | None) -> bytes:
        """What the child is told."""
        return json.dumps(
            {
                "ledger": str(self.path),
                "sql": self.sql,
                "parameters": self.parameters,
                "parquet": self.parquet,
                "segments": None if history is None else _told(history),
                **asdict(self.limits),
            }
        ).encode()


def _ask(
    question: _Question,
    waiting: Waiting | None,
    history: History | None,
    sealing: Sealing | None,
) -> tuple[dict[str, Any], bytes]:
    """The answer; where segments are due or not the ledger's, they are made, once."""
    try:
        return _answered(question, history, waiting)
    except (UsageError, EvidenceError) as error:
        if history is None or error.code not in ("SEGMENTS_DUE", "SEGMENT_INVALID"):
            raise
    seal(question.path, history, sealing)
    return _answered(question, history, waiting)


def _answered(
    question: _Question, history: History | None, waiting: Waiting | None
) -> tuple[dict[str, Any], bytes]:
    output = _output(question.request(history), question.limits.timeout_s, waiting)
    line, _, data = output.partition(b"\n")
    reply = json.loads(line)
    if "error" in reply:
        raise _raised(reply)
    return reply["answer"], data


def seal(path: Path, history: History, sealing: Sealing | None = None) -> dict[str, Any]:
    """Bring a ledger's segments forward, in a process of its own; the fields of `sealing.Built`.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: a row is no record; the store's own.
    """
    request = {"ledger": str(path), **_told(history)}
    reply: dict[str, Any] = {}
    with subprocess.Popen(
        _command("sealing"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
    ) as child:
        try:
            assert child.stdin is not None and child.stdout is not None  # noqa: PT018 - both are pipes
            child.stdin.write(json.dumps(request).encode())
            child.stdin.close()
            for line in child.stdout:
                reply = json.loads(line)
                if "sealed" in reply and sealing is not None:
                    sealing(reply["sealed"], reply["of"])
        finally:
            child.kill()
    if "error" in reply:
        raise _raised(reply)
    if "built" not in reply:
        raise UsageError("QUERY_LIMITS", "the process that seals history was ended by the system")
    built: dict[str, Any] = reply["built"]
    return built


def _told(history: History) -> dict[str, Any]:
    return {"folder": str(history.folder), "from_records": history.from_records}


def _raised(reply: dict[str, Any]) -> UsageError | EvidenceError:
    family = UsageError if reply["usage"] else EvidenceError
    return family(**reply["error"])


def _command(module: str) -> list[str]:
    # -P: a module in the current folder must never be taken for one of ours
    return [sys.executable, "-P", "-m", f"ledger.query.{module}"]


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


def _output(request: bytes, timeout_s: float, waiting: Waiting | None) -> bytes:
    """What the child wrote."""
    with subprocess.Popen(
        _command("child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,  # an interrupt reaches us, and we end the child
    ) as child:
        try:
            output = _communicated(child, request, timeout_s, waiting)
        except subprocess.TimeoutExpired:
            raise UsageError(
                "QUERY_LIMITS", f"the query took longer than {timeout_s:g} s"
            ) from None
        finally:
            child.kill()
    if child.returncode != 0 or not output:
        raise UsageError(
            "QUERY_LIMITS",
            "the query's process was ended by the system, most likely for its memory",
            actual=f"exit status {child.returncode}",
        )
    return output


def _communicated(
    child: subprocess.Popen[bytes], request: bytes, timeout_s: float, waiting: Waiting | None
) -> bytes:
    begun = time.monotonic()
    sent: bytes | None = request
    while True:
        left_s = timeout_s - (time.monotonic() - begun)
        try:
            return child.communicate(sent, max(min(left_s, TICK_S), 0))[0]
        except subprocess.TimeoutExpired:
            sent = None  # what is left of it is sent all the same
            if left_s <= TICK_S:
                raise
            if waiting is not None:
                waiting(int(time.monotonic() - begun))
