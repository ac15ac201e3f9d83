"""Commands about checkpoints."""

from __future__ import annotations

from pathlib import Path

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app


@click.group(cls=Group)
def checkpoint() -> None:
    """List checkpoints, get them back, check what they say."""


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


@checkpoint.command(example="evidence checkpoint recover 9c03de ./adapter")
@click.argument("checkpoint_id", metavar="CHECKPOINT")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@pass_app
def recover(app: App, checkpoint_id: str, folder: Path) -> None:
    """Rebuild a checkpoint's folder from the ledger alone.

    DIR must not exist. Every file is read again where it was written; DIR appears when all of them are right.
    """
    from runners.train.recovery import recover as rebuild

    with app.read_ledger() as ledger:
        found = ledger.get(checkpoint_id, "checkpoint.published")
        done = rebuild(ledger, found, folder)
    app.emit(
        {
            "checkpoint": found.id,
            "folder": str(done.folder),
            "files": [file.path for file in done.files],
            "bytes": done.size_bytes,
            "absent": list(done.absent),
        },
        render.fields(
            [
                ("checkpoint", render.short(found.id)),
                ("folder", str(done.folder)),
                ("files", str(len(done.files))),
                ("bytes", str(done.size_bytes)),
                ("lacks", ", ".join(done.absent) or "nothing: a run can go on exactly"),
            ]
        ),
        next_step=f"evidence run resume {render.short(str(found.ref('run')))}",
    )
