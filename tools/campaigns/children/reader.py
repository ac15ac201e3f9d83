"""Read a ledger again and again while others append: as a program, a verifier, a query, a command line."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.children.saying import options_given, refused, say, silent, wait_for_go
from ledger.book import Ledger
from ledger.errors import LedgerError
from ledger.query.ask import ask
from runners.cli import boundary
from runners.cli.context import App
from runners.cli.main import root
from verifiers.verify import Options, verify

Look = Callable[[dict[str, Any]], None]


def _read(options: dict[str, Any]) -> None:
    with Ledger.read(Path(options["ledger"])) as ledger:
        ids: list[str] = []
        chained = True
        for record in ledger.records():
            chained = chained and record.prev == (ids[-1] if ids else None)
            ids.append(record.id)
        found = all(ledger.find(name) is not None for name in ids[-3:])
        ledger.of_kind("snapshot.recorded")
        ledger.seals()
    say("read", size=len(ids), last=ids[-1], chained=chained, found=found)


def _verify(options: dict[str, Any]) -> None:
    report = verify(
        Path(options["ledger"]), Options(state_dir=Path(options["state"]), workers=1)
    ).as_dict()
    codes = [item["code"] for item in report["findings"]]
    warned = [item["code"] for item in report["warnings"]]
    say(
        "verify",
        verdict=report["verdict"],
        size=report["records"],
        root=report["root"],
        codes=codes,
        warned=warned,
    )


def _query(options: dict[str, Any]) -> None:
    answer = ask(Path(options["ledger"]), "SELECT count(*), max(seq) + 1 FROM records")
    say("query", size=answer.as_of.size, root=answer.as_of.root, row=answer.rows[0])


def _log(options: dict[str, Any]) -> None:
    app = App(environment={}, home=Path(options["state"]).parent, as_json=True)
    with silent():
        status = boundary.run(app, root, ["--json", "--ledger", options["ledger"], "log"])
    say("log", status=status)


LOOKS: tuple[Look, ...] = (_read, _verify, _read, _log, _query, _verify)


def main() -> int:
    """Look a number of times; what the ledger refuses is said."""
    options = options_given()
    choices = random.Random(options["seed"])  # noqa: S311 - choices, no secrets
    wait_for_go(options)
    for _ in range(options["looks"]):
        try:
            choices.choice(LOOKS)(options)
        except LedgerError as error:
            refused(error)
    say("end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
