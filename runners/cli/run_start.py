"""`run launch` and `run resume`: in the background, or here with --wait."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import UsageError
from runners.cli import render, run_views
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.supervisor import RunResult

    Tell = Callable[[str, dict[str, Any]], None]

WAIT_HELP = (
    "Stay until the run is over, and show how it goes on; Ctrl-C then stops it, and it saves first."
)
INTERRUPTED = 130
RUNNABLE = ("sft", "rl")
"""The methods of plans that are run here."""
SUPERVISE = click.option(
    "--supervise", "log", type=click.Path(path_type=Path), hidden=True, help="In the background."
)


@click.command(cls=Verb, example="evidence run launch 4f2a81 --wait\nevidence run launch 4f2a81")
@click.argument("plan_id", metavar="PLAN")
@click.option("--wait", is_flag=True, help=WAIT_HELP)
@SUPERVISE
@pass_app
def launch(app: App, plan_id: str, wait: bool, log: Path | None) -> None:
    """Launch a plan; a plan is launched once, ever.

    Without --wait the run goes on in the background once its claim is on record, whatever becomes of this terminal.
    Launching again answers with the first claim, and with --wait follows that run to its end.
    """
    from runners.train.status import launch_of

    with app.open_ledger() as ledger:
        plan = ledger.get(plan_id, "plan.prepared")
        check_method(plan)
        claim, place = launch_of(ledger, plan), ledger.size
        if claim is not None and log is not None:
            # another supervisor was first, and nobody waits for these words
            log.unlink(missing_ok=True)
        if claim is None and (wait or log):
            claim = _launch_here(app, ledger, plan, log)
            if claim is None:
                return
    if claim is not None and wait:
        follow_to_end(app, claim.id, "it was launched before; this is that run")
        return
    note = "the plan was launched before; this is that run"
    if claim is None:
        claim, note = _launch_away(app, plan, place)
    with app.read_ledger() as ledger:
        run_views.emit_status(app, ledger, claim, note)


def _launch_here(app: App, ledger: Ledger, plan: Record, log: Path | None) -> Record | None:
    """Supervise a plan's run to its end and answer; where somebody else claimed it meanwhile, their claim."""
    from runners.prepare.shelf import default_shelf
    from runners.train.status import launch_of
    from runners.train.supervisor import launch_sft

    def work(tell: Tell) -> RunResult:
        return launch_sft(ledger, plan, default_shelf(), tell)

    try:
        _supervise(app, ledger, plan, log, work)
    except UsageError as error:
        if error.code != "PLAN_LAUNCHED":
            raise
        if log is not None:
            log.unlink(missing_ok=True)  # nobody waits for these words: the claim is found
            raise
        return launch_of(ledger, plan)
    return None


def _launch_away(app: App, plan: Record, place: int) -> tuple[Record, str]:
    from runners.cli import background

    started = background.start(app, "launch", plan.id)
    claim = background.await_claim(
        app,
        started,
        place,
        lambda record: record.kind == "run.launched" and record.ref("plan") == plan.id,
    )
    if claim.body["process"] == started.process.pid:
        return claim, "it goes on in the background"
    return claim, "the plan was launched by another command just before; this is that run"


@click.command(
    cls=Verb,
    example="evidence run resume 4f2a81 --wait\nevidence run resume 4f2a81 --from 9c03de --wait",
)
@click.argument("run_id", metavar="RUN")
@click.option(
    "--from",
    "checkpoint_id",
    metavar="CHECKPOINT",
    help="Go back to this checkpoint [the newest that is complete, else the run's beginning].",
)
@click.option("--wait", is_flag=True, help=WAIT_HELP)
@SUPERVISE
@pass_app
def resume(app: App, run_id: str, checkpoint_id: str | None, wait: bool, log: Path | None) -> None:
    """Go on with a run whose last attempt failed, was stopped or was reconciled.

    The same run and plan go on exactly. Updates after the checkpoint are kept and no longer count. Without --wait it
    goes on in the background, as with launch; a run that is going on already is answered with as it stands.
    """
    from runners.train.status import run_status

    with app.open_ledger() as ledger:
        run = run_views.run_named(app, ledger, run_id)
        plan = ledger.get(str(run.ref("plan")), "plan.prepared")
        check_method(plan)
        checkpoint = ledger.get(checkpoint_id, "checkpoint.published") if checkpoint_id else None
        place = ledger.size
        works = checkpoint is None and run_status(ledger, run).state == "running"
        if not works and (wait or log):
            _resume_here(app, ledger, run, checkpoint, log)
            return
    if works and wait:
        follow_to_end(app, run.id, "it was going on already; nothing was begun")
        return
    note = "it is going on already; nothing was begun"
    if not works:
        note = _resume_away(app, run, checkpoint, place)
    with app.read_ledger() as ledger:
        run_views.emit_status(app, ledger, run, note)


