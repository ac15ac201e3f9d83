"""Files that a person names on the command line and that are read whole: small ones, within a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def read_input(path: Path, field: str, max_bytes: int) -> bytes:
    """The bytes of a file.

    Args:
        path: the file.
        field: the argument that named it, for the error.
        max_bytes: how many it may have.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such file.
        EvidenceError: `UNSAFE_PATH`, it is a link or no regular file; `TOO_LARGE`.
    """
    try:
        with open_regular(path) as stream:
            data: bytes = stream.read(max_bytes + 1)
    except FileNotFoundError:
        raise UsageError("INPUT_MISSING", f"there is no file {path}", field=field) from None
    if len(data) > max_bytes:
        raise EvidenceError("TOO_LARGE", f"{path.name} has more than {max_bytes} bytes")
    return data
