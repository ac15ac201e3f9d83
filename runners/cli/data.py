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
EXAMPLES_SHOWN = 5
DEFAULT_FRACTIONS = "80,10,10"


@click.group(cls=Group)
def data() -> None:
    """Ingest, split and audit data."""


@data.command(
    example="evidence data ingest tickets.jsonl --licence CC0-1.0\nevidence data ingest saved-data-set/ --keep-held-out\nevidence data ingest --package tau2-retail --seed 7"
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--package",
    type=click.Choice(["tau2-retail", "desk-dated"]),
    help="Build desk data instead of reading files: of an installed package's real orders, or of a synthetic book with days.",
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
@click.option(
    "--keep-held-out",
    is_flag=True,
    help="Accept chat rows that declare another role than train, for a split by that field.",
)
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
    keep_held_out: bool,
) -> None:
    """Keep source bytes and parse their rows.

    Takes JSON lines, JSON lists, Parquet, Arrow, folders of data sets saved to disk, and tau2 tasks with their
    database. Each row is accepted, or rejected with a reason; rejects are kept too. What looks like a secret is flagged.
    """
    from ledger.errors import UsageError
    from runners.prepare.data import (
        UNKNOWN_LICENCE,
        SourceNote,
        ingest_dated,
        ingest_files,
        ingest_tau2,
    )

    if bool(files) == (package is not None):
        raise UsageError("INPUT_MISSING", "name files, or a package with --package", field="files")
    note = SourceNote(
        licence or UNKNOWN_LICENCE, origin, "reviewed" if reviewer else "unreviewed", reviewer
    )
    with app.open_ledger() as ledger:
        if package is not None:
            build = ingest_tau2 if package == "tau2-retail" else ingest_dated
            sources, dataset, parsed = build(ledger, seed)
        else:
            sources, dataset, parsed = ingest_files(
                ledger, files, name or files[0].stem, note, keep_held_out=keep_held_out
            )
    _emit_dataset(app, sources, dataset, parsed)


def _emit_dataset(app: App, sources: list[Record], dataset: Record, parsed: ParsedRows) -> None:
    result: dict[str, Any] = {
        "source": [record.id for record in sources],
        "dataset": dataset.id,
        "accepted": dataset.body["accepted"],
        "rejected": dataset.body["rejected"],
        "reasons": dataset.body["reasons"],
        "duplicates": dataset.body["duplicates"],
        "secrets": dataset.body["secrets"],
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
                ("duplicates", str(dataset.body["duplicates"] or "") or None),
            ]
        )
    ]
    if dataset.body["secrets"]:
        kinds = [(kind, str(count)) for kind, count in dataset.body["secrets"].items()]
        lines += ["", *render.table(("looks like a secret", "times"), kinds)]
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
    example="evidence data split 4f2a81 --by customer_id --by text:near --fractions 70,10,20 --seed 1\nevidence data split 4f2a81 --published split_tasks.json\nevidence data split 4f2a81 --assign metadata.pool"
)
@click.argument("dataset")
@click.option(
    "--by",
    "by",
    multiple=True,
    help="A field whose equal values stay together, or text:request, text:masked, text:near; may be given several times.",
)
@click.option("--fractions", help="Proportions of train, validation, test [80,10,10].")
@click.option("--seed", type=click.IntRange(0), help="Which order groups are dealt in [0].")
@click.option(
    "--published",
    type=click.Path(path_type=Path),
    help="A file of roles with lists of ids, taken over as it is.",
)
@click.option(
    "--assign", help="A file of ids and roles, or the field in which rows say their role."
)
@pass_app
def split(
    app: App,
    dataset: str,
    by: tuple[str, ...],
    fractions: str | None,
    seed: int | None,
    published: Path | None,
    assign: str | None,
) -> None:
    """Deal rows to train, validation and test."""
    from runners.prepare.divide import assign_split, declare_split, import_split

    _check_one_way(fractions if seed is None else str(seed), published, assign)
    with app.open_ledger() as ledger:
        rows = ledger.get(dataset, "dataset.parsed")
        if published is not None:
            record = import_split(ledger, rows, by, published)
        elif assign is not None:
            record = assign_split(ledger, rows, by, assign)
        else:
            weights = _weights(DEFAULT_FRACTIONS if fractions is None else fractions)
            record = declare_split(ledger, rows, by, weights, seed or 0)
    roles = record.body["roles"]
    app.emit(
        {"split": record.id, "roles": roles, "groups": record.body["groups"]},
        render.fields(
            [
                ("split", render.short(record.id)),
                ("groups", str(record.body["groups"])),
                *((role, str(count)) for role, count in roles.items()),
            ]
        ),
        next_step=f"evidence data audit {render.short(record.id)}",
    )


def _check_one_way(*ways: object) -> None:
    from ledger.errors import UsageError

    if sum(way is not None for way in ways) > 1:
        raise UsageError(
            "SPLIT_SETTINGS",
            "roles come from fractions and a seed, or from --published, or from --assign",
            field="fractions",
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


@data.command(
    example="evidence data audit 4f2a81\nevidence data audit 4f2a81 --entity context --against-history"
)
@click.argument("split")
@click.option(
    "--entity",
    "entities",
    multiple=True,
    help="A field to compare beside those that end in _id; may be given several times.",
)
@click.option(
    "--against-history",
    is_flag=True,
    help="Compare the held-out rows with all that this ledger trained on, validated on or tested on, too.",
)
@pass_app
def audit(app: App, split: str, entities: tuple[str, ...], against_history: bool) -> None:
    """Look for held-out rows in the training rows."""
    from runners.prepare.data import read_lines
    from runners.prepare.divide import audit_split

    with app.open_ledger() as ledger:
        record = audit_split(
            ledger,
            ledger.get(split, "split.declared"),
            fields=entities,
            against_history=against_history,
        )
        blob = record.body["findings"]
        findings = read_lines(ledger, blob) if blob else []
    body = record.body
    result = {name: body[name] for name in ("verdict", "levels", "entities", "pairs", "history")}
    app.emit(
        {"audit": record.id, **result, "examples": findings[:EXAMPLES_SHOWN]},
        _audit_lines(record, findings),
        next_step=(
            "evidence plan sft CONFIG"
            if body["verdict"] == "clean"
            else f"evidence show {render.short(record.id)}, then split again or evidence data accept"
        ),
    )


def _audit_lines(record: Record, findings: list[dict[str, str]]) -> list[str]:
    body = record.body
    counts = [
        *body["levels"].items(),
        *((f"same {name}", count) for name, count in body["entities"].items()),
        *((f"past {name}", count) for name, count in (body["history"] or {}).items()),
    ]
    lines = [
        *render.fields(
            [
                ("audit", render.short(record.id)),
                ("verdict", body["verdict"]),
                ("pairs", str(body["pairs"])),
            ]
        ),
        "",
        *render.table(
            ("level", "held-out rows touched"), [(name, str(count)) for name, count in counts]
        ),
    ]
    if findings:
        rows = [
            (item["level"], f"{item['held_out_role']} {item['held_out'][7:15]}",
             f"{item['other_role']} {item['other'][7:15]}", item["detail"])
            for item in findings[:EXAMPLES_SHOWN]
        ]  # fmt: skip
        lines += ["", *render.table(("level", "row", "touched by", "what"), rows, limit=120)]
    return lines


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
