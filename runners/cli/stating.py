"""A record that rests on somebody's statement: signed here, asked for in a file, or handed in from one.

A request is made over a sealed head that covers what the statement is about, so that it stays good while others append, and the
signer can hold the seal against their own copy. What is handed in must be exactly what would be asked for now, words aside.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ledger.errors import EvidenceError, UsageError
from runners.cli import render
from runners.cli.targets import put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.book import Ledger
    from ledger.record import Record, Refs
    from ledger.records.base import Seen, Statement
    from ledger.requests import Request
    from runners.cli.context import App

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)


@dataclass(frozen=True)
class Stating:
    """How a statement comes about: by a key on this machine, as a request to a signer, or as a signer's answer."""

    app: App
    key: Path | None
    request: Path | None
    statement: Path | None

    def check(self) -> None:
        """Exactly one way was named.

        Raises:
            UsageError: `USAGE`.
        """
        if sum(item is not None for item in (self.key, self.request, self.statement)) != 1:
            raise UsageError(
                "USAGE",
                "give one of the signer's key file, --request and --statement",
                field="--statement",
            )

    def words(self, **given: str | None) -> dict[str, str]:
        """What the signer says in words: as given, or as it stands in the answer.

        Raises:
            UsageError: `USAGE`, words are missing, or given beside an answer that holds them.
            EvidenceError: `STATEMENT_FILE`.
        """
        self.check()
        if self.statement is not None:
            said = next((name for name, value in given.items() if value is not None), None)
            if said is not None:
                raise UsageError("USAGE", "what is said stands in the answer", field=f"--{said}")
            body = self._answer()[0].body
            return {name: str(body[name]) for name in given if name in body}
        missing = next((name for name, value in given.items() if value is None), None)
        if missing is not None:
            raise UsageError("USAGE", f"--{missing} is missing", field=f"--{missing}")
        return {name: str(value) for name, value in given.items()}

    def record(self, ledger: Ledger, kind: str, body: dict[str, Any], refs: Refs) -> Record | None:
        """Append the record with its statement; None where a request was written instead.

        Raises:
            UsageError: `NOT_SEALED`, no seal covers what a request is about; what the rules refuse.
            EvidenceError: `STATEMENT_FILE`; `STATEMENT_FOREIGN`, the answer states something else.
        """
        self.check()
        if self.key is not None:
            signer = self.app.load_key(self.key)
            return ledger.append_stated(
                kind, body, refs, signer=signer, nonce=secrets.token_hex(16)
            )
        if self.statement is not None:
            return ledger.append(kind, body, refs, self._handed_in(ledger.origin, kind, body, refs))
        self._ask(ledger, kind, body, refs)
        return None

    def _ask(self, ledger: Ledger, kind: str, body: dict[str, Any], refs: Refs) -> None:
        from ledger.requests import Request

        assert self.request is not None  # the one way that is left
        made = Request(
            ledger.origin, kind, refs, body, _sealed_head(ledger, refs), secrets.token_hex(16)
        )
        put(self.request, made.encode())

    def _handed_in(self, origin: str, kind: str, body: dict[str, Any], refs: Refs) -> Statement:
        asked, made = self._answer()
        if (asked.ledger, asked.kind, asked.refs, asked.body) != (origin, kind, refs, body):
            raise EvidenceError(
                "STATEMENT_FOREIGN",
                f"{self.statement} states something else than would be asked for now",
                field="--statement",
                expected=_brief(origin, kind, body, refs),
                actual=_brief(asked.ledger, asked.kind, asked.body, asked.refs),
            )
        return made

    def _answer(self) -> tuple[Request, Statement]:
        from ledger import requests
        from ledger.digests import open_regular

        assert self.statement is not None  # who calls has looked
        with open_regular(self.statement) as stream:
            return requests.read_answer(stream.read(requests.MAX_FILE_BYTES + 1))

    def asked(self, kind: str, told: Mapping[str, object]) -> None:
        """Answer with the request that was written."""
        self.app.emit(
            {"request": str(self.request), "kind": kind, **told},
            render.fields([("request", self.request), *told.items()]),
            next_step=f"evidence review sign {self.request} --key KEY, where the signer's key is",
        )


def stating_options(role: str) -> Callable[[F], F]:
    """The three options of a command that records a statement by a role."""

    def add(command: F) -> F:
        for option in (
            click.option(
                "--statement", type=_FILE, metavar="FILE", help="The signer's answer to a request."
            ),
            click.option(
                "--request",
                type=_FILE,
                metavar="FILE",
                help="Write what is to be stated, for a signer on another machine; record nothing.",
            ),
            click.option(
                f"--{role}-key",
                "signer_key",
                type=_FILE,
                metavar="FILE",
                help="The signer's private key file, where it is on this machine.",
            ),
        ):
            command = option(command)
        return command

    return add


def _sealed_head(ledger: Ledger, refs: Refs) -> Seen:
    """The newest sealed head; it must cover every record that the statement is about."""
    from ledger.records.base import Seen

    heads = ledger.state().heads
    size = max(map(int, heads), default=0)
    names = [
        name for value in refs.values() for name in ([value] if isinstance(value, str) else value)
    ]
    newest = max(ledger.get(name).seq for name in names)
    if newest >= size:
        raise UsageError(
            "NOT_SEALED",
            f"the newest seal, at {size} records, does not cover record {newest}",
            hint="seal first, so that the signer can hold on to a head: evidence seal",
        )
    return Seen(size=size, root=heads[str(size)])


def _brief(origin: str, kind: str, body: Mapping[str, Any], refs: Refs) -> str:
    return f"{kind} of {origin}, refs {dict(refs)}, body {dict(body)}"[:400]
