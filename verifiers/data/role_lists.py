"""Roles that somebody else gave: a list in a file, or a field of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.errors import EvidenceError, UsageError
from verifiers.data.identity import Row, row_digest, values
from verifiers.data.json_text import loads_unique

MAX_DEPTH = 8
_MARK = b"\xef\xbb\xbf"
_NAMES = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test",
}  # fmt: skip


def roles_in_list(data: bytes) -> dict[str, str]:
    """Role by row id, or by row digest, from a file.

    Two forms: an object of roles, each with a list of ids, in which other names (`base`, `full`) are left out, since
    published splits name sets that overlap; or JSON lines, each with `id` or `row`, and `role`.

    Raises:
        UsageError: `SPLIT_SETTINGS`, the file is of neither form, names no role, or gives a row two roles.
    """
    plain = data.removeprefix(_MARK).strip()
    try:
        pairs = _of_object(plain) if _is_object_of_roles(plain) else _of_lines(plain)
        found: dict[str, str] = {}
        for name, role in pairs:
            if found.setdefault(name, role) != role:
                raise _wrong(f"row {name[:80]!r} has two roles")
    except EvidenceError as error:
        raise _wrong(error.message) from None
    if not found:
        raise _wrong("it gives no row a role")
    return found


def roles_in_field(rows: Sequence[Row], name: str) -> dict[str, str]:
    """Role by row digest from a field of the rows.

    Raises:
        UsageError: `SPLIT_SETTINGS`, a row has no role there, or none that is known.
    """
    found: dict[str, str] = {}
    for row in rows:
        said = values(row, name)
        role = _NAMES.get(said[0].strip().casefold()) if len(said) == 1 else None
        if role is None:
            shown = row.get("id", row_digest(row)[7:19])
            raise UsageError("SPLIT_SETTINGS", f"row {shown!r} has no role in {name}", field=name)
        found[row_digest(row)] = role
    return found


def _is_object_of_roles(data: bytes) -> bool:
    """Whether the whole is one object; of JSON lines only the first line is."""
    try:
        value = loads_unique(data, MAX_DEPTH)
    except EvidenceError as error:
        if error.code == "DUPLICATE_KEY":
            raise
        return False
    return isinstance(value, dict) and "role" not in value


def _of_object(data: bytes) -> Iterator[tuple[str, str]]:
    for name, ids in loads_unique(data, MAX_DEPTH).items():
        role = _NAMES.get(name.strip().casefold())
        if role is None:
            continue
        if not isinstance(ids, list):
            raise _wrong(f"{name!r} is not a list of ids")
        for item in ids:
            yield _id(item), role


def _of_lines(data: bytes) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(data.splitlines(), 1):
        line = loads_unique(text, MAX_DEPTH)
        if not isinstance(line, dict) or set(line) not in ({"id", "role"}, {"row", "role"}):
            raise _wrong(f"line {number} is not an id, or a row, and a role")
        role = _NAMES.get(str(line["role"]).strip().casefold())
        if role is None:
            raise _wrong(f"line {number} has the unknown role {str(line['role'])[:40]!r}")
        yield _id(line.get("id", line.get("row"))), role


def _id(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise _wrong("an id is neither text nor a whole number")
    return str(value)


def _wrong(message: str) -> UsageError:
    return UsageError("SPLIT_SETTINGS", f"the list of roles: {message}", field="roles")
