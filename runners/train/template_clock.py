"""The day that a chat template is told: a line before its text, so that the text alone decides what it renders.

Templates may ask for today's date with `strftime_now(FORMAT)`. A rendering that changes overnight can be neither
planned nor derived again. The line defines a macro of that name which answers with a fixed day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

CLOCK = "strftime_now"
_AT_MIDNIGHT = {"%H": "00", "%I": "12", "%M": "00", "%S": "00", "%p": "AM", "%f": "000000"}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def with_clock(template: str, day: date) -> str:
    """The template with the line before it that answers `strftime_now` with midnight of a day."""
    return clock_line(day) + template


def clock_line(day: date) -> str:
    """The line: one macro. A block's end takes the line break after it, so nothing is added to what is rendered."""
    replaced = "".join(f"|replace('{code}', '{text}')" for code, text in _values(day).items())
    return f"{{% macro {CLOCK}(format) %}}{{{{ format{replaced} }}}}{{% endmacro %}}\n"


def _values(day: date) -> dict[str, str]:
    """What each directive gives, in English whatever the machine's language."""
    month, weekday = _MONTHS[day.month - 1], _DAYS[day.weekday()]
    named = {
        "%A": weekday, "%a": weekday[:3], "%B": month, "%b": month[:3], "%-d": str(day.day),
        "%-m": str(day.month),
    }  # fmt: skip
    numbers = {f"%{code}": day.strftime(f"%{code}") for code in "djmuUwWyYGV"}
    numbers |= {"%F": day.isoformat(), "%D": day.strftime("%m/%d/%y")}
    return {**named, **numbers, **_AT_MIDNIGHT}
