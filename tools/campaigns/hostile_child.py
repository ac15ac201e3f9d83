"""One call of the real command line in a process with bounds, and what must hold of how it ends."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.report import ROOT

PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", "runners.cli.main")
MEMORY_BYTES = 2 << 30
CPU_S = 20
WALL_S = 120
FILE_BYTES = 64 << 20
OUTPUT_BYTES = 64 << 10
SAYS_WRONG = (b"wrong:", b"incomplete:", b'{"ok": false, ')
"""`evidence verify` answers with findings on stdout, and --json with one object there, instead of on stderr."""

Word = str | bytes


@dataclass(frozen=True)
class Attack:
    """One call to make.

    Args:
        words: what follows the program's name.
        environment: variables beside those that every call has.
        accepts: whether exit code 0 is right too: the input may be good after all.
        stdin: what the process reads.
        meddle: called while the process runs.
        may_record: whether a call that ends in an error may have recorded what it was asked to.
        leaves: folders, relative to the case's, that must be as they were whatever the exit code.
    """

    words: tuple[Word, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    accepts: bool = False
    stdin: bytes = b""
    meddle: Callable[[], None] | None = None
    may_record: bool = False
    leaves: tuple[str, ...] = ("outside", "tmp")


@dataclass(frozen=True)
class Ended:
    """How a call ended; `code` is negative for a signal and None where time was up."""

    code: int | None
    out: bytes
    err: bytes


def call(attack: Attack, folder: Path, memory_bytes: int = MEMORY_BYTES) -> Ended:
    """Make the call with the case's own home, bounded in memory, processor time and file size."""
    with subprocess.Popen(
        [os.fsencode(word) for word in (*PROGRAM, *attack.words)],
        cwd=folder,
        env=environment(folder) | dict(attack.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: _bound(memory_bytes),  # noqa: PLW1509 - no thread of ours holds a lock the child needs
    ) as child:
        try:
            if attack.meddle is not None:
                attack.meddle()
            out, err = child.communicate(attack.stdin, WALL_S)
        except subprocess.TimeoutExpired:
            child.kill()
            return Ended(None, *child.communicate())
    return Ended(child.returncode, out, err)


def environment(folder: Path) -> dict[str, str]:
    """The variables of every call: everything that the program may write lies below the case's folder."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home/cache"),
        "XDG_CONFIG_HOME": str(folder / "home/config"),
        "XDG_STATE_HOME": str(folder / "home/state"),
    }


def problems(attack: Attack, ended: Ended) -> list[str]:
    """What of the exit code, the error and the output is not as it must be."""
    found = list(_of_exit(attack, ended))
    if b"Traceback" in ended.err or b"Traceback" in ended.out:
        found.append("a traceback: " + ended.err.decode("utf-8", "replace")[-300:])
    if b"out of memory" in ended.err:
        found.append("it ran into the bound on memory")
    for name, data in (("stdout", ended.out), ("stderr", ended.err)):
        found += _of_text(name, data)
    return found


def _bound(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _of_exit(attack: Attack, ended: Ended) -> list[str]:
    if ended.code is None:
        return [f"no end after {WALL_S} s"]
    if ended.code < 0:
        return [f"ended by signal {-ended.code}"]
    if ended.code == 0:
        return [] if attack.accepts else ["hostile input was accepted"]
    if ended.code not in {1, 2}:
        return [f"exit code {ended.code}"]
    lines = ended.err.decode("utf-8", "replace").splitlines()
    errors = sum(line.startswith("error:") for line in lines)
    errors += ended.out.startswith(SAYS_WRONG)
    if errors != 1:
        return [f"{errors} errors instead of one: {lines[:3]}"[:300]]
    if any(line.lower().startswith("error: error") for line in lines):
        return ["the word error stands twice"]
    return []


def _of_text(name: str, data: bytes) -> list[str]:
    """The terminal must get bounded, valid text without a character that it obeys."""
    if len(data) > OUTPUT_BYTES:
        return [f"{len(data)} bytes on {name}"]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [f"{name} is no UTF-8"]
    raw = sorted({char for char in text if char != "\n" and not char.isprintable()})
    return [f"raw characters on {name}: {raw[:5]!r}"] if raw else []
