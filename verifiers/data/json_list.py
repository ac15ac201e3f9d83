"""A JSON list as lines: each element by itself, with the physical line on which it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ledger.errors import EvidenceError

# a whole string (or one without end), a bracket or a comma: what stands inside strings does not count
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_SPACE = b" \t\r\n"


def elements(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """(line, bytes) of each element of a JSON list; nothing but its brackets and commas is looked at.

    An element that is not JSON, or that is missing between two commas, is found by whoever reads it.

    Raises:
        EvidenceError: `SOURCE_UNREADABLE`, the bytes are not one list.
    """
    begin = len(data) - len(data.lstrip(_SPACE)) + 1
    if data[begin - 1 : begin] != b"[":
        raise _no_list(name, "it does not begin with a bracket")
    line, counted, first = 1, 0, True
    for start, end, last in _spans(data, begin, name):
        element = data[start:end].strip(_SPACE)
        at = data.find(element, start) if element else end
        line, counted = line + data.count(b"\n", counted, at), at
        if element or not (first and last):
            yield line, element
        first = False


def _spans(data: bytes, begin: int, name: str) -> Iterator[tuple[int, int, bool]]:
    """Where each element lies, and whether it is the last; the list's own bracket is before `begin`."""
    depth, start = 1, begin
    for token in _TOKENS.finditer(data, begin):
        sign = token.group()
        if sign in (b"[", b"{"):
            depth += 1
        elif sign in (b"]", b"}"):
            depth -= 1
        if depth == 0:
            if sign != b"]" or data[token.end() :].strip(_SPACE):
                break
            yield start, token.start(), True
            return
        if sign == b"," and depth == 1:
            yield start, token.start(), False
            start = token.end()
    raise _no_list(name, "it does not end with its bracket")


def _no_list(name: str, message: str) -> EvidenceError:
    return EvidenceError("SOURCE_UNREADABLE", f"{name}: no list of rows: {message}", field=name)
