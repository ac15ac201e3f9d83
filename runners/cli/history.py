"""`evidence log` and `evidence show`: the records as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UsageError
from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app
from runners.cli.summary import summary
from runners.cli.suspicion import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledger.book import Ledger
    from ledger.record import Record

DEFAULT_LIMIT = 20


@click.command(cls=Verb, example="evidence log --kind checkpoint.published --limit 5")
@click.option("--kind", help="Only records of this kind.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="At most so many; 0 for all.",
)
@click.option("--reverse", is_flag=True, help="Oldest first.")
@pass_app
def log(app: App, kind: str | None, limit: int, reverse: bool) -> None:
    """List records, newest first."""
    check_kind(kind)
    with app.read_ledger() as ledger:
        size = ledger.size
        records = list(_pick(ledger, size, kind, limit, oldest_first=reverse))
        marker = Marker(ledger)
        suspects = {record.id: why for record in records if (why := marker.reason(record))}
    rows = [
        (
            record.seq,
            render.short(record.id),
            record.time,
            record.kind,
            ("SUSPECT " if record.id in suspects else "") + summary(record),
        )
        for record in records
    ]
    listed = [
        {
            "seq": record.seq,
            "id": record.id,
            "kind": record.kind,
            "time": record.time,
            "actor": record.actor,
            "summary": summary(record),
            **({"suspect": suspects[record.id]} if record.id in suspects else {}),
        }
        for record in records
    ]
    first = render.short(records[0].id) if records else "RECORD"
    app.emit(
        {"size": size, "records": listed},
        render.table(("seq", "id", "time", "kind", "what"), rows, limit=72),
        next_step=f"evidence show {first}",
    )


@click.command(cls=Verb, example="evidence show 4f2a81\nevidence show @0 --dsse")
@click.argument("record")
@click.option("--dsse", is_flag=True, help="The record as a DSSE envelope, as others verify it.")
@pass_app
def show(app: App, record: str, dsse: bool) -> None:
    """Show one record.

    RECORD is an id, its first six hex digits or more, or @N for the record at seq N.
    """
    from ledger.record import envelope_dsse

    with app.read_ledger() as ledger:
        found = ledger.get(record, raw=True)
        about = [ledger.find(ref) for _, ref in found.all_refs()]
        suspect = Marker(ledger).reason(found)
    if dsse:
        envelope = envelope_dsse(found)
        app.emit(envelope, _json_lines(envelope))
        return
    kinds = {item.id: item.kind for item in about if item is not None}
    app.emit(
        {**found.as_dict(), **({"suspect": suspect} if suspect else {})},
        _lines(found, kinds, suspect),
        next_step=f"evidence lineage {render.short(found.id)}",
    )


def check_kind(kind: str | None) -> None:
    """Refuse a kind that does not exist, naming the nearest ones.

    Raises:
        UsageError: `KIND_UNKNOWN`.
    """
    from ledger.records import KINDS

    if kind is None or kind in KINDS:
        return
    import difflib

    near = difflib.get_close_matches(kind, KINDS, n=3)
    hint = f", did you mean {' or '.join(near)}" if near else ""
    raise UsageError("KIND_UNKNOWN", f"no kind is called {kind[:60]!r}{hint}", field="kind")


def _pick(
    ledger: Ledger, size: int, kind: str | None, limit: int, *, oldest_first: bool
) -> Iterable[Record]:
    if kind is not None:
        found = ledger.of_kind(kind, raw=True)
        return _cut(found if oldest_first else found[::-1], limit)
    if oldest_first:
        return ledger.records(0, limit or None)
    start = max(size - limit, 0) if limit else 0
    return list(ledger.records(start, size))[::-1]


def _cut(records: list[Record], limit: int) -> list[Record]:
    return records[:limit] if limit else records


def _lines(record: Record, kinds: dict[str, str], suspect: str | None) -> list[str]:
    refs = [
        (role, f"{ref}  {kinds.get(ref, 'not in this ledger')}") for role, ref in record.all_refs()
    ]
    lines = [
        render.Styled(f"{record.kind} at seq {record.seq}", bold=True),
        *render.fields(
            [
                ("id", record.id),
                ("ledger", record.ledger),
                ("prev", record.prev),
                ("time", record.time),
                ("actor", record.actor),
                ("schema", str(record.schema)),
            ]
        ),
    ]
    if suspect:
        lines.append(render.Styled(f"suspect: {suspect}", bold=True, fg="yellow"))
    if record.statement is not None:
        lines.append(
            f"statement by {record.statement.key}, who saw {record.statement.seal.size} records"
        )
    for title, pairs in (("refs", refs), ("body", list(_flat(record.body)))):
        if pairs:
            lines += ["", render.Styled(title, bold=True)]
            lines += [f"  {line}" for line in render.fields(pairs)]
    return lines


def _flat(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Every leaf with its path, in the order of the record's bytes."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _flat(item, f"{name}[{index}]")
    elif isinstance(value, list):
        yield name, ", ".join(str(item) for item in value) or "none"
    else:
        yield name, _leaf(value)


def _leaf(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value == {} else str(value)


def _json_lines(value: dict[str, Any]) -> list[str]:
    import json

    return json.dumps(value, indent=2).splitlines()
