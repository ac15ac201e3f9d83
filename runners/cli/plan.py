"""Commands about plans."""

from __future__ import annotations

from pathlib import Path

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app


@click.group(cls=Group)
def plan() -> None:
    """Prepare a run: every effective setting, before it does anything."""


@plan.command(example="evidence plan sft sft.toml --check\nevidence plan sft sft.toml")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Count and print everything, record nothing.")
@pass_app
def sft(app: App, config: Path, check: bool) -> None:
    """Plan supervised fine-tuning.

    CONFIG is a TOML or JSON file that names a split and a model and the settings that differ from the
    defaults. Every effective setting is printed.
    """
    from runners.prepare.shelf import default_shelf
    from runners.train.plans import prepare_sft, read_config

    read = read_config(config)
    with app.read_ledger() if check else app.open_ledger() as ledger:
        prepared = prepare_sft(ledger, read, default_shelf())
        record = None if check else ledger.append("plan.prepared", prepared.body, prepared.refs)
    body, figures = prepared.body, prepared.figures
    settings = [(name, str(value)) for name, value in sorted(body["settings"].items())]
    counted = [
        *((f"rows {name}", str(count)) for name, count in figures["rows"].items()),
        *((f"tokens {name}", str(count)) for name, count in figures["tokens"].items()),
        ("datums", str(figures["datums"])),
        ("epochs", figures["epochs"]),
    ]
    app.emit(
        {
            "plan": record.id if record else None,
            "settings": body["settings"],
            "warnings": body["warnings"],
            "rows": figures["rows"],
            "tokens": figures["tokens"],
        },
        [
            *render.fields([("plan", render.short(record.id) if record else "not recorded")]),
            "",
            *render.table(("setting", "value"), settings),
            "",
            *render.fields(counted),
            *(f"warning: {text}" for text in body["warnings"]),
        ],
        next_step=(
            f"evidence run launch {render.short(record.id)} --wait"
            if record
            else f"evidence plan sft {config}"
        ),
    )
