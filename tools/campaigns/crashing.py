"""What the crash campaigns share: a ledger of several writers, children that are killed, and the oracle.

The oracle keeps every acknowledgement and every row it has seen. After each blow the ledger must open by
itself, hold all of them, go on, and verify.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from world import ORIGIN, WRITER_ROLES, key

from campaigns.children.saying import clock
from ledger import highwater
from ledger.book import Ledger
from ledger.digests import PREFIX
from ledger.errors import LedgerError
from ledger.store.address import Address
from verifiers.report import Level, Report
from verifiers.verify import Options, verify

APPENDER = "campaigns.children.appender"
WRITERS = ("writer", "writer1", "writer2", "writer3")
STRACE_MISSING = "strace is not installed: kill points and faults at system calls cannot be made"
ENDING_S = 60.0


def strace_is_there() -> bool:
    """Whether the tool that makes kill points exact can be started."""
    return shutil.which("strace") is not None


def seed_of(name: str) -> str:
    """The private key of a name, as a child is given it."""
    return name.encode().ljust(32, b".").hex()


@dataclass(frozen=True)
class Site:
    """A ledger, its high-water folder, and keys for four writers."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """The ledger folder."""
        return self.folder / "ledger"

    @property
    def state(self) -> Path:
        """The folder of the high-water file."""
        return self.folder / "state"

    @classmethod
    def make(
        cls, folder: Path, names: Sequence[str] = WRITERS, address: Address | None = None
    ) -> Site:
        """A new ledger in an empty folder, or on a server, with every writer's key enrolled."""
        site = cls(folder)
        with Ledger.create(
            site.ledger,
            origin=ORIGIN,
            root_key=key("root"),
            writer_key=key(names[0]),
            writer_roles=WRITER_ROLES,
            nonce=f"{1:032x}",
            clock=clock,
            state_dir=site.state,
            address=address,
        ) as ledger:
            for number, name in enumerate(names[1:], 2):
                body = {
                    "key": key(name).id,
                    "public_key": key(name).public.hex(),
                    "roles": WRITER_ROLES,
                    "from_seq": ledger.size,
                    "owner": name,
                }
                ledger.append_stated(
                    "key.enrolled", body, {}, signer=key("root"), nonce=f"{number:032x}"
                )
        return site

    def open(self, state: Path | None = None) -> Ledger:
        """The ledger, to append as the first writer."""
        return Ledger.open(
            self.ledger, key=key(WRITERS[0]), clock=clock, state_dir=state or self.state
        )

    def open_read(self) -> Ledger:
        """The ledger, to read."""
        return Ledger.read(self.ledger)

    def verify(self, level: Level = "records") -> Report:
        """What a stranger with this user's high-water file finds."""
        return verify(self.ledger, Options(level=level, state_dir=self.state, workers=1))

    def copy(self, folder: Path) -> Site:
        """The same bytes in another place."""
        shutil.copytree(self.folder, folder)
        return Site(folder)


class Child:
    """A program of `campaigns.children` in a process of its own.

    Args:
        program: the module.
        folder: where what it says is kept.
        name: names the files there.
        options: what it is to do.
        before: words before the command, for a program that sets its stage and becomes it.
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        name: str,
        options: dict[str, Any],
        before: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        self._tracer: subprocess.Popen[str] | None = None
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*before, sys.executable, "-m", program, json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    def wait_ready(self) -> None:
        """Return when everything is loaded and the child waits for `go`.

        Raises:
            RuntimeError: it ended before that.
        """
        while not any(line.get("did") == "ready" for line in self.lines()):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} did not start: {self.stderr()[-2000:]}")
            time.sleep(0.002)

    def trace(self, *injections: str, log: Path | None = None) -> None:
        """Attach strace with its `inject=` expressions; what the child does from here on is counted."""
        calls = ",".join(item.split(":")[0] for item in injections)
        command = ["strace", "-p", str(self.process.pid), "-o", str(log or "/dev/null")]
        command += ["-e", f"trace={calls}"]
        for item in injections:
            command += [] if ":" not in item else ["-e", f"inject={item}"]
        self._tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        stderr = self._tracer.stderr
        assert stderr is not None
        for line in stderr:
            if "attached" in line:
                return
        raise RuntimeError(f"strace did not attach to {self.name}")

    def go(self) -> None:
        """Let it begin."""
        stdin = self.process.stdin
        assert stdin is not None
        _send(stdin)

    def kill(self) -> None:
        """SIGKILL, now."""
        self.process.kill()

    def wait(self, limit_s: float = ENDING_S) -> int:
        """Its exit status; minus the signal's number where one ended it."""
        status = self.process.wait(limit_s)
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self._tracer is not None:
            self._tracer.communicate()
            self._tracer = None
        return status

    def ends(self, limit_s: float = ENDING_S) -> bool:
        """Wait for its end; whether that came in time."""
        try:
            self.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.process.returncode == -signal.SIGKILL

    def lines(self) -> list[dict[str, Any]]:
        """What it said so far, whole lines only."""
        whole = self._out.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in whole]

    def said(self, what: str) -> list[dict[str, Any]]:
        """The lines of one sort."""
        return [line for line in self.lines() if line.get("did") == what]

    def stderr(self) -> str:
        """What it wrote to standard error: nothing, unless something escaped."""
        return self._err.read_text(encoding="utf-8", errors="replace")


