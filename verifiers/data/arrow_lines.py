"""Parquet and Arrow files as JSON lines, read by a process of its own with bounded memory and time.

The reader is native code that parses whatever a stranger wrote. In a process of its own it can neither take this
one's memory nor end it; what comes back are lines for the one parser.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from ledger.errors import EvidenceError
from verifiers.data.rows import lines_of

REFUSED = 3  # the child's exit status where it says why
MAX_TABLE_BYTES = 1 << 30
MAX_TEXT_BYTES = 4 << 30
_CHUNK_BYTES = 1 << 20
# what a Python process needs to start, and nobody's secrets
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR")
# other allocators reserve more address space than the child may have
_PLAIN = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}


def table_lines(data: bytes, form: str, name: str) -> Iterator[tuple[int, bytes | None]]:
    """(number, JSON) of each row of a table.

    Args:
        data: the file.
        form: parquet or arrow.
        name: what the file is called, for the message.

    Raises:
        EvidenceError: `SOURCE_UNREADABLE`, the file is broken, holds what no row can hold, or takes too much.
    """
    if len(data) > MAX_TABLE_BYTES:
        raise _unreadable(name, f"it has more than {MAX_TABLE_BYTES} bytes")
    yield from lines_of(_output(data, form, name))


def _output(data: bytes, form: str, name: str) -> Iterator[bytes]:
    # -P: a module in the current folder must never be taken for one of ours
    command = [sys.executable, "-P", "-m", "verifiers.data.arrow_child", form]
    environment = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ} | _PLAIN
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(data)
        given.seek(0)
        with subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=said, env=environment
        ) as child:
            assert child.stdout is not None
            total = 0
            try:
                while chunk := child.stdout.read(_CHUNK_BYTES):
                    total += len(chunk)
                    if total > MAX_TEXT_BYTES:
                        raise _unreadable(name, f"its rows take more than {MAX_TEXT_BYTES} bytes")
                    yield chunk
                status = child.wait()
            finally:
                child.kill()
        if status != 0:
            said.seek(0)
            lines = said.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            raise _unreadable(name, _reason(status, lines[-1] if lines else ""))


def _reason(status: int, last_line: str) -> str:
    return last_line[:200] if status == REFUSED else f"its reader ended with status {status}"


def _unreadable(name: str, message: str) -> EvidenceError:
    return EvidenceError("SOURCE_UNREADABLE", f"{name}: {message}", field=name)
