"""Commands about data: ingest, split, audit, accept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.record import Record
    from verifiers.data.rows import ParsedRows

REJECTS_SHOWN = 10


@click.group(cls=Group)
def data() -> None:
    """Ingest, split and audit data."""


@data.command(
    example="evidence data ingest tickets.jsonl --licence CC0-1.0\nevidence data ingest --package tau2-retail --seed 7"
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--package",
    type=click.Choice(["tau2-retail"]),
    help="Build the desk data from an installed package instead of files.",
)
@click.option(
    "--seed",
    type=int,
    default=7,
    show_default=True,
    help="Which orders meet which request, with --package.",
)
@click.option("--name", help="The data set's name [the first file's].")
@click.option("--licence", default=None, help="The licence of the files.")
@click.option("--from", "origin", default="", help="Where the files come from.")
@click.option("--reviewer", default=None, help="Who reviewed the files, where somebody did.")
@pass_app
def ingest(
    app: App,
    files: tuple[Path, ...],
    package: str | None,
    seed: int,
    name: str | None,
    licence: str | None,
    origin: str,
    reviewer: str | None,
) -> None:
    """Keep source bytes and parse their rows.

    Each line of a JSON-lines file is accepted, or rejected with a reason; rejects are kept too.
    """
    from ledger.errors import UsageError
    from runners.prepare.data import UNKNOWN_LICENCE, SourceNote, ingest_files, ingest_tau2

    if bool(files) == (package is not None):
        raise UsageError("INPUT_MISSING", "name files, or a package with --package", field="files")
    note = SourceNote(
        licence or UNKNOWN_LICENCE, origin, "reviewed" if reviewer else "unreviewed", reviewer
    )
    with app.open_ledger() as ledger:
        if package is not None:
            sources, dataset, parsed = ingest_tau2(ledger, seed)
        else:
            sources, dataset, parsed = ingest_files(ledger, files, name or files[0].stem, note)
    _emit_dataset(app, sources, dataset, parsed)


def _emit_dataset(app: App, sources: list[Record], dataset: Record, parsed: ParsedRows) -> None:
    result: dict[str, Any] = {
        "source": [record.id for record in sources],
        "dataset": dataset.id,
        "accepted": dataset.body["accepted"],
        "rejected": dataset.body["rejected"],
        "reasons": dataset.body["reasons"],
        "duplicates": dataset.body["duplicates"],
    }
    lines = [
        *render.fields(
            [
                ("dataset", render.short(dataset.id)),
                (
                    "sources",
                    ", ".join(f"{item.body['name']} ({item.body['licence']})" for item in sources),
                ),
                ("accepted", str(dataset.body["accepted"])),
                ("rejected", str(dataset.body["rejected"])),
                ("duplicates", str(dataset.body["duplicates"])),
            ]
        )
    ]
    if parsed.rejects:
        rows = [
            (*_file(item.source, sources), str(item.line), item.code, item.message)
            for item in parsed.rejects[:REJECTS_SHOWN]
        ]
        heads = ("file", "line", "reason", "what is wrong")[-len(rows[0]) :]
        lines += ["", *render.table(heads, rows, limit=120)]
        if len(parsed.rejects) > REJECTS_SHOWN:
            lines.append(
                f"… and {len(parsed.rejects) - REJECTS_SHOWN} more, all in the rejects blob"
            )
    app.emit(
        result, lines, next_step=f"evidence data split {render.short(dataset.id)} --by customer_id"
    )


def _file(source: int | None, sources: list[Record]) -> tuple[str, ...]:
    """The name of a reject's file, nothing where there is only one."""
    return () if source is None else (str(sources[source].body["name"]),)


@data.command(
    example="evidence data split 4f2a81 --by customer_id --by order_id --fractions 70,10,20 --seed 1"
)
@click.argument("dataset")
@click.option(
    "--by",
    "by",
    multiple=True,
    help="A field whose equal values stay together; may be given several times.",
)
@click.option(
    "--fractions",
    default="80,10,10",
    show_default=True,
    help="Proportions of train, validation, test.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Which order groups are dealt in.",
)
@pass_app
def split(app: App, dataset: str, by: tuple[str, ...], fractions: str, seed: int) -> None:
    """Deal rows to train, validation and test."""
    from runners.prepare.data import declare_split

    with app.open_ledger() as ledger:
        record = declare_split(
            ledger, ledger.get(dataset, "dataset.parsed"), by, _weights(fractions), seed
        )
    roles = record.body["roles"]
    app.emit(
        {"split": record.id, "roles": roles, "groups": record.body["groups"]},
        render.fields(
            [
                ("split", render.short(record.id)),
                ("groups", str(record.body["groups"])),
                *((role, str(roles[role])) for role in ("train", "validation", "test")),
            ]
        ),
        next_step=f"evidence data audit {render.short(record.id)}",
    )


def _weights(text: str) -> list[int]:
    from ledger.errors import UsageError

    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise UsageError(
            "SPLIT_SETTINGS",
            f"fractions are three whole numbers with commas, not {text!r}",
            field="fractions",
            hint="for example --fractions 80,10,10",
        )
    return [int(part) for part in parts]


@data.command(example="evidence data audit 4f2a81")
@click.argument("split")
@pass_app
def audit(app: App, split: str) -> None:
    """Look for held-out rows in the training rows."""
    from runners.prepare.data import audit_split

    with app.open_ledger() as ledger:
        record = audit_split(ledger, ledger.get(split, "split.declared"))
    body = record.body
    counts = [
        *body["levels"].items(),
        *((f"same {name}", count) for name, count in body["entities"].items()),
    ]
    clean = body["verdict"] == "clean"
    app.emit(
        {
            "audit": record.id,
            "verdict": body["verdict"],
            "levels": body["levels"],
            "entities": body["entities"],
        },
        [
            *render.fields([("audit", render.short(record.id)), ("verdict", body["verdict"])]),
            "",
            *render.table(
                ("level", "held-out rows touched"), [(name, str(count)) for name, count in counts]
            ),
        ],
        next_step=(
            "evidence plan sft CONFIG"
            if clean
            else f"evidence show {render.short(record.id)}, then split again or evidence data accept"
        ),
    )


@data.command(
    example="evidence data accept 4f2a81 --why 'two greetings, seen and harmless' --review-key reviewer.pem"
)
@click.argument("audit_id", metavar="AUDIT")
@click.option("--why", required=True, help="The reviewer's reason.")
@click.option(
    "--review-key",
    required=True,
    type=click.Path(path_type=Path),
    help="The reviewer's private key file.",
)
@pass_app
def accept(app: App, audit_id: str, why: str, review_key: Path) -> None:
    """Accept an audit's findings as a reviewer."""
    import secrets

    with app.open_ledger() as ledger:
        found = ledger.get(audit_id, "leakage.audited")
        record = ledger.append_stated(
            "leakage.accepted",
            {"why": why},
            {"audit": found.id},
            signer=app.load_key(review_key),
            nonce=secrets.token_hex(16),
        )
    app.emit(
        {"acceptance": record.id, "audit": found.id},
        render.fields(
            [("acceptance", render.short(record.id)), ("of audit", render.short(found.id))]
        ),
        next_step="evidence plan sft CONFIG",
    )
