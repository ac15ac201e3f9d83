"""`evidence explain` and `evidence dossier`: why something passed or failed, in sentences and on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runners.assess.sentences import Sentence

Item = dict[str, Any]


@click.command(cls=Verb, example="evidence explain 4f2a81\nevidence explain 4f2a81 --json")
@click.argument("record", metavar="GATE|PROMOTION|CHECKPOINT")
@pass_app
def explain(app: App, record: str) -> None:
    """Say why something passed or failed, and what is on faith.

    Every number is derived again from the ledger's bytes first. Each sentence names its record and the command that derives it
    again. Figures of weaker analyses are named as not the gate. Nothing is recorded.
    """
    from runners.assess.account import KINDS, account_of
    from runners.assess.sentences import tell

    app.say("deriving everything that it rests on")
    with app.read_ledger() as ledger:
        found = ledger.get(record, *KINDS)
        account = account_of(ledger, found)
    sentences = tell(account)
    app.emit(
        {**account, "sentences": [item.as_dict() for item in sentences]},
        list(_lines(sentences)),
        next_step=f"evidence dossier {render.short(account['about']['record'])} dossier.html",
    )


def _lines(sentences: Sequence[Sentence]) -> Iterator[str]:
    """The sentences by section; what stands under each is said once where it is the same for the whole section."""
    from runners.assess.sentences import SECTIONS

    for name, title in SECTIONS.items():
        found = [item for item in sentences if item.section == name]
        if not found:
            continue
        yield render.Styled(title, bold=True)
        for item, following in zip(found, [*found[1:], None], strict=True):
            yield f"  {item.text}"
            if following is None or _source(following) != _source(item):
                yield render.Styled(f"    {_source(item)}", dim=True)
        yield ""


def _source(item: Sentence) -> str:
    record = f"record {render.short(item.record)}: " if item.record else ""
    return record + item.command
