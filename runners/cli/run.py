"""Commands about runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.status import RunStatus
    from runners.train.supervisor import RunResult

CLAIM_S = 60.0
POLL_S = 0.2
SAY_EVERY = 10
LOG_BYTES = 1 << 20


@click.group(cls=Group)
def run() -> None:
    """Launch runs, see how they stand, go on after a break."""


@run.command(example="evidence run launch 4f2a81 --wait")
@click.argument("plan_id", metavar="PLAN")
@click.option("--wait", is_flag=True, help="Stay until the run is over, and show how it goes on.")
@pass_app
def launch(app: App, plan_id: str, wait: bool) -> None:
    """Launch a plan; a plan is launched once, ever.

    Launching it again answers with the first claim. Without --wait the run goes on in the background.
    """
    with app.open_ledger() as ledger:
        plan = ledger.get(plan_id, "plan.prepared")
        claimed = ledger.referrers(plan.id, "plan", "run.launched")
        if claimed:
            _emit_status(app, ledger, claimed[0], "the plan was launched before; this is that run")
        elif wait:
            _launch_here(app, ledger, plan)
    if not claimed and not wait:
        _launch_away(app, plan)


def _launch_here(app: App, ledger: Ledger, plan: Record) -> None:
    from runners.prepare.shelf import default_shelf
    from runners.train.supervisor import launch_sft

    _check_method(plan)
    with app.progress("training", plan.body["budget_updates"]) as step:
        done = launch_sft(
            ledger, plan, default_shelf(), _teller(app, step), lambda: _asked(ledger, plan)
        )
    _emit_end(app, ledger, done)


def _check_method(plan: Record) -> None:
    from ledger.errors import UsageError

    if plan.body["method"] != "sft":
        raise UsageError("BODY_INVALID", f"this version runs sft plans, not {plan.body['method']}")


def _asked(ledger: Ledger, plan: Record) -> bool:
    """Whether somebody asked the plan's run to stop since it was last begun."""
    from runners.train.status import stop_requested

    runs = ledger.referrers(plan.id, "plan", "run.launched")
    return bool(runs) and stop_requested(ledger, runs[0])


def _emit_end(app: App, ledger: Ledger, done: RunResult) -> None:
    from ledger.errors import UsageError

    outcome = done.ended.body["outcome"]
    failed = outcome == "failed"
    error = (
        UsageError("RUN_FAILED", done.ended.body["detail"], record=done.run.id) if failed else None
    )
    _emit_status(app, ledger, done.run, f"log: {done.log}", error)


def _teller(app: App, step: Callable[[int], None]) -> Callable[[str, dict[str, Any]], None]:
    def tell(event: str, fields: dict[str, Any]) -> None:
        if event == "start":
            app.say(f"training on {fields['rows']['effective']} rows")
        elif event == "checkpoint":
            app.say(f"checkpoint {render.short(fields['id'])} at step {fields['step']}")
        else:
            step(1)
            number = fields["step"]
            if number == 1 or number % SAY_EVERY == 0:
                loss = float(fields["loss"])
                app.say(f"step {number} of {fields['budget']}: loss {loss:.4f}")

    return tell


def _launch_away(app: App, plan: Record) -> None:
    """Start the same command with --wait in a session of its own, and wait for its claim."""
    from ledger.errors import UsageError

    log = app.ledger_path / "work" / f"launch-{plan.id[7:23]}.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-P", "-m", "runners.cli.main", "run", "launch", plan.id, "--wait"]
    command += ["--ledger", str(app.ledger_path)] + (["--key", app.key] if app.key else [])
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + CLAIM_S
    while time.monotonic() < deadline:
        with app.read_ledger() as ledger:
            runs = ledger.referrers(plan.id, "plan", "run.launched")
            if runs:
                _emit_status(app, ledger, runs[0], f"goes on in the background; log: {log}")
                return
        if process.poll() is not None:
            break
        time.sleep(POLL_S)
    raise UsageError("RUN_FAILED", f"the run did not start; see {log}", field="plan")


@run.command(example="evidence run status 4f2a81")
@click.argument("run_id", metavar="RUN")
@pass_app
def status(app: App, run_id: str) -> None:
    """Show how a run stands."""
    with app.read_ledger() as ledger:
        _emit_status(app, ledger, ledger.get(run_id, "run.launched"))


@run.command(name="list", example="evidence run list")
@pass_app
def list_runs(app: App) -> None:
    """List the runs, newest last."""
    from runners.train.status import run_status

    with app.read_ledger() as ledger:
        found = [run_status(ledger, item) for item in ledger.of_kind("run.launched")]
    rows = [
        (render.short(item.run.id), item.state, _updates(item), item.run.time, item.detail)
        for item in found
    ]
    app.emit(
        {"runs": [item.as_dict() for item in found]},
        render.table(("run", "state", "updates", "launched", "detail"), rows),
    )


