"""Values to canonical bytes and back: RFC 8785 on a restricted profile (spec: ledger.md, section 2).

The profile: objects with ASCII keys, arrays, strings of valid Unicode, booleans, null and integers
within ±(2^53-1), nested at most 32 deep. No floating-point numbers: a real number is the string that
`real` makes. On that profile orjson with sorted keys gives the RFC 8785 bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import orjson

from ledger.errors import EvidenceError

MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1

_SCALARS = frozenset({str, int, bool, type(None)})
_OPEN = frozenset(b"[{")
_CLOSE = frozenset(b"]}")
# a whole string (or one without end), or one bracket: brackets inside strings do not count
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def encode(value: Any) -> bytes:
    """Canonical bytes of a JSON value.

    Raises:
        EvidenceError: `NOT_CANONICAL`, the value is outside the profile; the message names the path.
    """
    data = _encode_plain(value)
    if data is None:
        _check(value, "$", 0)
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return data


def decode(data: bytes) -> Any:
    """The value of canonical bytes. Strict: nothing is repaired.

    Raises:
        EvidenceError: `NOT_CANONICAL`, the bytes are not the canonical form of a value in the profile.
    """
    value = loads(data)
    if encode(value) != data:
        raise EvidenceError(
            "NOT_CANONICAL",
            "the bytes are JSON but not in canonical form (order, spacing, escapes or a duplicate key)",
        )
    return value


def loads(data: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """Parse JSON from anybody, with a bound on its depth and one kind of error.

    Raises:
        EvidenceError: `NOT_CANONICAL`, the bytes are not JSON or nest deeper than `max_depth`.
    """
    if _depth_exceeds(data, max_depth):
        raise EvidenceError("NOT_CANONICAL", f"nested deeper than {max_depth} levels")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise EvidenceError("NOT_CANONICAL", f"not JSON: {error}") from None


def real(number: float) -> str:
    """A real number as the record writes it: the shortest decimal that reads back to the same float64.

    Raises:
        EvidenceError: `NOT_A_REAL`, the number is not finite or an integer too large.
    """
    try:
        number = float(number)
    except OverflowError:
        raise EvidenceError("NOT_A_REAL", "the integer is beyond every float64") from None
    if not math.isfinite(number):
        raise EvidenceError("NOT_A_REAL", f"{number!r} has no place in a record")
    return repr(number)


def parse_real(text: str) -> float:
    """The float64 behind a real number's string.

    Raises:
        EvidenceError: `NOT_A_REAL`, the text is not what `real` writes for a finite number.
    """
    try:
        number = float(text)
    except ValueError:
        raise EvidenceError("NOT_A_REAL", f"{text[:40]!r} is not a number") from None
    if not math.isfinite(number) or repr(number) != text:
        raise EvidenceError(
            "NOT_A_REAL", f"{text[:40]!r} is not the shortest form of a finite number"
        )
    return number


def _encode_plain(value: Any) -> bytes | None:
    """The bytes of a container that is plainly within the profile, or None where `_check` must have its say.

    Every entry comes through here more than once, so it builds no paths. What it leaves to the encoder,
    which refuses them: integers beyond 2^53-1 and lone surrogates.
    """
    if not _is_plain(value, MAX_DEPTH):
        return None
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except orjson.JSONEncodeError:
        return None


def _is_plain(container: Any, levels: int) -> bool:
    """Whether an object or array has ASCII keys and items of the profile's types, in so many levels."""
    items: Iterable[Any] = container
    if levels == 0:
        return False
    if type(container) is dict:
        for key in container:
            if type(key) is not str or not key.isascii():
                return False
        items = container.values()
    elif type(container) is not list:
        return False
    for item in items:
        kind = type(item)
        if kind in _SCALARS:
            continue
        if (kind is not dict and kind is not list) or not _is_plain(item, levels - 1):
            return False
    return True


def _check(value: Any, path: str, depth: int) -> None:
    """Refuse what is outside the profile, by its path: the definition, in order of the fields."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_unicode(value, path)
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise EvidenceError("NOT_CANONICAL", f"integer beyond 2^53-1 at {path}", field=path)
    elif kind is dict or kind is list:
        if depth >= MAX_DEPTH:
            raise EvidenceError(
                "NOT_CANONICAL", f"nested deeper than {MAX_DEPTH} levels at {path[:80]}"
            )
        _check_items(value, path, depth + 1)
    elif value is not None and kind is not bool:
        raise EvidenceError("NOT_CANONICAL", f"{kind.__name__} at {path}", field=path)


def _check_items(value: Any, path: str, depth: int) -> None:
    if type(value) is list:
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth)
        return
    for key, item in value.items():
        if type(key) is not str or not key.isascii():
            raise EvidenceError("NOT_CANONICAL", f"object key that is not ASCII text at {path}")
        _check(item, f"{path}.{key}", depth)


def _check_unicode(text: str, path: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise EvidenceError(
            "NOT_CANONICAL", f"lone surrogate in the text at {path}", field=path
        ) from None


def _depth_exceeds(data: bytes, limit: int) -> bool:
    """Whether brackets outside strings nest deeper than `limit`, without recursion."""
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth = 0
    for token in _BRACKETS.finditer(data):
        byte = data[token.start()]
        if byte in _OPEN:
            depth += 1
            if depth > limit:
                return True
        elif byte in _CLOSE:
            depth -= 1
    return False
