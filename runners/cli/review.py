"""`evidence review`: a reviewer looks at a test before it is read, and signs what others ask of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runners.cli import render
from runners.cli.commands import Group, Verb
from runners.cli.context import App, pass_app
from runners.cli.statement import sign
from runners.cli.stating import Stating, stating_options

if TYPE_CHECKING:
    from ledger.record import Record
    from verifiers.judgement.exposure import Exposure

EXAMPLES_SHOWN = 10


@click.group(cls=Group)
def review() -> None:
    """Review a test before it is read, and sign what you are asked to state."""


# the same command where a reviewer looks for it
review.add_command(
    Verb(
        "sign",
        callback=sign.callback,
        params=[item for item in sign.params if item.name in ("request", "bundle", "roots", "out")],
        help=sign.help,
        example="evidence review sign test.json --key /media/safe/reviewer.pem",
    )
)


@review.command(
    example="evidence review test 4f2a81 91c0de --paraphrase 'none found' --contamination 'none known' "
    "--review-key reviewer.pem\n"
    "evidence review test 4f2a81 91c0de --paraphrase 'none found' --contamination 'none known' --request test.json\n"
    "evidence review test 4f2a81 91c0de --statement test.json.signed"
)
@click.argument("nomination")
@click.argument("protocol")
@click.option("--paraphrase", metavar="TEXT", help="What the reviewer says of rewordings of cases.")
@click.option(
    "--contamination", metavar="TEXT", help="What the reviewer says of cases being known elsewhere."
)
@stating_options("review")
@pass_app
def test(
    app: App,
    nomination: str,
    protocol: str,
    paraphrase: str | None,
    contamination: str | None,
    signer_key: Path | None,
    request: Path | None,
    statement: Path | None,
) -> None:
    """Let the arms of one nomination read a test, by a reviewer's statement.

    The cases are held against all that this ledger ever trained on, validated on or tested on. What was found, and which
    look at the cases this would be, is part of what is signed.
    """
    from runners.assess.reviews import shown

    how = Stating(app, signer_key, request, statement)
    words = how.words(paraphrase=paraphrase, contamination=contamination)
    with app.open_ledger() as ledger:
        of = ledger.get(nomination, "candidate.nominated")
        cases = ledger.get(protocol, "protocol.registered")
        found, derived = shown(ledger, cases, of)
        refs: dict[str, str | list[str]] = {"nomination": of.id, "protocol": cases.id}
        record = how.record(ledger, "test.reviewed", {**derived, **words}, refs)
    told = {"fresh": derived["fresh"], "look": found.look, "levels": found.levels}
    if record is None:
        how.asked("test.reviewed", told)
        return
    app.emit(
        {
            "review": record.id,
            "nomination": of.id,
            "protocol": cases.id,
            **told,
            "seen": list(found.seen),
        },
        _lines(record, found),
        next_step=f"evidence eval test {render.short(record.id)}",
    )


def _lines(record: Record, found: Exposure) -> list[str]:
    touched = [
        (item.level, item.held_out[7:15], f"{item.other_role} {item.other[7:15]}", item.detail)
        for item in found.findings[:EXAMPLES_SHOWN]
    ]
    return [
        *render.fields(
            [
                ("review", render.short(record.id)),
                ("look", found.look),
                ("cases seen before", ", ".join(found.seen) or "none"),
            ]
        ),
        *(
            ["", *render.table(("level", "case", "touched by", "what"), touched, limit=120)]
            if touched
            else []
        ),
    ]
