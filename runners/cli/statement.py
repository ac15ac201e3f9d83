"""`evidence statement`: what is asked on one machine is read and signed on another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import UsageError
from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.requests import Request

_FILE = click.Path(path_type=Path)


@click.group(cls=Group)
def statement() -> None:
    """Sign what you are asked to state."""


@statement.command(example="evidence statement sign restore.json --key /media/safe/root.pem")
@click.argument("request", type=_FILE, metavar="REQUEST")
@click.option("--out", type=_FILE, metavar="FILE", help="Where the answer goes [REQUEST.signed].")
@pass_app
def sign(app: App, request: Path, out: Path | None) -> None:
    """Sign a request with your own key; no ledger is needed.

    Read what is shown: you state exactly that, after exactly this head. Whoever asked hands the answer in.
    """
    from ledger import requests
    from ledger.digests import open_regular

    if app.key is None and not app.environment.get("EVIDENCE_KEY"):
        raise UsageError(
            "KEY_MISSING",
            "name the key that you sign with",
            field="--key",
            hint="give it with --key FILE or EVIDENCE_KEY",
        )
    with open_regular(request) as stream:
        asked = requests.Request.decode(stream.read(requests.MAX_FILE_BYTES + 1))
    signer = app.writer_key()
    file = out or request.with_name(request.name + ".signed")
    file.write_bytes(requests.sign(asked, signer))
    app.emit(
        {
            "key": signer.id,
            "ledger": asked.ledger,
            "kind": asked.kind,
            "refs": asked.refs,
            "body": asked.body,
            "seal": asked.seal.model_dump(),
            "file": str(file),
        },
        render.fields([*_words(asked), ("signed by", signer.id), ("answer", file)]),
        next_step=f"hand {file} back to whoever asked",
    )


def _words(asked: Request) -> list[tuple[str, object]]:
    """What is stated, one line a field."""
    fields = {**asked.refs, **asked.body}
    return [
        ("ledger", asked.ledger),
        ("record", asked.kind),
        *((name, _word(value)) for name, value in fields.items()),
        ("after", f"{render.count(asked.seal.size, 'record')}, root {asked.seal.root}"),
    ]


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
