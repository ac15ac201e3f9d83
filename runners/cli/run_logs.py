"""`run logs`: what the processes of a run wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render, run_start, run_views
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.errors import UsageError
    from ledger.reading import Reading
    from ledger.record import Record
    from runners.train.logs import LogLines


@click.command(
    cls=Verb, example="evidence run logs 4f2a81 --lines 50\nevidence run logs 4f2a81 --follow"
)
@click.argument("run_id", metavar="RUN")
@click.option(
    "--lines",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="How many lines from the end.",
)
@click.option("--follow", is_flag=True, help="Go on with what is written, until the run is over.")
@click.option(
    "--supervisor",
    is_flag=True,
    help="What the process wrote that supervises the newest attempt in the background.",
)
@pass_app
def logs(app: App, run_id: str, lines: int, follow: bool, supervisor: bool) -> None:
    """Show the end of a run's log.

    The log is what the training process and its libraries wrote; it is bounded, so its beginning may be gone. Of a
    line longer than 1,000 characters the end is shown.
    """
    from runners.train.logs import LogLines

    if follow and app.as_json:
        raise click.UsageError("--follow writes lines as they come, --json writes one object")
    with app.read_ledger() as ledger:
        found = run_views.run_or_plan(app, ledger, run_id, launched=True)
        path = _log_of(app, ledger, found, supervisor=supervisor)
        try:
            reader = LogLines(path)
            complete = reader.look()[-lines:]
        except FileNotFoundError:
            raise _no_log(ledger, found) from None
    shown = [*complete, reader.rest][-lines:] if reader.rest else complete
    result = {"run": found.id, "log": str(path), "lines": shown}
    if not follow:
        app.emit(result, shown)
        return
    for line in complete:
        render.write(line)
    _follow_log(app, found, reader, result)


def _follow_log(app: App, found: Record, reader: LogLines, result: dict[str, Any]) -> None:
    from runners.train.tail import follow

    def show(_records: list[Record]) -> None:
        for line in reader.look():
            render.write(line)

    with app.read_ledger() as ledger:
        finished = run_start.watched(app, found, follow(ledger, found), show)
    if not finished:
        error = run_start.following_ended(found)
        app.emit(result, failure=error, exit_code=run_start.INTERRUPTED)
        return
    show([])
    app.emit(result, [reader.rest] if reader.rest else ())


def _log_of(app: App, ledger: Reading, found: Record, *, supervisor: bool) -> Path:
    """The log that was asked for; the supervisor's too where the training process wrote none yet.

    Raises:
        UsageError: `INPUT_MISSING`.
    """
    from runners.train.logs import child_log, newest_supervisor_log, work_folder

    work = work_folder(app.ledger_path, found)
    path = child_log(work)
    other = newest_supervisor_log(work) if supervisor or not path.exists() else None
    if supervisor and other is None:
        raise _no_log(ledger, found, in_background=True)
    return path if other is None else other


def _no_log(ledger: Reading, found: Record, *, in_background: bool = False) -> UsageError:
    """Why there is no log here, and where what the run wrote is to be found."""
    from ledger.errors import UsageError
    from runners.train.status import claims, is_adopted, is_here

    short = render.short(found.id)
    claim = claims(ledger, found)[-1]
    more = ", no attempt was supervised in the background" if in_background else ""
    if is_adopted(ledger.get(str(found.ref("plan")), "plan.prepared")):
        hint = "a script's own trainer writes where the script does: look there"
    elif not is_here(claim):
        hint = f"its newest attempt ran on {claim.body['host'][:80]}: look there"
    elif in_background:
        hint = f"what it said went to the terminal of its --wait; the training's log: evidence run logs {short}"
    else:
        hint = f"logs are no records, and may be removed; what is on record: evidence run status {short}"
    return UsageError(
        "INPUT_MISSING", f"this machine has no log of run {short}{more}", record=found.id, hint=hint
    )
