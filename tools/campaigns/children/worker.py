"""Do one job on a ledger, each act on its own, and say what came of it: done, refused, or escaped.

The job is first done on a ledger that does not count, so that every module is loaded before faults begin.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.children.saying import (
    acknowledge,
    clock,
    options_given,
    refused,
    say,
    silent,
    source,
    wait_for_go,
)
from ledger.book import Draft, Ledger
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError
from runners.cli import boundary
from runners.cli.context import App
from runners.cli.main import root

Act = Callable[[Ledger], None]


def _notes(ledger: Ledger) -> None:
    for number in range(2):
        acknowledge([ledger.append("note.added", {"text": f"note {number}"})])


def _group(ledger: Ledger) -> None:
    drafts = [Draft("note.added", {"text": f"of a group {number}"}) for number in range(40)]
    acknowledge(ledger.append_many(drafts))


def _blob(ledger: Ledger) -> None:
    body, digest = source(ledger, "a source")
    acknowledge([ledger.append("source.ingested", body)], (digest,))


def _seal(ledger: Ledger) -> None:
    ledger.seal()
    say("seal")


JOBS: dict[str, tuple[Act, ...]] = {
    "append": (_notes,),
    "group": (_group,),
    "blob": (_blob,),
    "seal": (_seal,),
    "dying": (_notes,),
    "mixed": (_blob, _seal, _notes),
}


def main() -> int:
    """Rehearse, wait, do it."""
    options = options_given()
    job = options["job"]
    work = _init if job == "init" else _work
    with silent():
        _guarded(work, options | options["rehearsal"])
    wait_for_go(options)
    if "uid" in options:
        os.setgid(options["uid"])
        os.setuid(options["uid"])
    _guarded(work, options)
    say("end")
    return 0


def _work(options: dict[str, Any]) -> None:
    key = PrivateKey.from_seed(bytes.fromhex(options["key"]))
    ledger = Ledger.open(
        Path(options["ledger"]),
        key=key,
        clock=clock,
        state_dir=Path(options["state"]),
        busy_timeout_ms=options.get("busy_timeout_ms", 60_000),
    )
    for act in JOBS[options["job"]]:
        _guarded(_act, act, ledger)
    if options["job"] == "dying":
        os.kill(os.getpid(), signal.SIGKILL)
    _guarded(ledger.close)
    say("warnings", codes=[code for code, _ in ledger.warnings])


def _act(act: Act, ledger: Ledger) -> None:
    act(ledger)


def _init(options: dict[str, Any]) -> None:
    """`evidence init`, as its command line would do it."""
    home = Path(options["ledger"]).parent
    app = App(environment={}, home=home / "home", as_json=True)
    status = boundary.run(
        app, root, ["--json", "init", options["ledger"], "--origin", "example.com/a"]
    )
    say("status", code=status)


def _guarded(call: Callable[..., None], *arguments: Any) -> None:
    """The one place where an exception that is none of the ledger's becomes a line: it is the finding."""
    try:
        call(*arguments)
    except LedgerError as error:
        refused(error)
    except Exception as error:  # noqa: BLE001 - what escapes raw is what the campaign looks for
        where = traceback.extract_tb(error.__traceback__)[-6:]
        say(
            "escaped",
            error=f"{type(error).__name__}: {error}",
            where=[f"{Path(item.filename).name}:{item.lineno} {item.name}" for item in where],
        )


if __name__ == "__main__":
    sys.exit(main())