@run.command(example="evidence run stop 4f2a81 --why 'enough seen'")
@click.argument("run_id", metavar="RUN")
@click.option("--why", default="", help="The reason.")
@pass_app
def stop(app: App, run_id: str, why: str) -> None:
    """Ask a run to stop at its next safe boundary."""
    with app.open_ledger() as ledger:
        found = ledger.get(run_id, "run.launched")
        record = ledger.append("run.stop_requested", {"why": why}, {"run": found.id})
    app.emit(
        {"request": record.id, "run": found.id},
        [f"run {render.short(found.id)} is asked to stop; it saves first"],
        next_step=f"evidence run status {render.short(found.id)}",
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
        found = ledger.get(run_id, "run.launched")
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
        next_step=f"evidence run resume {short}",
    )


@run.command(example="evidence run resume 4f2a81\nevidence run resume 4f2a81 --from 9c03de")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--from",
    "checkpoint_id",
    metavar="CHECKPOINT",
    help="Go back to this checkpoint [the newest that is complete, else the run's beginning].",
)
@pass_app
def resume(app: App, run_id: str, checkpoint_id: str | None) -> None:
    """Go on with a run whose last attempt failed, was stopped or was reconciled.

    The same run and plan go on exactly. Updates after the checkpoint are kept and no longer count.
    """
    from runners.prepare.shelf import default_shelf
    from runners.train.supervisor import newest_checkpoint, resume_sft

    with app.open_ledger() as ledger:
        found = ledger.get(run_id, "run.launched")
        plan = ledger.get(str(found.ref("plan")))
        _check_method(plan)
        checkpoint = (
            ledger.get(checkpoint_id, "checkpoint.published")
            if checkpoint_id
            else newest_checkpoint(ledger, found)
        )
        begun = checkpoint.body["step"] if checkpoint else 0
        with app.progress("training", plan.body["budget_updates"] - begun) as step:
            done = resume_sft(
                ledger,
                found,
                checkpoint,
                default_shelf(),
                _teller(app, step),
                lambda: _asked(ledger, plan),
            )
        _emit_end(app, ledger, done)


@run.command(example="evidence run logs 4f2a81 --lines 50")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--lines",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="How many lines from the end.",
)
@pass_app
def logs(app: App, run_id: str, lines: int) -> None:
    """Show the end of a run's log."""
    from ledger.errors import UsageError

    with app.read_ledger() as ledger:
        found = ledger.get(run_id, "run.launched")
    path = app.ledger_path / "work" / found.id[7:23] / "child.log"
    try:
        text = _end_of(path).splitlines()[-lines:]
    except FileNotFoundError:
        raise UsageError(
            "INPUT_MISSING", f"this machine has no log of run {render.short(found.id)}"
        ) from None
    app.emit({"run": found.id, "log": str(path), "lines": text}, text)


def _end_of(path: Path) -> str:
    """The last part of a log: the ledger may be a stranger's, and its log a link or without end."""
    from ledger.digests import open_regular

    with open_regular(path) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - LOG_BYTES))
        return stream.read(LOG_BYTES).decode("utf-8", "replace")


def _updates(found: RunStatus) -> str:
    return f"{found.counters['updates']} of {found.budget}"


def _emit_status(
    app: App, ledger: Ledger, record: Record, remark: str = "", failure: Any = None
) -> None:
    from runners.train.status import run_status

    found = run_status(ledger, record)
    rows = [
        ("run", render.short(record.id)),
        ("state", found.state),
        ("updates", _updates(found)),
        ("datums", str(found.counters["datums"])),
        ("checkpoint", render.short(found.checkpoint.id) if found.checkpoint else "none yet"),
        ("detail", found.detail),
    ]
    if found.validation is not None:
        figures = found.validation
        text = f"loss {float(figures['loss']):.4f} at step {figures['step']}, {figures['labelled']} labelled tokens"
        rows.insert(-1, ("validation", text))
    if found.attempts > 1:
        rows.insert(2, ("attempts", str(found.attempts)))
        rows.insert(4, ("superseded", f"{found.superseded} updates, kept and not counted"))
    if remark:
        rows.append(("note", remark))
    app.emit(found.as_dict(), render.fields(rows), next_step=_next(found), failure=failure)


def _next(found: RunStatus) -> str:
    short = render.short(found.run.id)
    commands = {
        "unconfirmed": f"evidence run reconcile {short}",
        "dead": f"evidence run resume {short}",
        "failed": f"evidence run resume {short}",
        "stopped": f"evidence run resume {short}",
    }
    if found.state in commands:
        return commands[found.state]
    if found.checkpoint:
        return f"evidence eval run PROTOCOL {render.short(found.checkpoint.id)}"
    return f"evidence run status {short}"
