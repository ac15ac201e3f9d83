"""The line protocol between a supervising process and a child that runs model code.

    parent -> child   one job object, one line
    child  -> parent  {"n": 1, "event": "start", …}
    parent -> child   {"n": 1, "ok": true, "stop": false, …}     and only then the child goes on
    …
    child  -> parent  {"n": k, "event": "end", "outcome": "completed" | "failed" | "stopped", …}

Every event waits for its reply. That is the point: an optimizer step whose record could not be written does not
happen, and a child whose parent died stops at its next event. Lines are canonical JSON, so a real number is text.
The child holds no key and learns no secret; what it says is evidence for the parent to check, never an instruction.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ledger import canonical
from ledger.errors import EvidenceError, LedgerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES = 4 << 20

OUTCOMES = frozenset({"completed", "failed", "stopped"})


class Asked(Protocol):
    """Who is told what happened, or is about to, and answers once it is written down.

    Attributes:
        stop: whether to take no further step.
    """

    stop: bool

    def ask(self, event: str, **fields: Any) -> dict[str, Any]:
        """Say what happened, or is about to; see `Channel.ask`."""


class Channel:
    """The child's end: it asks, and waits for the answer.

    Args:
        reader: lines from the parent.
        writer: lines to the parent.
    """

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._sent = 0
        self.stop = False

    def job(self) -> dict[str, Any]:
        """The job: the first line.

        Raises:
            EvidenceError: `CHILD_PROTOCOL` or `NOT_CANONICAL`, it is no job object.
            UsageError: `CHILD_REFUSED`, the parent is gone.
        """
        return self._read()

    def ask(self, event: str, **fields: Any) -> dict[str, Any]:
        """Say what happened, or is about to, and wait until the parent has written it down.

        Args:
            event: the event's name.
            fields: its fields: JSON values without floating-point numbers.

        Raises:
            UsageError: `CHILD_REFUSED`, the parent said no, or is gone.
            EvidenceError: `NOT_CANONICAL`, a field is no canonical JSON; `CHILD_PROTOCOL`, the reply is to
                another event.
        """
        line = canonical.encode({"n": self._sent + 1, "event": event, **fields}) + b"\n"
        self._sent += 1
        self._writer.write(line)
        self._writer.flush()
        reply = self._read()
        if reply.get("n") != self._sent:
            raise EvidenceError(
                "CHILD_PROTOCOL", f"event {self._sent} got a reply to {reply.get('n')}"
            )
        self.stop = self.stop or bool(reply.get("stop"))
        if reply.get("ok") is not True:
            raise UsageError("CHILD_REFUSED", str(reply.get("message", "the supervisor refused")))
        return reply

    def _read(self) -> dict[str, Any]:
        line = self._reader.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise UsageError("CHILD_REFUSED", "the supervising process is gone")
        return parse_line(line)


def parse_line(line: bytes) -> dict[str, Any]:
    """The object of one line.

    Raises:
        EvidenceError: `CHILD_PROTOCOL`, it is not one JSON object, or too long.
    """
    if len(line) > MAX_LINE_BYTES:
        raise EvidenceError("CHILD_PROTOCOL", f"a line is longer than {MAX_LINE_BYTES} bytes")
    try:
        value = canonical.decode(line.rstrip(b"\n"))
    except EvidenceError as error:
        raise EvidenceError("CHILD_PROTOCOL", f"a line is no message: {error.message}") from None
    if not isinstance(value, dict):
        raise EvidenceError("CHILD_PROTOCOL", f"a line is a {type(value).__name__}, not an object")
    return value


def claim_stdio() -> Channel:
    """Take stdin and stdout for the protocol; whatever a library prints afterwards goes to stderr."""
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Channel(sys.stdin.buffer, writer)


def serve(
    work: Callable[[Channel, dict[str, Any]], dict[str, Any]],
    claim: Callable[[], Channel] = claim_stdio,
) -> int:
    """Run a child's work on the job it is sent, and say how it ended.

    An error of ours becomes a typed `end`; any other leaves its traceback in the log and no `end`, which the
    parent reports as `CHILD_DIED`.

    Args:
        work: does the job; the fields it returns join the `end` event (`outcome` among them, if not completed).
        claim: takes the channel to the parent.

    Returns:
        The exit code: 0 unless the work failed.
    """
    channel = claim()
    try:
        ended = {"outcome": "completed", **work(channel, channel.job())}
    except LedgerError as error:
        if error.code == "CHILD_REFUSED":
            sys.stderr.write(f"{error}\n")
            return 1
        ended = {"outcome": "failed", **error.as_dict()}
    channel.ask("end", **ended)
    return 0 if ended["outcome"] != "failed" else 1