def _send(stdin: IO[bytes]) -> None:
    stdin.write(b"go\n")
    stdin.flush()


@contextmanager
def ended(children: list[Child]) -> Iterator[None]:
    """See to it that no child outlives the block."""
    try:
        yield
    finally:
        for child in children:
            if child.process.poll() is None:
                child.process.kill()
                child.process.send_signal(signal.SIGCONT)
            child.wait()


@dataclass
class Oracle:
    """What must be in a ledger: every acknowledgement, and every row that was ever seen.

    Attributes:
        acknowledged: id by seq, of each append that returned.
        rows: id by seq, of each row seen after a blow.
        blobs: digests of blobs that acknowledged records name.
        lag: how far the high-water file was behind at the last look, in records.
        heard: how many acknowledgements children gave.
    """

    site: Site
    acknowledged: dict[int, str] = field(default_factory=dict)
    rows: dict[int, str] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)
    lag: int = 0
    heard: int = 0
    appended: int = 0

    def hear(self, child: Child) -> list[str]:
        """Take in a child's acknowledgements; two of one seq are a fork."""
        problems = []
        for line in child.said("ack"):
            self.heard += len(line["records"])
            self.blobs.update(line["blobs"])
            for seq, record_id in line["records"]:
                if self.acknowledged.setdefault(seq, record_id) != record_id:
                    problems.append(f"seq {seq} was acknowledged twice, as different records")
        return problems

    def look(self, level: Level = "records") -> list[str]:
        """Open, compare, append, verify: what is wrong, one line each."""
        mark = self._mark()
        try:
            with self.site.open() as ledger:
                problems = self._compare(ledger, mark)
                self.appended += 1
                record = ledger.append("note.added", {"text": f"after blow {self.appended}"})
                self.acknowledged[record.seq] = record.id
                self.rows[record.seq] = record.id
        except LedgerError as error:
            return [f"the ledger does not open and append by itself: {error}"]
        return problems + self._verify(level)

    def _mark(self) -> highwater.HighWater | None:
        with self.site.open_read() as ledger:
            first = ledger.at(0)
        assert first is not None
        return highwater.read(self.site.state, first.id)

    def _compare(self, ledger: Ledger, mark: highwater.HighWater | None) -> list[str]:
        stored = [(seq, stored_id) for seq, stored_id, _, _ in ledger.store.rows()]
        derived = {record.seq: record.id for record in ledger.records()}
        problems = []
        if [seq for seq, _ in stored] != list(range(len(stored))):
            problems.append("the seqs have a gap")
        if any(derived[seq] != PREFIX + stored_id.hex() for seq, stored_id in stored):
            problems.append("a stored id is not that of its bytes")
        for name, kept in (("acknowledged", self.acknowledged), ("seen before", self.rows)):
            lost = [seq for seq, record_id in kept.items() if derived.get(seq) != record_id]
            if lost:
                problems.append(f"records {name} are gone or others now: seqs {sorted(lost)[:5]}")
        lost_blobs = [digest for digest in sorted(self.blobs) if not ledger.blobs.has(digest)]
        if lost_blobs:
            problems.append(f"blobs that acknowledged records name are gone: {lost_blobs[:3]}")
        self.lag = len(stored) - (mark.size if mark else 0)
        if self.lag < 0:
            problems.append("the high-water file leads the ledger")
        self.rows = derived
        return problems

    def _verify(self, level: Level) -> list[str]:
        report = self.site.verify(level)
        problems = [f"verify: {item.code}: {item.message}" for item in report.findings]
        problems += [
            f"verify warns: {item.code}: {item.message}"
            for item in report.warnings
            if item.code != "CLOCK_BACKWARDS"
        ]
        if report.verdict == "verified" and report.records != len(self.rows):
            problems.append(f"verify saw {report.records} records of {len(self.rows)}")
        return problems
