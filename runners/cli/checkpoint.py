"""Commands about checkpoints."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.reexecute import Reexecuted


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
        run = str(found.ref("run"))
        ends = ledger.referrers(run, "run", "run.ended")
        over = done.absent or any(item.body["outcome"] == "completed" for item in ends)
    resume = f"evidence run resume {render.short(run)} --wait"
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
        next_step=f"evidence lineage {done.folder}" if over else resume,
    )


@checkpoint.command(
    example="evidence checkpoint reexecute 5d01c2\nevidence checkpoint reexecute --run 4f2a81 --all"
)
@click.argument("update_id", metavar="UPDATE", required=False)
@click.option("--run", "run_id", metavar="RUN", help="The newest update of this run.")
@click.option("--all", "every", is_flag=True, help="With --run: every update, superseded ones too.")
@pass_app
def reexecute(app: App, update_id: str | None, run_id: str | None, every: bool) -> None:
    """Execute updates again from their recorded batches, and compare with what was acknowledged.

    It begins at the nearest checkpoint before, else where the run began, and records nothing.
    """
    from runners.prepare.shelf import default_shelf
    from runners.train import reexecute as work

    if (update_id is None) == (run_id is None):
        raise click.UsageError("name an UPDATE, or --run RUN")
    if every and run_id is None:
        raise click.UsageError("--all goes with --run")
    with app.read_ledger() as ledger, tempfile.TemporaryDirectory() as scratch:
        targets = _targets(ledger, update_id, run_id, every=every)
        with app.progress("executing again", max(item.body["step"] for item in targets)) as step:
            done = work.reexecute(
                ledger, targets, default_shelf(), Path(scratch), lambda _: step(1)
            )
    _emit_reexecuted(app, done)


def _targets(
    ledger: Ledger, update_id: str | None, run_id: str | None, *, every: bool
) -> list[Record]:
    from runners.train.reexecute import updates_of

    if run_id is None:
        return [ledger.get(str(update_id), "update.acknowledged")]
    updates = updates_of(ledger, ledger.get(run_id, "run.launched"))
    return updates if every else updates[-1:]


def _emit_reexecuted(app: App, done: Reexecuted) -> None:
    from ledger.errors import UsageError

    differing = [_as_result(item) for item in done.disagreements]
    rows = [
        ("updates", str(len(done.updates))),
        ("agree", str(len(done.updates) - len({item["update"] for item in differing}))),
        ("steps executed", str(done.steps)),
        ("other here", ", ".join(done.changed) or "nothing"),
    ]
    table = [
        (
            render.short(item["update"]),
            str(item["step"]),
            item["field"],
            item["recorded"],
            item["found"],
        )
        for item in differing
    ]
    lines = render.fields(rows)
    if table:
        lines += ["", *render.table(("update", "step", "field", "recorded", "found"), table)]
    first = done.disagreements[0] if done.disagreements else None
    failure = (
        UsageError(
            "REEXECUTION_DIFFERS",
            f"{first.field} of update {render.short(first.update.id)} is not what its batch gives",
            record=first.update.id,
            field=first.field,
            expected=first.found,
            actual=first.recorded,
        )
        if first
        else None
    )
    app.emit(
        {
            "updates": len(done.updates),
            "agreed": len(done.updates) - len({item["update"] for item in differing}),
            "steps": done.steps,
            "disagreements": differing,
            "changed": done.changed,
        },
        lines,
        next_step=f"evidence show {render.short((first.update if first else done.updates[-1]).id)}",
        failure=failure,
    )


def _as_result(item: Any) -> dict[str, Any]:
    return {
        "update": item.update.id,
        "step": item.update.body["step"],
        "field": item.field,
        "recorded": item.recorded,
        "found": item.found,
    }
