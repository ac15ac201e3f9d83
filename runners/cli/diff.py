"""`evidence diff`: what differs between two runs, plans or checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.query.differences import Compared, Parting


@click.command(cls=Verb, example="evidence diff 4f2a81 9c03de")
@click.argument("a")
@click.argument("b")
@pass_app
def diff(app: App, a: str, b: str) -> None:
    """Show what differs between two runs, plans or checkpoints.

    Every field that is not the same, settings, data, libraries and code among them; of runs also the first
    step at which they read another batch or come to another state. Any two records of one kind will do.
    """
    from ledger.query.differences import compare

    with app.read_ledger() as ledger:
        left, right = ledger.get(a), ledger.get(b)
        found = compare(ledger, left, right)
    app.emit(
        {
            "kind": found.kind,
            "a": left.id,
            "b": right.id,
            "equal": found.equal,
            "differences": [
                {"field": item.field, "a": item.left, "b": item.right} for item in found.differences
            ],
            "steps": found.steps,
            "parting": _parting(found.parting),
        },
        _lines(found, render.short(left.id), render.short(right.id)),
        next_step=f"evidence show {render.short(left.id)}",
    )


def _parting(parting: Parting | None) -> dict[str, Any] | None:
    if parting is None:
        return None
    return {"step": parting.step, "batch": parting.batch, "state": parting.state}


def _lines(found: Compared, left: str, right: str) -> list[str]:
    rows = [(item.field, _shown(item.left), _shown(item.right)) for item in found.differences]
    lines = [*render.table(("field", left, right), rows), ""] if rows else []
    differ = f"{render.count(len(rows), 'field')} {'differs' if len(rows) == 1 else 'differ'}"
    lines.append(f"{found.kind}: {differ}, {found.equal} are the same")
    if found.kind == "run.launched":
        lines.append(_course(found))
    return lines


def _course(found: Compared) -> str:
    if not found.steps:
        return "no step was taken by both"
    parting = found.parting
    if parting is None:
        return f"the {render.count(found.steps, 'step')} of both read the same and came to the same states"
    ways = [
        text
        for there, text in (
            (parting.batch, "they read other batches"),
            (parting.state, "they came to other states"),
        )
        if there
    ]
    return f"from step {parting.step} on {' and '.join(ways)}"


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(str(_shown(item)) for item in value) or "none"
    if isinstance(value, str) and value.startswith(("sha256:", "ed25519:")):
        return render.short(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)
