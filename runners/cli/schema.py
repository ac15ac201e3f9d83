"""`evidence schema`: what a kind of record holds and needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app
from runners.cli.history import check_kind

if TYPE_CHECKING:
    from ledger.rules import Rule


@click.command(cls=Verb, example="evidence schema\nevidence schema checkpoint.published --json")
@click.argument("kind", required=False)
@pass_app
def schema(app: App, kind: str | None) -> None:
    """Show what a kind of record holds and needs.

    Without KIND the kinds are listed. With --json the answer for a kind is its JSON Schema.
    """
    check_kind(kind)
    if kind is None:
        _list(app)
    else:
        _show(app, kind)


def _list(app: App) -> None:
    from ledger.records import KINDS
    from ledger.schemas import first_sentence

    rows = [(kind, model.version, first_sentence(model)) for kind, model in KINDS.items()]
    app.emit(
        {
            "kinds": [
                {"kind": kind, "schema": version, "about": text} for kind, version, text in rows
            ]
        },
        render.table(("kind", "schema", "about"), rows, limit=100),
        next_step="evidence schema KIND",
    )


def _show(app: App, kind: str) -> None:
    from ledger.records import KINDS
    from ledger.rules import RULES
    from ledger.schemas import body_rows, entry_schema, first_sentence

    model = KINDS[kind]
    app.emit(
        entry_schema(kind),
        [
            render.Styled(f"{kind} (schema {model.version})", bold=True),
            first_sentence(model),
            "",
            *render.fields(signers(RULES[kind])),
            "",
            *render.table(("ref", "records", "how many", "made by"), ref_rows(RULES[kind])),
            "",
            *render.table(("field", "type", "required"), body_rows(model), limit=80),
        ],
        next_step=f"evidence log --kind {kind}",
    )


def signers(rule: Rule) -> list[tuple[str, str]]:
    """Who must sign a kind: the writer's roles, and whose statement it carries."""
    roles = (
        "any enrolled key"
        if rule.roles == ("any",)
        else f"a key with role {' or '.join(rule.roles)}"
    )
    statement = "none" if rule.statement is None else f"by a key with role {rule.statement}"
    return [("signed by", roles), ("statement", statement)]


def ref_rows(rule: Rule) -> list[tuple[str, str, str, str]]:
    """One row a ref: role, kinds, how many, the command that makes the missing record."""
    choice = {name for group in rule.one_of for name in group}
    rows = []
    for role, ref in rule.refs.items():
        number = "one or more" if ref.many else "one"
        if role in choice:
            number = f"{number}; exactly one of {', '.join(sorted(choice))}"
        elif not ref.required:
            number = "any number" if ref.many else "one or none"
        rows.append((role, " or ".join(ref.kinds), number, ref.made_by))
    return rows
