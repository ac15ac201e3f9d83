"""Record batches of one table, held so that memory does not grow with the ledger.

Few are kept in memory. Beyond a limit they go to a file that has no name and vanishes with the process; the
finished table is a mapping of it, so the system may drop what is not being read.
"""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ledger import disk

HELD_BYTES = 32 << 20


class Spool:
    """Takes record batches of a schema and gives one Arrow table.

    Args:
        schema: of every batch.
        held_bytes: how much is kept in memory.
    """

    def __init__(self, schema: Any, held_bytes: int = HELD_BYTES) -> None:
        self._schema = schema
        self._limit_bytes = held_bytes
        self._held: list[Any] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, batch: Any) -> None:
        """Take a batch.

        Raises:
            UsageError: `DISK_FULL`, `OS_REFUSED`, the folder for temporary files has no room.
        """
        if self._writer is None:
            self._held.append(batch)
            self._held_bytes += batch.nbytes
            if self._held_bytes <= self._limit_bytes:
                return
            self._open()
        with disk.translated(Path(tempfile.gettempdir())):
            for item in self._held or [batch]:
                self._writer.write_batch(item)
        self._held = []

    def finish(self) -> Any:
        """The table of all batches.

        Raises:
            UsageError: as `add`.
        """
        if self._file is None:
            return pa.Table.from_batches(self._held, schema=self._schema)
        with disk.translated(Path(tempfile.gettempdir())):
            self._writer.close()
            self._file.flush()
            mapping = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()  # the mapping holds it from here on
        return pa.ipc.open_file(pa.py_buffer(mapping)).read_all()

    def _open(self) -> None:
        with disk.translated(Path(tempfile.gettempdir())):
            self._file = tempfile.TemporaryFile(prefix="evidence-query-")  # noqa: SIM115 - as long as the table
            self._writer = pa.ipc.new_file(self._file, self._schema)
