"""Ask a ledger in SQL: the query runs in a process of its own, with a deadline and bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_MAX_ROWS = 10_000
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_MEMORY_BYTES = 1 << 30
# what a Python process needs to start, and no key's passphrase
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR")


@dataclass(frozen=True)
class Answer:
    """What came back.

    Args:
        columns: names.
        rows: cells as JSON values; times are UTC in ISO form, bytes are hex.
        truncated: whether there were more rows.
        size: number of records in the ledger when it was read.
        root: its RFC 6962 root then, as hex.
    """

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    size: int
    root: str


def ask(
    path: Path,
    sql: str,
    parameters: Mapping[str, str] | None = None,
    *,
    max_rows: int = DEFAULT_MAX_ROWS,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Answer:
    """Run one SELECT over a ledger's tables.

    Args:
        path: the ledger folder.
        sql: the statement; `$name` stands for a parameter.
        parameters: their values, all text.
        max_rows: rows kept of the answer.
        timeout_s: seconds until the process is killed, reading the ledger included.
        memory_bytes: what the statement may use beyond the tables themselves.

    Raises:
        UsageError: `QUERY_REFUSED`, `QUERY_FAILED`, `QUERY_LIMITS`, `LEDGER_NOT_FOUND`.
        EvidenceError: what reading the ledger says.
    """
    request = {
        "ledger": str(path),
        "sql": sql,
        "parameters": dict(parameters or {}),
        "max_rows": max_rows,
        "memory_bytes": memory_bytes,
    }
    reply = _reply(json.dumps(request).encode(), timeout_s)
    if "error" in reply:
        family = UsageError if reply["usage"] else EvidenceError
        raise family(**reply["error"])
    answer = reply["answer"]
    as_of = answer.pop("as_of")
    return Answer(**answer, size=as_of["size"], root=as_of["root"])


def _reply(request: bytes, timeout_s: float) -> dict[str, Any]:
    # -P: a module in the current folder must never be taken for one of ours
    command = [sys.executable, "-P", "-m", "ledger.query.child"]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # an interrupt reaches us, and we end the child
    ) as child:
        try:
            output, _ = child.communicate(request, timeout_s)
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
    reply = json.loads(output)
    assert isinstance(reply, dict)
    return reply
