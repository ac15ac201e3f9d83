"""`evidence query`: the ledger in SQL, or by one of the questions that come with it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UsageError
from runners.cli import query_answer, render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.query.ask import Limits
    from ledger.query.named_queries import NamedQuery
    from runners.cli.progress import Progress

MAX_SQL_BYTES = 1 << 20
NAME_CHARACTERS = 16
WAITING = "waiting for the answer, in seconds:"


@click.command(
    cls=Verb,
    example="evidence query --list\nevidence query curve --param run=4f2a81\n"
    "evidence query 'SELECT step, loss FROM updates ORDER BY step' --format csv > loss.csv\n"
    "evidence query - < question.sql",
)
@click.argument("question", required=False, metavar="[SQL|NAME|-]")
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
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="How to answer; all but table give every row with whole ids.",
)
@click.option("--whole", is_flag=True, help="Whole ids in the table.")
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
    type=click.FloatRange(0.1, 86_400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="When to give up.",
)
@click.option(
    "--memory",
    "memory_mib",
    type=click.IntRange(64, 1 << 20),
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
    form: str,
    whole: bool,
    limit: int,
    timeout_s: float,
    memory_mib: int,
) -> None:
    """Ask the ledger in SQL.

    One SELECT over tables made from the records: `records`, `edges`, one for each kind, and some made of
    those; `-` reads it from stdin. It runs on a copy, locked away from files and network. The answer says at
    which size and root the ledger was read, as does the table `as_of`; it does not say that the ledger is
    sound, evidence verify does.
    """
    if listing or tables or question is None:
        _list_tables(app) if tables else _list_queries(app)
        return
    from ledger.query.ask import Limits

    sql, values = _statement(app, question, params)
    limits = Limits(limit, timeout_s, memory_mib << 20)
    if form == "parquet":
        _answer_parquet(app, sql, values, limits)
    else:
        _answer(app, sql, values, limits, form=form, whole=whole)


def _answer(
    app: App, sql: str, values: dict[str, str], limits: Limits, *, form: str, whole: bool
) -> None:
    from ledger.query.ask import ask

    with app.progress(WAITING) as waited:
        answer = ask(
            app.ledger_path,
            sql,
            values,
            limits,
            waited.to,
            app.history,
            _sealing(app, waited),
        )
    lines: list[str] = []
    data = None
    if form == "table":
        lines = query_answer.table(answer, whole=whole)
    elif form == "json":
        lines = query_answer.json_lines(answer)
    elif sys.stdout.isatty():
        lines = query_answer.csv_text(answer).splitlines()
    else:
        data = query_answer.csv_text(answer).encode()
    if form != "table":
        _say_rows(app, query_answer.read_at(len(answer.rows), answer.as_of), answer.truncated)
    app.emit(query_answer.as_result(answer), lines, data=data, next_step="evidence verify")


def _answer_parquet(app: App, sql: str, values: dict[str, str], limits: Limits) -> None:
    from ledger.query.ask import ask_parquet

    if app.as_json:
        raise UsageError(
            "USAGE", "--json is an answer of its own: leave out one of the two", field="--format"
        )
    query_answer.refuse_on_terminal(terminal=sys.stdout.isatty())
    with app.progress(WAITING) as waited:
        found = ask_parquet(
            app.ledger_path,
            sql,
            values,
            limits,
            waited.to,
            app.history,
            _sealing(app, waited),
        )
    _say_rows(app, query_answer.read_at(found.rows, found.as_of), found.truncated)
    app.emit({}, data=found.data, next_step="evidence verify")


def _sealing(app: App, bar: Progress) -> Callable[[int, int], None]:
    """Says once that history is sealed first, then moves the line."""
    from runners.cli.segments import SEALING, teller

    tell = teller(bar)

    def told(sealed: int, of: int) -> None:
        if bar.label != SEALING:
            bar.label = SEALING
            app.say(f"history is sealed for this and later questions: {of:,} records")
        tell(sealed, of)

    return told


def _say_rows(app: App, line: str, truncated: bool) -> None:
    app.say(line + (", and there are more: raise --limit" if truncated else ""))


def _statement(app: App, question: str, params: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The SQL of a question and its parameters' values; the id of a record in whole, however it was given."""
    from ledger.query import named_queries

    values = _values(params)
    if question == "-":
        text = sys.stdin.buffer.read(MAX_SQL_BYTES)
        return text.decode("utf-8", "surrogateescape"), values
    if not re.fullmatch(r"[a-z_]+", question):
        return question, values
    named = named_queries.find(question)
    _check_parameters(named, values)
    if named.parameters:
        with app.read_ledger() as ledger:
            for item in named.parameters:
                values[item.name] = ledger.get(values[item.name], item.kind).id
    return named.sql, values


def _check_parameters(named: NamedQuery, values: dict[str, str]) -> None:
    wanted = [item.name for item in named.parameters]
    missing = sorted(set(wanted) - values.keys())
    unknown = sorted(values.keys() - set(wanted))
    if missing or unknown:
        wrong = f"needs {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
        raise UsageError(
            "USAGE",
            f"query {named.name} {wrong}",
            field="--param",
            hint=" ".join(
                [f"evidence query {named.name}", *(f"--param {name}=ID" for name in wanted)]
            ),
        )


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
                {
                    "name": item.name,
                    "meaning": item.meaning,
                    "units": item.units,
                    "parameters": {
                        part.name: f"{part.meaning} ({part.kind})" for part in item.parameters
                    },
                }
                for item in found
            ]
        },
        [line for item in found for line in _described(item)],
        next_step="evidence query NAME",
    )


def _described(item: NamedQuery) -> list[str]:
    """A question in two lines: what it answers, then what it asks for and the units of its numbers."""
    asks = " ".join(f"--param {part.name}=ID" for part in item.parameters)
    more = "; ".join(part for part in (asks, item.units) if part)
    return [
        render.Styled(f"{item.name.ljust(NAME_CHARACTERS)}{item.meaning}", bold=True),
        render.Styled(f"{' ' * NAME_CHARACTERS}{more}", dim=True),
    ]


def _list_tables(app: App) -> None:
    from ledger.query import describe, names

    kinds = {table: kind for kind, table in names.TABLES.items()}
    described: list[dict[str, Any]] = []
    lines: list[str] = []
    for table in names.ALL_TABLES:
        columns = describe.columns(table)
        meaning = describe.meaning(table)
        described.append(
            {
                "table": table,
                "kind": kinds.get(table),
                "meaning": meaning,
                "columns": [{"name": name, "type": kind} for name, kind in columns],
            }
        )
        lines.append(render.Styled(f"{table}  {meaning}", bold=True))
        lines.append("  " + ", ".join(f"{name} {kind}" for name, kind in columns))
    app.emit({"tables": described}, lines, next_step="evidence query 'SELECT …'")
