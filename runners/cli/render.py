"""What a person sees: tables, field lists and short ids, and nothing that a terminal would obey.

Text from a ledger is somebody else's. `clean` shows every character that cannot be printed (escape
sequences, line breaks, marks that reverse the reading order) as its code, and the one place that writes
to the terminal cleans each line. Colour is added after that, never read from the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHORT_DIGITS = 12
CELL_CHARACTERS = 48
GAP = "  "


class Styled(str):
    """A line with a colour or weight of `click.style` for a terminal; elsewhere it is plain text."""

    __slots__ = ("style",)

    style: dict[str, Any]

    def __new__(cls, text: str, **style: Any) -> Self:
        """A line of this text in this style."""
        line = super().__new__(cls, text)
        line.style = style
        return line


def clean(text: str) -> str:
    r"""The text with every unprintable character written as `\xNN`, `\uNNNN` or `\UNNNNNNNN`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def write(line: str, *, err: bool = False, color: bool = False) -> None:
    """Write one line, cleaned; the only way to the terminal."""
    style = line.style if isinstance(line, Styled) and color else {}
    click.echo(click.style(clean(line), **style) if style else clean(line), err=err, color=color)


def short(record_id: str) -> str:
    """An id's first digits, enough to type and to find it by."""
    name, colon, digits = record_id.partition(":")
    return (digits if colon else name)[:SHORT_DIGITS]


def clip(text: str, limit: int = CELL_CHARACTERS) -> str:
    """A cleaned text that fits a table's cell; what was cut shows as an ellipsis."""
    text = clean(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, limit: int = CELL_CHARACTERS
) -> list[str]:
    """Aligned lines, numbers to the right; the heading alone where there are no rows.

    Args:
        headers: one for each column.
        rows: cells; None is shown as `-`.
        limit: characters of the widest cell.
    """
    cells = [[_cell(item, limit) for item in row] for row in rows]
    numeric = [_all_numbers(row[column] for row in cells) for column in range(len(headers))]
    widths = [
        max(len(name), *(len(row[column]) for row in cells)) if cells else len(name)
        for column, name in enumerate(headers)
    ]
    lines: list[str] = [Styled(_aligned(list(headers), widths, numeric), bold=True)]
    return lines + [_aligned(row, widths, numeric) for row in cells]


def fields(pairs: Iterable[tuple[str, object]]) -> list[str]:
    """One line a field, the values aligned; fields without a value are left out."""
    there = [(name, value) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in there), default=0)
    return [f"{name.ljust(width)}{GAP}{value}" for name, value in there]


def count(number: int, thing: str, plural: str | None = None) -> str:
    """A number with its noun: `1 record`, `2 records`."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cell(item: object, limit: int) -> str:
    return "-" if item is None else clip(str(item), limit)


def _all_numbers(cells: Iterable[str]) -> bool:
    texts = list(cells)
    return bool(texts) and all(text == "-" or _is_number(text) for text in texts)


def _is_number(text: str) -> bool:
    return text.lstrip("+-")[:1].isdigit() and text.strip("+-0123456789.,e%") == ""


def _aligned(row: list[str], widths: list[int], numeric: list[bool]) -> str:
    pairs = zip(row, widths, numeric, strict=True)
    return GAP.join(
        text.rjust(width) if number else text.ljust(width) for text, width, number in pairs
    ).rstrip()
