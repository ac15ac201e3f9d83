"""Commands about models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.reading import Reading


@click.group(cls=Group)
def model() -> None:
    """Register models."""


@model.command(
    example="evidence model add --package smollm2\nevidence model add ./my-model --licence Apache-2.0"
)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--package", help="A model of the catalogue, from its installed package.")
@click.option("--name", help="The model's name [the folder's].")
@click.option(
    "--licence", default="not stated", show_default=True, help="The licence of a folder's model."
)
@click.option("--from", "source", default="", help="Where a folder's model comes from.")
@click.option("--revision", help="The revision of a folder's model at its source.")
@pass_app
def add(
    app: App,
    folder: Path | None,
    package: str | None,
    name: str | None,
    licence: str,
    source: str,
    revision: str | None,
) -> None:
    """Register a model by the digests of its files.

    A folder holds config.json, a tokenizer and safetensors weights; formats that can run code are refused.
    A catalogue model is converted to such a folder once, on this machine's shelf (EVIDENCE_MODELS, else the
    user's cache).
    """
    from ledger.errors import UsageError
    from runners.prepare.register import add_folder, add_package
    from runners.prepare.shelf import default_shelf

    if (folder is None) == (package is None):
        raise UsageError(
            "INPUT_MISSING", "name a folder, or a catalogue model with --package", field="folder"
        )
    terms = None
    with app.open_ledger() as ledger:
        if package is not None:
            record, fetched = add_package(ledger, package, default_shelf(), _teller(app, package))
            terms = fetched.terms
        else:
            assert folder is not None
            record = add_folder(
                ledger,
                folder,
                default_shelf(),
                name=name,
                licence=licence,
                source=source,
                revision=revision,
            )
        onward = _onward(ledger)
    body = record.body
    app.emit(
        {
            "model": record.id,
            "name": body["name"],
            "family": body["family"],
            "parameters": body["parameters"],
            "tree": body["tree"],
            "licence": body["licence"],
            "terms": terms,
        },
        [
            *render.fields(
                [
                    ("model", render.short(record.id)),
                    ("name", body["name"]),
                    ("family", body["family"]),
                    ("parameters", f"{body['parameters']:,}"),
                    ("licence", body["licence"]),
                ]
            ),
            *([f"terms: {terms}"] if terms else []),
        ],
        next_step=onward,
    )


def _onward(ledger: Reading) -> str:
    """What helps on after a model: data where there is none yet, else the plan that brings the two together."""
    if ledger.of_kind("split.declared"):
        return "evidence plan sft CONFIG"
    datasets = ledger.of_kind("dataset.parsed")
    if datasets:
        return f"evidence data split {render.short(datasets[-1].id)}"
    return "evidence data ingest FILE"


def _teller(app: App, package: str) -> Callable[[str, float], None]:
    """Say each stage once, and each quarter of it."""
    said: set[tuple[str, int]] = set()

    def tell(what: str, share: float) -> None:
        quarter = int(share * 4)
        if (what, quarter) not in said:
            said.add((what, quarter))
            app.say(f"{what} {package}: {quarter * 25} %")

    return tell


@model.command(example="evidence model catalog")
@pass_app
def catalog(app: App) -> None:
    """List the models that an installed package can give."""
    from runners.prepare.catalogue import CATALOGUE

    rows = [
        (item.name, item.model, f"{item.distribution}=={item.version}", item.licence, item.use)
        for item in CATALOGUE.values()
    ]
    app.emit(
        {
            "models": [
                {
                    "name": row[0],
                    "model": row[1],
                    "package": row[2],
                    "licence": row[3],
                    "use": row[4],
                }
                for row in rows
            ]
        },
        render.table(("name", "model", "package", "licence", "use"), rows),
        next_step="evidence model add --package NAME",
    )
