"""What a fuzz target may raise, and what it must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ledger.codes import CODES
from ledger.errors import LedgerError

Check = Callable[[bytes], None]
Parts = tuple[Check, Callable[[], list[bytes]], int, int]
"""A target's check, seeds, weight and longest input in bytes."""


class Escaped(Exception):
    """A property of a parser does not hold."""


@contextmanager
def refusals() -> Iterator[None]:
    """Refusals are right: an error of ours whose code is in the table and whose fields can be printed."""
    try:
        yield
    except LedgerError as error:
        if error.code not in CODES or not str(error.as_dict()):
            raise Escaped(f"unknown code {error.code}") from error


def expect(holds: bool, what: str) -> None:
    """A property that must hold of what was read."""
    if not holds:
        raise Escaped(what)
