"""The parent's end of the protocol: start a child, answer its events, and survive whatever it does.

The child is its own process group with an environment of its own (`runners.environment.child_environment`), so
neither a Ctrl-C meant for the parent nor a secret meant for the ledger reaches it. On Ctrl-C (or SIGTERM, or SIGHUP), or
when `stop_requested` says so, the child is told at its next event; a second Ctrl-C, or `grace_s`, kills the group.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from ledger import canonical
from ledger.errors import EvidenceError
from runners.environment import child_environment
from runners.interrupts import first_is_a_wish
from runners.protocol import MAX_LINE_BYTES, OUTCOMES, parse_line
from runners.rank_notes import RankNotes, named
from runners.torchrun import RANK_WAIT_S, launching, notes_of

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

POLL_S = 0.2
GRACE_S = 120.0
SLOW_EVENTS = 3
EXIT_S = 30.0
OUTLIVE_S = 5.0

FAILURES = {
    "BAD_GRADIENT": "bad_gradient",
    "ROW_UNTRAINABLE": "bad_input",
    "ENCODING_DIFFERS": "bad_input",
    "MODEL_FILES_CHANGED": "bad_input",
    "MODEL_UNSAFE": "bad_input",
    "NO_SIGNAL": "no_signal",
    "SAMPLER_OTHER": "bad_input",
    "SAMPLER_STALE": "bad_input",
    "SAMPLER_REPLY": "bad_input",
    "SAMPLER_FAILED": "child_died",
    "SAMPLER_UNREACHABLE": "child_died",
    "SHORT_RUN": "short_run",
    "CHILD_REFUSED": "refused",
    "WORLD_SIZE": "refused",
    "CHILD_DIED": "child_died",
    "CHILD_PROTOCOL": "protocol",
}
"""The failure a `run.ended` record names, by the code of the error; any other code is `internal`."""

Event = dict[str, Any]
Reply = Mapping[str, Any]


@dataclass(frozen=True)
class ChildExit:
    """How a child ended: outcome, code and message of its error, exit code, events answered, fields of `end`."""

    outcome: str
    returncode: int
    events: int
    code: str | None = None
    message: str | None = None
    end: Event = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """The failure as `run.ended` names it, None unless it failed."""
        return None if self.code is None else FAILURES.get(self.code, "internal")


def run_child(
    module: str,
    job: Mapping[str, Any],
    on_event: Callable[[Event], Reply],
    log_path: Path,
    *,
    threads: int,
    processes: int = 1,
    rank_wait_s: int = RANK_WAIT_S,
    stop_requested: Callable[[], bool] = lambda: False,
    grace_s: float = GRACE_S,
) -> ChildExit:
    """Run `python -m module` on a job and answer its events in order until it ends.

    Args:
        module: a module whose `main` calls `runners.protocol.serve`.
        job: canonical JSON object, the child's first line.
        on_event: called with each event but `end`; it writes the records and returns the reply's fields, `{}` for
            a plain yes. A `LedgerError` it raises refuses the event: the child is killed and the error raised.
        log_path: file that gets the child's stderr, appended.
        threads: for the child's numeric libraries, in each of its processes.
        processes: with more than 1 the module's `main` serves through `runners.train.shared_channel`.
        rank_wait_s: how long one of several processes waits for the others, before the run fails and says for whom.
        stop_requested: asked at every event and a few times a second.
        grace_s: how long a child that is to stop may take, beside three times what its slowest event took: a step
            that goes on when it is asked, and the saving after it.

    Returns:
        How it ended. A child that wrote nonsense or died is `failed` with `CHILD_PROTOCOL` or `CHILD_DIED`.

    Raises:
        LedgerError: what `on_event` raised.
        KeyboardInterrupt: the second Ctrl-C.
    """
    with (
        first_is_a_wish() as wish,
        log_path.open("ab") as log,
        launching(module, processes, rank_wait_s) as (command, more),
        _Child(command, log.fileno(), child_environment(os.environ, threads) | more) as child,
    ):
        watch = _Watch(lambda: wish() or stop_requested(), grace_s)
        notes = notes_of(more)

        def answer(event: Event) -> Reply:
            with wish.held():  # a record is written whole, whoever insists
                return on_event(event)

        try:
            child.send(job)
            return _named(_converse(child, answer, watch), notes)
        except EvidenceError as error:
            if error.code != "CHILD_PROTOCOL":
                raise
            child.kill()
            return ChildExit("failed", child.wait(), child.events, error.code, error.message)
        except BrokenPipeError:
            return _named(_died(child, watch), notes)


def _named(ended: ChildExit, notes: RankNotes | None) -> ChildExit:
    """Of several processes that died, which one did, and how, as far as they or their launcher left word."""
    why = notes.why() if notes is not None and ended.code == "CHILD_DIED" else None
    return ended if why is None else replace(ended, message=why)


def _converse(child: _Child, on_event: Callable[[Event], Reply], watch: _Watch) -> ChildExit:
    for line in child.lines(watch):
        event = _checked(parse_line(line), child.events + 1)
        child.events += 1
        watch.heard()
        if event["event"] == "end":
            child.send({"n": event["n"], "ok": True, "stop": False})
            return _ended(child, event)
        reply = dict(on_event(event))
        child.send({"ok": True, **reply, "n": event["n"], "stop": watch.stopping()})
    return _died(child, watch)


def _checked(event: Event, number: int) -> Event:
    if event.get("n") != number or not isinstance(event.get("event"), str):
        raise EvidenceError("CHILD_PROTOCOL", f"message {number} has no number or no event name")
    if event["event"] == "end" and event.get("outcome") not in OUTCOMES:
        raise EvidenceError("CHILD_PROTOCOL", f"the outcome {event.get('outcome')!r} is none")
    return event


def _ended(child: _Child, event: Event) -> ChildExit:
    failed = event["outcome"] == "failed"
    code = str(event.get("code", "CHILD_DIED")) if failed else None
    message = str(event.get("message", "")) if failed else None
    return ChildExit(event["outcome"], child.wait(), child.events, code, message, event)


def _died(child: _Child, watch: _Watch) -> ChildExit:
    child.kill_if(watch.expired())
    code = child.wait()
    if watch.expired():
        return ChildExit("stopped", code, child.events, message="killed: it did not stop in time")
    why = named(code) if code < 0 else f"exit code {code}"
    return ChildExit("failed", code, child.events, "CHILD_DIED", f"it ended with {why}")


class _Watch:
    """Whether the child is to stop, and whether it has had its time to do so."""

    def __init__(self, stop_requested: Callable[[], bool], grace_s: float) -> None:
        self._asked = stop_requested
        self._grace_s = grace_s
        self._since: float | None = None
        self._heard = time.monotonic()
        self._slowest_s = 0.0

    def heard(self) -> None:
        """An event came."""
        now = time.monotonic()
        self._slowest_s = max(self._slowest_s, now - self._heard)
        self._heard = now

    def stopping(self) -> bool:
        asked = self._asked()
        if self._since is None and asked:
            self._since = time.monotonic()
        return self._since is not None

    def expired(self) -> bool:
        if self._since is None:
            return False
        return time.monotonic() - self._since > self._grace_s + SLOW_EVENTS * self._slowest_s


class _Child:
    """A child process group, its pipes and its line buffer."""

    def __init__(self, command: list[str], log: int, environment: dict[str, str]) -> None:
        self.events = 0
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_if(self._process.poll() is None)
        self._process.wait()
        self._outlive()
        self._stdout.close()
        try:
            self._stdin.close()
        except BrokenPipeError:
            # bytes that a dead child never read: how it died is reported already
            return

    def send(self, message: Mapping[str, Any]) -> None:
        self._stdin.write(canonical.encode(dict(message)) + b"\n")
        self._stdin.flush()

    def lines(self, watch: _Watch) -> Iterator[bytes]:
        """Whole lines as they come; ends at end of file or when the time to stop is over."""
        buffer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while not (watch.stopping() and watch.expired()):
                if not selector.select(POLL_S):
                    continue
                chunk = os.read(self._stdout.fileno(), 1 << 16)
                if not chunk:
                    return
                buffer += chunk
                yield from _take_lines(buffer)

    def kill_if(self, condition: bool) -> None:
        if condition:
            self.kill()

    def kill(self) -> None:
        """Kill the whole group: a child's own helpers must not outlive it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _outlive(self) -> None:
        """Wait until nobody holds the child's end of the pipe: ranks die with their launcher, a moment later."""
        deadline = time.monotonic() + OUTLIVE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while (left_s := deadline - time.monotonic()) > 0:
                if selector.select(left_s) and not os.read(self._stdout.fileno(), 1 << 16):
                    return

    def wait(self) -> int:
        """The exit code; a child that said `end` but does not go is killed."""
        try:
            return self._process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()


def _take_lines(buffer: bytearray) -> Iterator[bytes]:
    while (end := buffer.find(b"\n")) >= 0:
        line = bytes(buffer[: end + 1])
        del buffer[: end + 1]
        yield line
    if len(buffer) > MAX_LINE_BYTES:
        raise EvidenceError("CHILD_PROTOCOL", f"a line is longer than {MAX_LINE_BYTES} bytes")
