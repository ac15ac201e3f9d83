"""How runs are shown: one run in fields, all in a table, and what is told while one goes on."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from runners.cli import render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledger.errors import LedgerError
    from ledger.reading import Reading
    from ledger.record import Record
    from runners.cli.context import App
    from runners.cli.progress import Progress
    from runners.train.live import Live
    from runners.train.status import RunStatus

SAY_EVERY = 10
FINISHED_WELL = ("completed", "stopped")
Rows = list[tuple[str, str | None]]


def run_named(app: App, ledger: Reading, name: str) -> Record:
    """The run of an id, where a plan's would leave open what is meant.

    Raises:
        UsageError: `REF_KIND`, it is a plan's: the message names the plan's run; `REF_NOT_FOUND`, …
    """
    from ledger.errors import UsageError
    from runners.train.status import launch_of

    found = ledger.get(name, "run.launched", "plan.prepared")
    if found.kind == "run.launched":
        app.run = found.id
        return found
    plan, claim = render.short(found.id), launch_of(ledger, found)
    if claim is None:
        raise UsageError(
            "REF_KIND",
            f"{plan} is a plan, and was never launched",
            record=found.id,
            hint=f"launch it: evidence run launch {plan} --wait",
        )
    run = render.short(claim.id)
    raise UsageError(
        "REF_KIND",
        f"{plan} is a plan; its run is {run}",
        record=found.id,
        hint=f"name the run: evidence {app.command} {run}",
    )


def run_or_plan(app: App, ledger: Reading, name: str, *, launched: bool = False) -> Record:
    """The run of a run's or a plan's id; a plan that nobody launched itself, unless it must be launched.

    Raises:
        UsageError: `REF_NOT_FOUND`, `REF_KIND`, …; `RUN_NOT_OPEN`, the plan was not launched.
    """
    from ledger.errors import UsageError
    from runners.train.status import launch_of

    found = ledger.get(name, "run.launched", "plan.prepared")
    claim = launch_of(ledger, found) if found.kind == "plan.prepared" else found
    if claim is None and launched:
        raise UsageError(
            "RUN_NOT_OPEN",
            f"plan {render.short(found.id)} was never launched",
            record=found.id,
            hint=f"launch it: evidence run launch {render.short(found.id)} --wait",
        )
    app.run = claim.id if claim else None
    return claim or found


def teller(app: App, bar: Progress) -> Callable[[str, dict[str, Any]], None]:
    """What the supervisor of a run tells, as a line that moves and a remark now and then."""

    def tell(event: str, fields: dict[str, Any]) -> None:
        if event == "start":
            app.say(f"training on {fields['rows']['effective']} rows")
        elif event == "checkpoint":
            app.say(f"checkpoint {render.short(fields['id'])} at step {fields['step']}")
        elif event == "update":
            bar.to(fields["step"])
            if fields["step"] == 1 or fields["step"] % SAY_EVERY == 0:
                loss = float(fields["loss"])
                app.say(f"step {fields['step']} of {fields['budget']}: loss {loss:.4f}")

    return tell


def tell_record(tell: Callable[[str, dict[str, Any]], None], record: Record, budget: int) -> None:
    """Tell of a record what its supervisor told somebody else."""
    if record.kind == "update.acknowledged":
        tell("update", {**record.body, "budget": budget})
    elif record.kind == "checkpoint.published":
        tell("checkpoint", {"step": record.body["step"], "id": record.id})


def emit_status(
    app: App,
    ledger: Reading,
    run: Record,
    remark: str = "",
    *,
    failure: LedgerError | None = None,
    exit_code: int | None = None,
) -> None:
    """Answer with how a run stands and how it goes."""
    from ledger.clock import system_clock
    from runners.train.live import live
    from runners.train.status import run_status

    found = run_status(ledger, run)
    figures = live(ledger, found, system_clock())
    rows = _standing(found) + _going(figures)
    if remark:
        rows.append(("note", remark))
    app.emit(
        {**found.as_dict(), **figures.as_dict()},
        render.fields(rows),
        next_step=next_step(found),
        failure=failure,
        exit_code=exit_code,
    )


def emit_outcome(app: App, ledger: Reading, run: Record, remark: str = "") -> None:
    """Answer with how a run ended; one that did not end well, or of which nobody can say so, is a failure."""
    from runners.train.status import run_status

    emit_status(app, ledger, run, remark, failure=_failure(run_status(ledger, run)))


def _failure(found: RunStatus) -> LedgerError | None:
    from ledger.errors import UsageError

    if found.state in FINISHED_WELL:
        return None
    code = "RUN_UNCONFIRMED" if found.state == "unconfirmed" else "RUN_FAILED"
    short = render.short(found.run.id)
    hints = {
        "RUN_UNCONFIRMED": f"see why: evidence run logs {short} --supervisor; then evidence run reconcile {short}",
        "RUN_FAILED": f"see its log: evidence run logs {short}",
    }
    return UsageError(code, found.detail, record=found.run.id, hint=hints[code])


def emit_prepared(app: App, plan: Record) -> None:
    """Answer with a plan that nobody launched."""
    short = render.short(plan.id)
    result = prepared(plan)
    rows: Rows = [
        ("plan", short),
        ("state", result["state"]),
        ("updates", f"0 of {result['budget']}"),
        ("detail", result["detail"]),
    ]
    app.emit(result, render.fields(rows), next_step=f"evidence run launch {short} --wait")


def prepared(plan: Record) -> dict[str, Any]:
    """The result of `run status` for a plan that nobody launched."""
    from runners.train.status import PREPARED

    return {
        "run": None,
        "plan": plan.id,
        "state": PREPARED,
        "counters": {"groups": 0, "datums": 0, "updates": 0, "outcomes": 0},
        "budget": plan.body["budget_updates"],
        "checkpoint": None,
        "attempts": 0,
        "superseded": 0,
        "detail": f"prepared {plan.time}, never launched",
    }


def table(found: Sequence[RunStatus], waiting: Sequence[Record]) -> list[str]:
    """Runs, then plans that wait for their launch, a line each."""
    rows = [
        (
            render.short(item.run.id),
            render.short(item.plan.id),
            item.state,
            _updates(item),
            item.run.time,
            item.detail,
        )
        for item in found
    ]
    for plan in waiting:
        result = prepared(plan)
        updates = f"0 of {result['budget']}"
        rows.append(("-", render.short(plan.id), result["state"], updates, "-", result["detail"]))
    return render.table(("run", "plan", "state", "updates", "launched", "detail"), rows)


def next_step(found: RunStatus) -> str:
    """The command that helps on."""
    from runners.train.status import is_adopted

    short = render.short(found.run.id)
    commands = {
        "running": f"evidence run wait {short}",
        "unconfirmed": f"evidence run reconcile {short}",
    }
    if not is_adopted(found.plan):  # a script of the user's own is run again, not resumed
        again = f"evidence run resume {short} --wait"
        commands |= dict.fromkeys(("dead", "failed", "stopped"), again)
    if found.state in commands:
        return commands[found.state]
    if found.checkpoint:
        return f"evidence eval run PROTOCOL {render.short(found.checkpoint.id)}"
    return f"evidence run status {short}"


def _standing(found: RunStatus) -> Rows:
    again = found.attempts > 1
    return [
        ("run", render.short(found.run.id)),
        ("state", found.state),
        ("attempts", str(found.attempts) if again else None),
        ("updates", _updates(found)),
        ("superseded", _superseded(found)),
        ("datums", str(found.counters["datums"])),
        ("checkpoint", render.short(found.checkpoint.id) if found.checkpoint else "none yet"),
        ("validation", _validation(found.validation)),
        ("detail", found.detail),
    ]


def _superseded(found: RunStatus) -> str | None:
    return f"{found.superseded} updates, kept and not counted" if found.superseded else None


def _validation(figures: dict[str, Any] | None) -> str | None:
    if figures is None:
        return None
    loss = float(figures["loss"])
    return f"loss {loss:.4f} at step {figures['step']}, {figures['labelled']} labelled tokens"


def _going(figures: Live) -> Rows:
    pace = figures.updates_per_s
    left, age, saved = figures.left_s, figures.last_update_age_s, figures.checkpoint_age_s
    return [
        ("loss", _rounded(figures.loss)),
        ("gradient norm", _rounded(figures.gradient_norm)),
        ("updates/s", f"{pace:.3g}" if pace is not None else None),
        ("time left", f"about {duration(left)}" if left is not None else None),
        ("last update", f"{duration(age)} ago" if age is not None else None),
        (
            "saved",
            f"step {figures.checkpoint_step}, {duration(saved)} ago" if saved is not None else None,
        ),
    ]


def duration(seconds: float) -> str:
    """Seconds as a person says them: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    whole = round(seconds)
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (lower, small) in pairwise(units):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {lower}" if rest else "")
    return f"{whole} s"


def _rounded(real: str | None) -> str | None:
    return None if real is None else f"{float(real):.4g}"


def _updates(found: RunStatus) -> str:
    return f"{found.counters['updates']} of {found.budget}"
