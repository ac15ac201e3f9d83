"""`evidence note`: words about a record, which change nothing."""

from __future__ import annotations

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app


@click.command(cls=Verb, example="evidence note 4f2a81 'rerun after the outage' --tag incident")
@click.argument("record")
@click.argument("text")
@click.option("--tag", "tags", multiple=True, help="A word to find the note by; may be repeated.")
@pass_app
def note(app: App, record: str, text: str, tags: tuple[str, ...]) -> None:
    """Record words about a record."""
    with app.open_ledger() as ledger:
        about = ledger.get(record, raw=True)
        made = ledger.append(
            "note.added", {"text": text, "tags": list(tags)}, {"about": [about.id]}
        )
    app.emit(
        {"note": made.id, "seq": made.seq, "about": about.id},
        [f"noted at seq {made.seq}, about {about.kind} {render.short(about.id)}"],
        next_step=f"evidence show {render.short(made.id)}",
    )
