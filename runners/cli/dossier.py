"""`evidence dossier`: an account as one page that a reader opens from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from runners.assess.dossier.page import Picture

_FILE = click.Path(path_type=Path)


@click.command(cls=Verb, example="evidence dossier 4f2a81 dossier.html")
@click.argument("record", metavar="GATE|PROMOTION|CHECKPOINT")
@click.argument("out", type=_FILE, metavar="OUT.html")
@pass_app
def dossier(app: App, record: str, out: Path) -> None:
    """Write everything behind a gate, a promotion or a checkpoint on one page.

    The page is one HTML file: no network, no script. Every figure is derived again from the ledger's bytes and names the command that
    does so once more. The same ledger gives the same bytes. OUT.html must not exist. Nothing is recorded.
    """
    from ledger import staging
    from ledger.digests import sha256
    from runners.assess.account import KINDS, account_of
    from runners.assess.dossier.page import build

    app.say("deriving everything that it rests on")
    with staging.file_at(out) as stream:
        with app.read_ledger() as ledger:
            found = ledger.get(record, *KINDS)
            account = account_of(ledger, found)
            picture = _picture(ledger, ledger.get(account["about"]["checkpoint"]))
        data = build(account, picture).encode()
        stream.write(data)
    app.emit(
        {
            "file": str(out),
            "digest": sha256(data),
            "bytes": len(data),
            "record": found.id,
            "verdict": account["verdict"],
        },
        render.fields(
            [
                ("page", out),
                ("verdict", account["verdict"]),
                ("bytes", f"{len(data):,}"),
                ("digest", sha256(data)),
            ]
        ),
        next_step=f"evidence explain {render.short(found.id)}",
    )


def _picture(ledger: Ledger, checkpoint: Record) -> Picture:
    from runners.assess.dossier.page import Picture
    from runners.cli import lineage_svg
    from runners.cli.lineage import drawn_from

    lines = lineage_svg.draw(*drawn_from(ledger, checkpoint), styled=False)
    return Picture("".join(lines), lineage_svg.STYLE)
