"""Commands about checkpoints."""

from __future__ import annotations

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app


@click.group(cls=Group)
def checkpoint() -> None:
    """List checkpoints."""


@checkpoint.command(name="list", example="evidence checkpoint list")
@pass_app
def list_checkpoints(app: App) -> None:
    """List the checkpoints, newest last."""
    with app.read_ledger() as ledger:
        found = ledger.of_kind("checkpoint.published")
    size = {item.id: sum(file["size"] for file in item.body["files"]) for item in found}
    rows = [
        (
            render.short(item.id),
            render.short(str(item.ref("run"))),
            str(item.body["step"]),
            str(size[item.id]),
            ", ".join(name for name, there in item.body["completeness"].items() if there),
            item.time,
        )
        for item in found
    ]
    app.emit(
        {
            "checkpoints": [
                {
                    "checkpoint": item.id,
                    "run": item.ref("run"),
                    "step": item.body["step"],
                    "tree": item.body["tree"],
                    "bytes": size[item.id],
                }
                for item in found
            ]
        },
        render.table(("checkpoint", "run", "step", "bytes", "holds", "published"), rows),
    )
