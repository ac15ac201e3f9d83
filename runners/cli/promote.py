"""The command that asks for a promotion."""

from __future__ import annotations

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app


@click.command(cls=Verb, example="evidence promote 4f2a81")
@click.argument("checkpoint")
@pass_app
def promote(app: App, checkpoint: str) -> None:
    """Promote a checkpoint, or record why not.

    Everything is weighed again from records and blobs. What is missing or failed is recorded, each reason by
    code, and the command exits with 1.
    """
    from ledger.errors import UsageError
    from runners.assess.promote import promote as weigh

    with app.open_ledger() as ledger:
        found = ledger.get(checkpoint, "checkpoint.published")
        record, decision = weigh(ledger, found)
    reasons = [
        line
        for item in decision.reasons
        for line in (f"{item.code}: {item.message}", f"    what helps: {item.hint}")
    ]
    gates = [
        (line.name, str(line.value), str(line.threshold), "passed" if line.passed else "failed")
        for line in decision.gates
    ]
    app.emit(
        {
            "refusal": record.id,
            "checkpoint": found.id,
            "reasons": record.body["reasons"],
            "gates": record.body["gates"],
        },
        [
            f"checkpoint {render.short(found.id)} is not promoted",
            "",
            *reasons,
            *(
                ["", *render.table(("gate", "value", "threshold", "verdict"), gates)]
                if gates
                else []
            ),
        ],
        next_step=f"evidence show {render.short(record.id)}",
        failure=UsageError(
            "PROMOTION_REFUSED",
            f"{len(decision.reasons)} reasons stand against promoting checkpoint {render.short(found.id)}",
            record=record.id,
        ),
    )
