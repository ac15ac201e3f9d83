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
    from ledger.record import Record
    from runners.train.logs import LogReader


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
    from runners.train.logs import LogReader, shortened

    if follow and app.as_json:
        raise click.UsageError("--follow writes lines as they come, --json writes one object")
    with app.read_ledger() as ledger:
        found = run_views.run_or_plan(ledger, run_id, launched=True)
    path = _log_of(app, found, supervisor=supervisor)
    try:
        reader = LogReader(path)
        text = reader.read()
    except FileNotFoundError:
        raise _no_log(found) from None
    whole, _, rest = text.rpartition("\n")
    complete = [shortened(line) for line in whole.splitlines()[-lines:]]
    shown = [*complete, shortened(rest)][-lines:] if rest else complete
    result = {"run": found.id, "log": str(path), "lines": shown}
    if not follow:
        app.emit(result, shown)
        return
    for line in complete:
        render.write(line)
    _follow_log(app, found, reader, rest, result)


def _follow_log(
    app: App, found: Record, reader: LogReader, rest: str, result: dict[str, Any]
) -> None:
    from runners.train.logs import shortened
    from runners.train.tail import follow

    pieces = [rest]

    def show(_records: list[Record]) -> None:
        *whole, last = (pieces.pop() + reader.read()).split("\n")
        pieces.append(last)
        for line in whole:
            render.write(shortened(line))

    with app.read_ledger() as ledger:
        finished = run_start.watched(app, found, follow(ledger, found), show)
    if not finished:
        error = run_start.following_ended(found)
        app.emit(result, failure=error, exit_code=run_start.INTERRUPTED)
        return
    show([])
    app.emit(result, [shortened(pieces[0])] if pieces[0] else ())


def _log_of(app: App, found: Record, *, supervisor: bool) -> Path:
    """The log that was asked for; the supervisor's too where the training process wrote none yet.

    Raises:
        UsageError: `INPUT_MISSING`.
    """
    from runners.train.logs import child_log, newest_supervisor_log, work_folder

    work = work_folder(app.ledger_path, found)
    path = child_log(work)
    other = newest_supervisor_log(work) if supervisor or not path.exists() else None
    if supervisor and other is None:
        raise _no_log(found, "in the background")
    return path if other is None else other


def _no_log(found: Record, where: str = "") -> UsageError:
    from ledger.errors import UsageError

    short = render.short(found.id)
    more = f", it was not supervised {where}" if where else ""
    return UsageError("INPUT_MISSING", f"this machine has no log of run {short}{more}")
