"""`evidence query`: the ledger in SQL, or by one of the questions that come with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UsageError
from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.query.ask import Answer

ROWS_SHOWN = 50


@click.command(
    cls=Verb,
    example="evidence query --list\nevidence query curve --param run=4f2a81\n"
    "evidence query 'SELECT step, loss FROM updates ORDER BY step'",
)
@click.argument("question", required=False, metavar="[SQL|NAME]")
@click.option("--list", "listing", is_flag=True, help="List the questions that have a name.")
@click.option("--tables", is_flag=True, help="List the tables and their columns.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter's value; may be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Rows at most.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="When to give up.",
)
@click.option(
    "--memory",
    "memory_mib",
    type=click.IntRange(min=64),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Memory that the statement may use.",
)
@pass_app
def query(
    app: App,
    question: str | None,
    listing: bool,
    tables: bool,
    params: tuple[str, ...],
    limit: int,
    timeout_s: float,
    memory_mib: int,
) -> None:
    """Ask the ledger in SQL.

    One SELECT over tables made from the records: `records`, `edges` and one for each kind. It runs on a
    copy in memory, locked away from files and network. The answer says at which size and root the ledger
    was read; it does not say that the ledger is sound, evidence verify does.
    """
    if listing or tables or question is None:
        _list_tables(app) if tables else _list_queries(app)
        return
    from ledger.query.ask import ask

    sql, values = _statement(question, params)
    answer = ask(
        app.ledger_path,
        sql,
        values,
        max_rows=limit,
        timeout_s=timeout_s,
        memory_bytes=memory_mib << 20,
    )
    app.emit(
        {
            "columns": answer.columns,
            "rows": answer.rows,
            "truncated": answer.truncated,
            "as_of": {"size": answer.size, "root": answer.root},
        },
        _lines(answer),
        next_step="evidence verify",
    )


def _statement(question: str, params: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The SQL of a question and its parameters' values."""
    from ledger.query import named_queries

    values = _values(params)
    if not re.fullmatch(r"[a-z_]+", question):
        return question, values
    named = named_queries.find(question)
    missing = sorted(named.parameters.keys() - values.keys())
    unknown = sorted(values.keys() - named.parameters.keys())
    if missing or unknown:
        wrong = f"needs {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
        raise UsageError(
            "USAGE",
            f"query {question} {wrong}",
            field="--param",
            hint=f"evidence query {question} {' '.join(f'--param {name}=VALUE' for name in named.parameters)}",
        )
    return named.sql, values


def _values(params: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for param in params:
        name, equals, value = param.partition("=")
        if not equals or not re.fullmatch(r"[a-z_]+", name):
            raise UsageError("USAGE", f"{param[:60]!r} is not NAME=VALUE", field="--param")
        values[name] = value
    return values


def _list_queries(app: App) -> None:
    from ledger.query import named_queries

    found = [named_queries.find(name) for name in named_queries.names()]
    app.emit(
        {
            "queries": [
                {"name": item.name, "meaning": item.meaning, "parameters": item.parameters}
                for item in found
            ]
        },
        render.table(
            ("name", "parameters", "answers"),
            [(item.name, ", ".join(item.parameters), item.meaning) for item in found],
            limit=120,
        ),
        next_step="evidence query NAME",
    )


def _list_tables(app: App) -> None:
    from ledger.query import names, tables

    kinds = {table: kind for kind, table in names.TABLES.items()}
    described: list[dict[str, Any]] = []
    lines: list[str] = []
    for table in names.ALL_TABLES:
        columns = tables.columns(table)
        described.append(
            {
                "table": table,
                "kind": kinds.get(table),
                "columns": [{"name": column.name, "type": column.type} for column in columns],
            }
        )
        lines.append(render.Styled(f"{table}  {kinds.get(table, '')}".rstrip(), bold=True))
        lines.append("  " + ", ".join(f"{column.name} {column.type}" for column in columns))
    app.emit({"tables": described}, lines, next_step="evidence query 'SELECT …'")


def _lines(answer: Answer) -> list[str]:
    rows = answer.rows[:ROWS_SHOWN]
    lines = render.table(answer.columns, rows)
    left = len(answer.rows) - len(rows)
    if left > 0 or answer.truncated:
        more = "more" if answer.truncated else f"{left:,} more"
        lines.append(f"and {more}: --json shows all, LIMIT asks for less")
    lines.append("")
    lines.append(
        f"{render.count(len(answer.rows), 'row')}, read at {render.count(answer.size, 'record')}, "
        f"root {answer.root[: render.SHORT_DIGITS]}"
    )
    return lines
