"""Files that are no database: what the system refuses as one error of ours, and what makes a folder durable."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import UsageError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the system's refusal to read or write a file into one error of ours.

    Raises:
        UsageError: `DISK_FULL`, there is no room or the quota is used up; `OS_REFUSED`, anything else.
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        code = "DISK_FULL" if error.errno in _NO_ROOM else "OS_REFUSED"
        raise UsageError(code, f"{path}: {reason}") from error


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable: a file that was renamed or linked into it outlasts a power cut.

    Raises:
        OSError: the system refuses.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
