"""The command that nominates a study's checkpoints."""

from __future__ import annotations

from pathlib import Path

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app


@click.command(
    cls=Verb,
    example="evidence nominate 4f2a81 91c0de --why 'best of six' --promote-key promoter.pem",
)
@click.argument("study")
@click.argument("comparison")
@click.option("--why", required=True, help="Why these, in words.")
@click.option(
    "--promote-key",
    required=True,
    type=click.Path(path_type=Path),
    help="The private key file of who may promote.",
)
@pass_app
def nominate(app: App, study: str, comparison: str, why: str, promote_key: Path) -> None:
    """Nominate one checkpoint for each planned seed of a study, by a comparison on validation.

    Of each seed the first in the comparison's ranking is taken; the best that breaks no guard is the one to be promoted.
    A reviewer then signs the test.
    """
    import secrets

    from runners.assess.nominate import choose

    with app.open_ledger() as ledger:
        of = ledger.get(study, "study.registered")
        by = ledger.get(comparison, "comparison.made")
        choice = choose(ledger, of, by)
        record = ledger.append_stated(
            "candidate.nominated",
            {"chosen": choice.chosen.id, "why": why},
            {
                "study": of.id,
                "comparison": [by.id],
                "checkpoint": [item.id for item in choice.by_seed.values()],
            },
            signer=app.load_key(promote_key),
            nonce=secrets.token_hex(16),
        )
    app.emit(
        {
            "nomination": record.id,
            "chosen": choice.chosen.id,
            "checkpoints": {str(seed): item.id for seed, item in choice.by_seed.items()},
            "not_eligible": list(choice.not_eligible),
        },
        [
            *render.fields(
                [
                    ("nomination", render.short(record.id)),
                    ("to be promoted", render.short(choice.chosen.id)),
                ]
            ),
            "",
            *render.table(
                ("seed", "checkpoint", "eligible"),
                [
                    (seed, render.short(item.id), "no" if seed in choice.not_eligible else "yes")
                    for seed, item in sorted(choice.by_seed.items())
                ],
            ),
        ],
        next_step=f"evidence review test {render.short(record.id)} PROTOCOL",
    )
