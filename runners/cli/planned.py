"""What a person sees of a plan: settings, counts, warnings, and the rows that are cut or dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runners.cli import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ledger.record import Record
    from runners.cli.context import App
    from runners.cli.progress import Progress
    from runners.train.plans import Prepared

SHOWN = 10
DETAIL_CHARACTERS = 90


def lines(body: dict[str, Any], figures: dict[str, Any], command: str) -> Iterator[str]:
    """The lines below the plan's id.

    Args:
        body: of the plan.
        figures: what was counted.
        command: what lists every row.
    """
    settings = [(name, str(value)) for name, value in sorted(body["settings"].items())]
    yield from render.table(("setting", "value"), settings)
    yield ""
    yield from render.fields(
        [
            *((f"rows {name}", str(count)) for name, count in figures["rows"].items()),
            *((f"tokens {name}", str(count)) for name, count in figures["tokens"].items()),
            ("datums", str(figures["datums"])),
            ("epochs", figures["epochs"]),
        ]
    )
    yield from (f"warning: {text}" for text in body["warnings"])
    yield from _listed(figures["listed"], command)


def command(
    config: Path | None,
    like: str | None,
    init_from: str | None,
    continued: str | None,
    study: str | None,
    *,
    fork: bool,
    method: str = "sft",
) -> str:
    """The command line that was given, without --check."""
    named = {"--like": like, "--init-from": init_from, "--continue": continued, "--study": study}
    words = [f"{option} {value}" for option, value in named.items() if value is not None]
    given = [] if config is None else [str(config)]
    return " ".join([f"evidence plan {method}", *given, *words, *(["--fork"] if fork else [])])


def emit(app: App, prepared: Prepared, record: Record | None, command: str) -> None:
    """Answer with a plan that was made, or only checked.

    Args:
        app: who answers.
        prepared: the plan.
        record: its record, None where nothing was recorded.
        command: the command line that was given, without --check.
    """
    body, figures = prepared.body, prepared.figures
    named = ("rows", "tokens", "datums", "epochs", "reasons", "listed")
    app.emit(
        {
            "plan": record.id if record else None,
            "settings": body["settings"],
            "warnings": body["warnings"],
            **{name: figures[name] for name in named},
        },
        [
            *render.fields([("plan", render.short(record.id) if record else "not recorded")]),
            "",
            *lines(body, figures, f"{command} --check --json"),
        ],
        next_step=(f"evidence run launch {render.short(record.id)} --wait" if record else command),
    )


def check_same_method(plan: Record, method: str) -> None:
    """Refuse to take the settings of a plan of another method.

    Raises:
        UsageError: `SETTING_INVALID`.
    """
    from ledger.errors import UsageError

    theirs = plan.body["method"]
    if theirs != method:
        short = render.short(plan.id)
        raise UsageError(
            "SETTING_INVALID",
            f"plan {short} is of method {theirs}",
            field="like",
            record=plan.id,
            hint=f"evidence plan {theirs} --like {short}",
        )


def telling(bar: Progress) -> Callable[[int, int], None]:
    """A progress bar as the planner calls it."""

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.to(done)

    return tell


def _listed(rows: list[dict[str, Any]], command: str) -> Iterator[str]:
    """The first rows that are not read as they stand, and how to see the others."""
    if not rows:
        return
    yield ""
    yield from render.table(
        ("row", "reason", "labels", "lost", "detail"),
        [
            (
                row["id"] or render.short(row["row"]),
                row["reason"],
                row["labels"],
                row["lost"],
                row["detail"],
            )
            for row in rows[:SHOWN]
        ],
        limit=DETAIL_CHARACTERS,
    )
    if len(rows) > SHOWN:
        yield f"and {render.count(len(rows) - SHOWN, 'more row')}: {command}"