def _resume_here(
    app: App, ledger: Ledger, run: Record, checkpoint: Record | None, log: Path | None
) -> None:
    from runners.prepare.shelf import default_shelf
    from runners.train.supervisor import newest_checkpoint, resume_sft

    origin = checkpoint or newest_checkpoint(ledger, run)

    def work(tell: Tell) -> RunResult:
        return resume_sft(ledger, run, origin, default_shelf(), tell)

    _supervise(app, ledger, ledger.get(str(run.ref("plan")), "plan.prepared"), log, work)


def _resume_away(app: App, run: Record, checkpoint: Record | None, place: int) -> str:
    from runners.cli import background

    words = ["--from", checkpoint.id] if checkpoint else []
    started = background.start(app, "resume", run.id, *words)
    claim = background.await_claim(
        app,
        started,
        place,
        lambda record: record.kind == "run.resumed" and record.ref("run") == run.id,
    )
    if claim.body["process"] == started.process.pid:
        return "it goes on in the background"
    return "another command resumed it just before; this is that attempt"


def _supervise(
    app: App, ledger: Ledger, plan: Record, log: Path | None, work: Callable[[Tell], RunResult]
) -> None:
    """Work at a run in this process until the attempt is over, and answer."""
    from runners.cli.background import settle_log

    with app.progress("training", plan.body["budget_updates"]) as bar:
        tell = run_views.teller(app, bar)
        done = work(settle_log(log, tell) if log is not None else tell)
    run_views.emit_outcome(
        app, ledger, done.run, f"log: evidence run logs {render.short(done.run.id)}"
    )


def check_method(plan: Record) -> None:
    """Refuse a plan that this version cannot run.

    Raises:
        UsageError: `BODY_INVALID`; `ADOPTION_REFUSED`, it is of a script's own trainer.
    """
    from runners.train.status import is_adopted

    if is_adopted(plan):
        raise UsageError(
            "ADOPTION_REFUSED",
            "the plan is of a script's own trainer, which runs it",
            record=plan.id,
            hint="run the script again: each training is a run of its own; see docs/own-script.md",
        )
    if plan.body["method"] not in RUNNABLE:
        known = " and ".join(RUNNABLE)
        raise UsageError(
            "BODY_INVALID", f"this version runs {known} plans, not {plan.body['method']}"
        )


def follow_to_end(app: App, run_id: str, remark: str = "") -> None:
    """Show how a run goes on until its attempt is over, and answer; Ctrl-C ends the showing and not the run."""
    from runners.train.tail import follow

    with app.read_ledger() as ledger:
        run = ledger.get(run_id, "run.launched")
        budget = int(ledger.get(str(run.ref("plan")), "plan.prepared").body["budget_updates"])
        with app.progress("training", budget) as bar:
            whole = watched(app, run, follow(ledger, run), _shown(app, bar, budget))
    with (
        app.read_ledger() as ledger
    ):  # anew: a reader's index knows what was there when it was opened
        if whole:
            run_views.emit_outcome(app, ledger, run, remark)
        else:
            error = following_ended(run)
            run_views.emit_status(app, ledger, run, failure=error, exit_code=INTERRUPTED)


def watched(
    app: App, run: Record, looks: Iterable[list[Record]], show: Callable[[list[Record]], None]
) -> bool:
    """Show each look; whether it went to the end and was not interrupted."""
    try:
        app.say(f"following run {render.short(run.id)}; Ctrl-C ends the following, not the run")
        for records in looks:
            show(records)
    except KeyboardInterrupt:
        return False
    return True


def following_ended(run: Record) -> UsageError:
    """What a follower says after a Ctrl-C."""
    short = render.short(run.id)
    return UsageError(
        "INTERRUPTED",
        "the following was interrupted, the run was not",
        hint=f"follow it again: evidence run wait {short}; stop it: evidence run stop {short}",
    )


def _shown(app: App, bar: Any, budget: int) -> Callable[[list[Record]], None]:
    tell = run_views.teller(app, bar)

    def show(records: list[Record]) -> None:
        for record in records:
            run_views.tell_record(tell, record, budget)

    return show
