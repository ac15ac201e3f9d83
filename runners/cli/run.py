"""Commands about runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runners.cli import render, run_logs, run_start, run_views
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from runners.train.status import RunStatus


@click.group(cls=Group)
def run() -> None:
    """Launch runs, see how they stand, go on after a break."""


run.add_command(run_start.launch)
run.add_command(run_start.resume)
run.add_command(run_logs.logs)


@run.command(example="evidence run wait 4f2a81")
@click.argument("run_id", metavar="RUN")
@pass_app
def wait(app: App, run_id: str) -> None:
    """Follow a run until it is over; Ctrl-C ends the following, not the run.

    Exit code 0 where it completed or was stopped, 1 where it failed or nobody can say what became of it.
    """
    with app.read_ledger() as ledger:
        found = run_views.run_named(app, ledger, run_id)
    run_start.follow_to_end(app, found.id)


@run.command(example="evidence run status 4f2a81")
@click.argument("run_id", metavar="RUN")
@pass_app
def status(app: App, run_id: str) -> None:
    """Show how a run, or a plan's run, stands and how it goes on."""
    with app.read_ledger() as ledger:
        found = run_views.run_or_plan(app, ledger, run_id)
        if found.kind == "plan.prepared":
            run_views.emit_prepared(app, found)
        else:
            run_views.emit_status(app, ledger, found)


@run.command(name="list", example="evidence run list\nevidence run list --all")
@click.option("--all", "everything", is_flag=True, help="Also what its notes hide.")
@pass_app
def list_runs(app: App, everything: bool) -> None:
    """List the runs, newest last, and the plans that nobody launched.

    A run or plan about which a note with the tag hidden was recorded is left out; a later note with the tag
    shown brings it back. Nothing else is changed by that.
    """
    from ledger.query.hidden import is_hidden
    from runners.train.status import run_status, unlaunched

    with app.read_ledger() as ledger:
        runs = ledger.of_kind("run.launched")
        waiting = unlaunched(ledger)
        hidden = {item.id for item in (*runs, *waiting) if is_hidden(ledger, item)}
        left_out = set() if everything else hidden
        found = [run_status(ledger, item) for item in runs if item.id not in left_out]
        waiting = [plan for plan in waiting if plan.id not in left_out]
    lines = run_views.table(found, waiting)
    if left_out:
        lines.append(f"{len(left_out)} hidden: evidence run list --all")
    app.emit(
        {
            "runs": [{**item.as_dict(), "hidden": item.run.id in hidden} for item in found],
            "prepared": [
                {**run_views.prepared(plan), "hidden": plan.id in hidden} for plan in waiting
            ],
            "left_out": len(left_out),
        },
        lines,
    )


@run.command(example="evidence run stop 4f2a81 --why 'enough seen'\nevidence run stop 4f2a81 --now")
@click.argument("run_id", metavar="RUN")
@click.option("--why", default="", help="The reason.")
@click.option(
    "--now", is_flag=True, help="Kill it: what it did since its newest checkpoint is redone later."
)
@pass_app
def stop(app: App, run_id: str, why: str, now: bool) -> None:
    """Ask a run to stop at its next safe boundary: it saves first.

    The request is a record, which the run reads before its next step, wherever the command is typed.
    """
    from runners.train.processes import break_off, interrupt
    from runners.train.status import is_adopted, run_status, stop_requests

    with app.open_ledger() as ledger:
        found = run_status(ledger, run_views.run_or_plan(app, ledger, run_id, launched=True))
        _check_works(found, now=now)
        asked = stop_requests(ledger, found)
        record = asked[-1] if asked else None
        if record is None:
            record = ledger.append("run.stop_requested", {"why": why}, {"run": found.run.id})
    if now:
        end = interrupt if is_adopted(found.plan) else break_off
        end(found.claim.body["process"])
    short = render.short(found.run.id)
    how = "is asked to stop; it saves first"
    if asked:
        how = f"was asked to stop before, at {record.time}; it saves first"
    if now:
        how = "is told to break off; it records its end and does not save"
    app.emit(
        {"request": record.id, "run": found.run.id},
        [f"run {short} {how}"],
        next_step=f"evidence run wait {short}",
    )


def _check_works(found: RunStatus, *, now: bool) -> None:
    """Refuse to stop what does not go on.

    Raises:
        UsageError: `RUN_NOT_OPEN`, it has ended; `RUN_UNCONFIRMED`, its process is gone; `HOST_OTHER`, it cannot be killed
            from here.
    """
    from ledger.errors import UsageError
    from runners.train.status import is_here

    short = render.short(found.run.id)
    if found.state == "unconfirmed" and not is_here(found.claim):
        if now:
            raise UsageError("HOST_OTHER", f"the run was {found.detail}", record=found.run.id)
        return  # whether it reads the request cannot be seen from here
    if found.state == "unconfirmed":
        raise UsageError(
            "RUN_UNCONFIRMED",
            f"there is nothing to stop: {found.detail}",
            record=found.run.id,
            hint=f"record what became of it: evidence run reconcile {short}",
        )
    if found.state != "running":
        raise UsageError(
            "RUN_NOT_OPEN",
            f"there is nothing to stop: the run is {found.state}",
            record=found.run.id,
            hint=f"see its state: evidence run status {short}",
        )


@run.command(example="evidence run reconcile 4f2a81")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--dead-on-other-host",
    "word",
    metavar="HOW",
    help="It ran on another machine and is gone; how you know.",
)
@pass_app
def reconcile(app: App, run_id: str, word: str | None) -> None:
    """Find out what became of a run that has no end, and record it.

    Where its process still works nothing is recorded. Where it is gone the run can be resumed.
    """
    from runners.train.reconcile import reconcile as look

    with app.open_ledger() as ledger:
        found = run_views.run_named(app, ledger, run_id)
        record = look(ledger, found, word)
    short = render.short(found.id)
    app.emit(
        {"reconciliation": record.id, "run": found.id, **record.body},
        render.fields(
            [
                ("run", short),
                ("found", record.body["found"]),
                ("by", record.body["by"]),
                ("evidence", record.body["evidence"]),
            ]
        ),
        next_step=f"evidence run resume {short} --wait",
    )
