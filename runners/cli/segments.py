"""`evidence segments`: long history as Parquet files, so that a question reads only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from runners.cli.progress import Progress

SEALING = "sealing records:"


@click.group(cls=Group)
def segments() -> None:
    """Seal long history for quick questions, and check it."""


@segments.command(example="evidence segments build")
@pass_app
def build(app: App) -> None:
    """Write the ledger's history into segments in your own cache.

    Questions make them by themselves in a ledger of a million records and more (EVIDENCE_SEGMENTS_FROM says
    from which size on); this makes them for a ledger of any size. A segment that disagrees with the ledger is
    made anew.
    """
    from ledger.query.ask import seal

    with app.progress(SEALING) as bar:
        built = seal(app.ledger_path, app.history, teller(bar))
    _emit(app, built, "sealed")


@segments.command(example="evidence segments check")
@pass_app
def check(app: App) -> None:
    """Make every segment again from the ledger's records, and compare roots and bytes; nothing is changed.

    A question only asks whether the files are those that were written and end in the ledger's own records.
    """
    from ledger.query.sealing import check as check_all

    with app.progress(SEALING) as bar:
        found = check_all(app.ledger_path, app.history, teller(bar))
    _emit(app, vars(found), "agree with the ledger")


def teller(bar: Progress) -> Any:
    """What sealing tells, as a line that moves."""

    def tell(sealed: int, of: int) -> None:
        bar.total = of
        bar.to(sealed)

    return tell


def _emit(app: App, built: dict[str, Any], word: str) -> None:
    rows = [
        ("segments", f"{render.count(built['sealed'], 'record')} in {built['segments']}, {word}"),
        ("left", f"{render.count(built['size'] - built['sealed'], 'record')} read from the ledger"),
        ("bytes", f"{built['bytes']:,}"),
        ("made anew", built["refused"]),
    ]
    app.emit(built, render.fields(rows), next_step="evidence query --list")
