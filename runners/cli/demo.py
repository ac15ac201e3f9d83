"""The whole job on real input, by the same commands that anybody types."""

from __future__ import annotations

from pathlib import Path

import click

from runners.cli.commands import Verb
from runners.cli.context import App, pass_app


@click.command(cls=Verb, example="evidence demo --into my-first-ledger")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path("evidence-demo"),
    show_default=True,
    help="A new folder for everything the demo makes.",
)
@click.option(
    "--steps",
    type=click.IntRange(4),
    default=None,
    help="Optimizer steps, fewer for a quick look [the demo's own].",
)
@pass_app
def demo(app: App, into: Path, steps: int | None) -> None:
    """Do the whole job on real input.

    Trains a real model on real orders, kills its own run half-way and recovers it to the last bit, evaluates the
    result, is refused a promotion, verifies everything, and shows what one flipped byte does. Takes about ten
    minutes on two cores; keys and ledger lie in the new folder.
    """
    from runners.demo.story import run_demo

    result, lines = run_demo(into, steps, say=app.say)
    app.emit(result, lines, next_step=f"evidence verify --ledger {into / 'ledger'} --level blobs")
