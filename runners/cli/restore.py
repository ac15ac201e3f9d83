"""`evidence restore`: a ledger that was put back from a backup goes on, by root's statement."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import EvidenceError, UsageError
from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app
from runners.cli.keys import root_key_option
from runners.cli.targets import put

if TYPE_CHECKING:
    from ledger.records.base import Seen, Statement
    from ledger.restores import Restored, Stating

_FILE = click.Path(path_type=Path)
KIND = "ledger.restored"


@click.command(
    cls=Verb,
    example="evidence restore --why 'disk failed, backup of Monday'\n"
    "evidence restore --why 'disk failed' --request restore.json\n"
    "evidence restore --statement restore.signed.json",
)
@click.option("--why", default="", metavar="TEXT", help="The reason; kept in the record.")
@root_key_option
@click.option(
    "--request",
    type=_FILE,
    metavar="FILE",
    help="Write what root must state, to be signed on another machine; record nothing.",
)
@click.option(
    "--statement",
    type=_FILE,
    metavar="FILE",
    help="Root's statement, as evidence statement sign wrote it.",
)
@pass_app
def restore(
    app: App, why: str, root_key: Path | None, request: Path | None, statement: Path | None
) -> None:
    """Go on from a backup, by root's statement.

    Only a ledger that is shorter than its high-water file says is restored; what was lost is named in the
    record, and then the file is lowered. Runs that were open become unconfirmed. A fork is not restored.
    """
    _check_options(why, root_key, request, statement)
    if request is not None:
        _ask(app, why, request)
    else:
        _restore(app, why, root_key, statement)


def _check_options(
    why: str, root_key: Path | None, request: Path | None, statement: Path | None
) -> None:
    if sum(item is not None for item in (root_key, request, statement)) > 1:
        raise UsageError(
            "USAGE", "give one of --root-key, --request and --statement", field="--statement"
        )
    if (statement is None) != bool(why):
        says = "the reason stands in the statement" if why else "the reason is missing"
        raise UsageError("USAGE", says, field="--why", hint="see evidence restore --help")


def _ask(app: App, why: str, file: Path) -> None:
    from ledger import restores
    from ledger.requests import Request

    with app.read_ledger() as ledger:
        body, seen = restores.ask(ledger, app.state_dir, why)
        made = Request(ledger.origin, KIND, {}, body, seen, secrets.token_hex(16))
    put(file, made.encode())
    app.emit(
        {**body, "request": str(file)},
        render.fields([*_words(body), ("request", file)]),
        next_step=f"evidence statement sign {file} --key ROOT_KEY_FILE, where the root key is",
    )


def _restore(app: App, why: str, root_key: Path | None, statement: Path | None) -> None:
    from ledger.book import Ledger

    with app.read_ledger() as ledger:
        origin = ledger.origin
    if statement is None:
        stating = _stated_here(app, origin, root_key)
    else:
        stating, why = _handed_in(statement, origin)
    done = Ledger.restore(
        app.ledger_path,
        key=app.writer_key(),
        state_dir=app.state_dir,
        why=why,
        state=stating,
    )
    _emit(app, done)


def _stated_here(app: App, origin: str, root_key: Path | None) -> Stating:
    """Root's statement by a key on this machine, loaded only once it is needed."""
    from ledger import statements

    def state(body: dict[str, Any], seen: Seen) -> Statement:
        with app.read_ledger() as ledger:
            signer = app.root_key(ledger, root_key)
        return statements.make(
            signer,
            ledger=origin,
            kind=KIND,
            refs={},
            body=body,
            seal=seen,
            nonce=secrets.token_hex(16),
        )

    return state


def _handed_in(file: Path, origin: str) -> tuple[Stating, str]:
    """Root's statement from a file; it must be about exactly what is lost here."""
    from ledger import requests
    from ledger.digests import open_regular

    with open_regular(file) as stream:
        asked, made = requests.read_answer(stream.read(requests.MAX_FILE_BYTES + 1))
    if asked.kind != KIND or asked.ledger != origin:
        raise EvidenceError(
            "STATEMENT_FOREIGN",
            f"{file} states another record or another ledger",
            field="--statement",
            expected=f"{KIND} of {origin}",
            actual=f"{asked.kind} of {asked.ledger}",
        )

    def state(body: dict[str, Any], _seen: Seen) -> Statement:
        if asked.body != body:
            raise EvidenceError(
                "RESTORE_WRONG",
                "the statement names another loss than this ledger has",
                field="--statement",
                expected=_brief(body),
                actual=_brief(asked.body),
                hint="make the request again: evidence restore --why TEXT --request FILE",
            )
        return made

    return state, str(asked.body["why"])


def _brief(body: dict[str, Any]) -> str:
    lost = body["high_water"]
    return f"from {body['lost_from']} to {lost['size']}, root {lost['root']}"


def _words(body: dict[str, Any]) -> list[tuple[str, object]]:
    lost = body["high_water"]
    last = lost["size"] - 1
    return [
        ("lost", f"records {body['lost_from']} to {last}"),
        ("root of those", lost["root"]),
        ("why", body["why"]),
    ]


def _emit(app: App, done: Restored) -> None:
    body = done.record.body
    rows = [("restored", f"by record {render.short(done.record.id)}"), *_words(body)]
    if done.finished_earlier:
        rows.append(("note", "the record was there already; the high-water file is now lowered"))
    rows += [("unconfirmed run", render.short(item)) for item in done.unconfirmed]
    app.emit(
        {
            "record": done.record.id,
            "seq": done.record.seq,
            **body,
            "unconfirmed": done.unconfirmed,
            "finished_earlier": done.finished_earlier,
        },
        render.fields(rows),
        next_step="evidence seal, and keep the seal where nobody can change it",
    )
