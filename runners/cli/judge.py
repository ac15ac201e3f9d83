"""`evidence judge`: how good a judge is, before anything it says counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.record import Record

WHY = {
    "accuracy": "the lower end of its accuracy is below the floor",
    "position": "its contradictions follow the order in which it is asked",
    "cases": "too few labelled cases",
}


@click.group(cls=Group)
def judge() -> None:
    """Qualify judges before anything they say counts."""


@judge.command(example="evidence judge qualify 91c0de --ask likelihood --key auditor.pem")
@click.argument("model")
@click.option(
    "--ask",
    "asked",
    type=click.Choice(["likelihood", "json"]),
    default="likelihood",
    show_default=True,
    help="How the judge is asked; a qualification holds for this way only.",
)
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    help="Labelled cases of your own as JSON Lines; without it the 64 synthetic ones that ship with the program.",
)
@pass_app
def qualify(app: App, model: str, asked: str, cases: Path | None) -> None:
    """Put a judge to labelled cases in both orders, and record whether its accuracy reaches the policy's floor.

    Takes a key with role audit. A judge that is not qualified may judge; its passes are then descriptive and no gate
    counts them.
    """
    from runners.assess.asking import Place
    from runners.assess.qualify import SHIPPED, read_cases
    from runners.assess.qualify import qualify as record_qualification
    from runners.cli.evaluation import teller
    from runners.prepare.shelf import default_shelf

    rows = read_cases(cases or SHIPPED)
    with app.open_ledger() as ledger, app.progress("judging", 100) as step:
        place = Place(default_shelf(), app.ledger_path / "work" / "eval")
        record = record_qualification(
            ledger, ledger.get(model, "model.registered"), asked, rows, place, teller(app, step)
        )
    app.emit(_result(record), _lines(record), next_step="evidence eval register CONFIG")


def _result(record: Record) -> dict[str, Any]:
    names = (
        "asked", "shipped", "right", "total", "undecided", "flips",
        "lower", "upper", "floor", "reasons", "qualified",
    )  # fmt: skip
    return {"qualification": record.id} | {name: record.body[name] for name in names}


def _lines(record: Record) -> list[str]:
    from verifiers.judgement.judging import flip_rate

    body = record.body
    flips, compared = body["flips"]
    rate = flip_rate(flips, compared) if compared else None
    between = f" ({rate.lower:.3f} to {rate.upper:.3f})" if rate else ""
    return [
        *render.fields(
            [
                ("qualification", render.short(record.id)),
                ("asked by", body["asked"]),
                (
                    "cases",
                    f"{body['total']} {'shipped, synthetic' if body['shipped'] else 'given'}",
                ),
                ("right", f"{body['right']} of {body['total']}, undecided {body['undecided']}"),
                ("accuracy", f"95 % interval {_short(body['lower'])} to {_short(body['upper'])}"),
                ("floor", f"{body['floor']} for the lower end"),
                ("flips", f"{flips} of {compared} between the orders{between}"),
                ("qualified", "yes" if body["qualified"] else "no"),
            ]
        ),
        *(f"  {WHY[name]}" for name in body["reasons"]),
    ]


def _short(real: str) -> str:
    return f"{float(real):.3f}"
