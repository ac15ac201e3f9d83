"""How `evidence query` shows an answer: a table, or CSV, JSON and Parquet to be read on by a program."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError
from runners.cli import render

if TYPE_CHECKING:
    from ledger.query.ask import Answer, AsOf

ROWS_SHOWN = 50
_DIGEST = re.compile(r"(?:sha256|ed25519):[0-9a-f]{32,64}")


def as_result(answer: Answer) -> dict[str, Any]:
    """The answer under `--json`."""
    return {
        "columns": answer.columns,
        "rows": answer.rows,
        "truncated": answer.truncated,
        "as_of": {"size": answer.as_of.size, "root": answer.as_of.root},
    }


def table(answer: Answer, *, whole: bool) -> list[str]:
    """Aligned lines; ids by their first digits unless the whole is asked for."""
    rows = answer.rows[:ROWS_SHOWN]
    shown = rows if whole else [[_short(cell) for cell in row] for row in rows]
    lines = render.table(answer.columns, shown, limit=80 if whole else render.CELL_CHARACTERS)
    left = len(answer.rows) - len(rows)
    if left > 0 or answer.truncated:
        more = "more" if answer.truncated else f"{left:,} more"
        lines.append(f"and {more}: --format csv shows all, LIMIT asks for less")
    return [*lines, "", read_at(len(answer.rows), answer.as_of)]


def read_at(rows: int, as_of: AsOf) -> str:
    """How many rows, and the head at which the ledger was read."""
    return (
        f"{render.count(rows, 'row')}, read at {render.count(as_of.size, 'record')}, "
        f"root {as_of.root[: render.SHORT_DIGITS]}"
    )


def csv_text(answer: Answer) -> str:
    """CSV (RFC 4180) with a heading and a line feed at the end of a line; null is an empty cell, a list is JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([[_csv_cell(cell) for cell in row] for row in answer.rows])
    return out.getvalue()


def json_lines(answer: Answer) -> list[str]:
    """The result as a document of its own."""
    import json

    return json.dumps(as_result(answer), indent=2).splitlines()


def refuse_on_terminal(*, terminal: bool) -> None:
    """Parquet is no text.

    Raises:
        UsageError: `USAGE`.
    """
    if terminal:
        raise UsageError(
            "USAGE",
            "a Parquet file is not for a terminal",
            field="--format",
            hint="send it to a file: evidence query … --format parquet > answer.parquet",
        )


def _short(cell: Any) -> Any:
    if isinstance(cell, list):
        return ", ".join(str(_short(item)) for item in cell)
    if isinstance(cell, str) and _DIGEST.fullmatch(cell):
        return render.short(cell)
    return cell


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, list | dict):
        import json

        return json.dumps(cell, ensure_ascii=False)
    return cell
